//! Opening a link: the options, the abilities of the interface, and the result.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use millstream_host::mapping::Mapping;
use rustix::event::epoll;
use rustix::mm::{MapFlags, ProtFlags};
use rustix::net::xdp::SocketAddrXdpFlags as Flags;

use super::link::{Attachment, State, XdpLink};
use super::options::{XdpMode, XdpOptions};
use super::outgoing::Outgoing;
use super::plan::UmemLayout;
use super::pool::{FramePool, Geometry};
use super::privileged::occupied;
use super::queue::{Binding, Queue, register};
use super::watchdog::Watchdog;
use super::{advice, bpf};
use crate::device::InterfaceState;
use crate::frame::{Copies, FrameMemory, FrameOptions, LinkInfo, Mode};
use crate::rights::{self, Attach, AttachedProgram, BusyPoll, Hook, Rights, RightsOptions};
use crate::spec::bad;
use crate::{LinkError, Spec};

/// The longest that the memory of a closed link is still counted as locked: milliseconds on an idle
/// machine.
const RELEASE: Duration = Duration::from_secs(1);

/// The link's name.
pub(super) const NAME: &str = super::LINK.name;

impl XdpLink {
    /// Opens a link on the interface that `spec` names.
    ///
    /// # Errors
    /// [`LinkError`], which says what to do.
    pub fn open(spec: &Spec, sizes: &FrameOptions) -> Result<Self, LinkError> {
        let (interface, options) = (spec.interface()?, XdpOptions::from_spec(spec)?);
        let mut device = InterfaceState::look(NAME, interface)?;
        let (by, _) = spec.split::<RightsOptions>()?;
        let mut rights = rights::open(&by, &super::RIGHTS, interface)?;
        let mut notes = Vec::new();
        if rights.holder() != rights::DIRECT {
            notes.push(format!("rights by {}", rights.holder()));
        }
        if let Some(count) = options.channels {
            let set = rights.channels(count);
            let before = set.map_err(|e| advice::refused(&device, "set the queues", e))?;
            device = InterfaceState::look(NAME, interface)?;
            if before != count {
                notes.push(format!("{count} queues for {before} while it is open"));
            }
        }
        Opening { options, device, rights, notes }.open(sizes)
    }
}

/// A link that is being opened.
struct Opening {
    options: XdpOptions,
    device: InterfaceState,
    rights: Box<dyn Rights>,
    /// The attempts and decisions, for people.
    notes: Vec<String>,
}

impl Opening {
    fn open(mut self, sizes: &FrameOptions) -> Result<XdpLink, LinkError> {
        let numbers = self.queue_numbers()?;
        let mut plan = UmemLayout::new(&self.options, self.device.mtu(), numbers.len(), sizes);
        let attached = self.attach(&mut plan)?;
        self.fit(&mut plan);
        let memory = self.memory(&plan)?;
        let mut pool = FramePool::new(plan.geometry, plan.chunks(), plan.transmitting());
        let queues = self.queues(&plan, attached.hook, &numbers, &memory, &mut pool)?;
        let mode = self.mode(attached.hook, &queues[0])?;
        let poll = poll_all(&queues).map_err(|e| self.failed("epoll", e))?;
        let cpus = bpf::cpus();
        let counters = attached.counters.as_fd();
        let counted = Mapping::new(counters, 0, bpf::counters_bytes(cpus), ProtFlags::READ);
        let counted = counted.map_err(|e| self.failed("map the program's counters", e))?;
        let mut info = self.info(&plan, mode, numbers.len());
        info.udp_ports = self.rights.udp_ports().map_err(|e| self.failed("ask for ports", e))?;
        // Only some drivers with zero-copy support it; the others have no replacement.
        info.completes_checksums = pool.allows_metadata() && mode != Mode::ZeroCopy;
        Ok(XdpLink {
            memory,
            pool,
            outgoing: Outgoing::new(self.options.tx_queues, info.batch_max),
            watchdogs: numbers.iter().map(|number| Watchdog::new(*number)).collect(),
            queues,
            poll,
            counted: (counted, cpus),
            ports: Vec::new(),
            busy_poll: self.options.busy_poll_us > 0,
            state: State::default(),
            rights: self.rights,
            _attached: Attachment(attached.link),
            info,
        })
    }

    fn failed(&self, step: &str, source: io::Error) -> LinkError {
        advice::refused(&self.device, step, source)
    }

    /// Returns the queues to serve: those of the options, which must exist, or all.
    fn queue_numbers(&self) -> Result<Vec<u32>, LinkError> {
        let numbers = self.queues_asked_for()?;
        if self.options.tx_queues > numbers.len() {
            let option = format!("tx_queues={}", self.options.tx_queues);
            let reason = format!(
                "is more than the {} that are served; `channels=N` gives the interface more",
                numbers.len()
            );
            return Err(bad(&option, &reason));
        }
        Ok(numbers)
    }

    fn queues_asked_for(&self) -> Result<Vec<u32>, LinkError> {
        let there = self.device.receive_queues().filter(|count| *count > 0);
        match (self.options.queues, there) {
            (None, there) => Ok((0..there.unwrap_or(1)).collect()),
            (Some((first, last)), Some(there)) if last >= there => {
                let name = &self.device.interface.name;
                let reason = format!(
                    "{name} has {there} receive queues, 0 to {}: `ethtool -l {name}` shows them, \
                     `ethtool -L` changes their number",
                    there - 1
                );
                Err(bad(&format!("queues={first}-{last}"), &reason))
            }
            (Some((first, last)), _) => Ok((first..=last).collect()),
        }
    }

    /// Attaches the program in the mode of the options, or in the best possible one.
    fn attach(&mut self, plan: &mut UmemLayout) -> Result<AttachedProgram, LinkError> {
        let hooks: &[Hook] = match self.options.mode {
            XdpMode::Auto => &[Hook::Driver, Hook::Generic],
            XdpMode::Native | XdpMode::ZeroCopy => &[Hook::Driver],
            XdpMode::Generic => &[Hook::Generic],
        };
        let mut refused = io::Error::from(io::ErrorKind::Unsupported);
        for hook in hooks {
            match self.attach_at(*hook, plan) {
                Ok(attached) => return Ok(attached),
                Err(error) if occupied(&error) => {
                    return Err(advice::occupied(&self.device, error));
                }
                Err(error) => {
                    if hooks.len() > 1 {
                        self.notes.push(format!("{} refused ({error})", hook_name(*hook)));
                    }
                    refused = error;
                }
            }
        }
        let step = format!("attach the program in {} mode", hook_name(hooks[hooks.len() - 1]));
        Err(self.failed(&step, refused))
    }

    /// Attaches the program in one mode. A frame that fits our chunks may still be too long for a
    /// driver without parts (veth counts its peer's MTU): that is `ERANGE`, and then parts are
    /// used.
    fn attach_at(&mut self, hook: Hook, plan: &mut UmemLayout) -> io::Result<AttachedProgram> {
        let rate_max_hz = self.options.rate_max_hz;
        let wanted = Attach { hook, parts: plan.parts, rate_max_hz };
        match self.rights.attach(&wanted) {
            Err(error) if rights::errno(&error) == Some(libc::ERANGE) && !plan.parts => {
                let attached = self.rights.attach(&Attach { parts: true, ..wanted })?;
                plan.parts = true;
                Ok(attached)
            }
            done => done,
        }
    }

    /// Reduces the frame memory where the limit requires it, because it counts as locked memory.
    fn fit(&mut self, plan: &mut UmemLayout) {
        let bytes = plan.bytes(self.options.huge);
        let Err(refused) = self.rights.allow_locked(bytes as u64) else { return };
        let most = usize::try_from(rights::lockable_bytes()).unwrap_or(usize::MAX);
        let fitted = if bytes > most { plan.fit(most) } else { None };
        if let Some(fitted) = fitted {
            *plan = fitted;
            let (now, receive) = (plan.bytes(false) >> 10, plan.receive);
            let wanted = bytes >> 10;
            self.notes.push(format!(
                "frame memory of {now} KiB for {wanted} KiB, {receive} frames a queue ({refused})"
            ));
        }
    }

    fn memory(&mut self, plan: &UmemLayout) -> Result<Arc<FrameMemory>, LinkError> {
        let mut memory = None;
        if self.options.huge {
            match FrameMemory::anonymous(plan.bytes(true), MapFlags::HUGETLB) {
                Ok(huge) => memory = Some(huge),
                Err(error) => self
                    .notes
                    .push(format!("no huge pages ({error}; sysctl vm.nr_hugepages reserves them)")),
            }
        }
        let memory = match memory {
            Some(memory) => memory,
            None => FrameMemory::anonymous(plan.bytes(false), MapFlags::empty())
                .map_err(|e| self.failed("map frame memory", e))?,
        };
        memory.prefer_large_pages();
        Ok(Arc::new(memory))
    }

    /// Opens one socket for each queue, over one frame memory.
    fn queues(
        &mut self,
        plan: &UmemLayout,
        hook: Hook,
        numbers: &[u32],
        memory: &FrameMemory,
        pool: &mut FramePool,
    ) -> Result<Vec<Queue>, LinkError> {
        let mut queues: Vec<Queue> = Vec::with_capacity(numbers.len());
        let mut counters = Default::default();
        for (index, number) in numbers.iter().enumerate() {
            let socket = self.socket()?;
            if index == 0 {
                let registered = register_soon(socket.as_fd(), memory, plan.geometry);
                let registered =
                    registered.map_err(|e| advice::memory(&self.device, memory.len(), e))?;
                if registered {
                    pool.allow_metadata();
                }
            }
            let queue = Queue::new(socket, *number, plan.sizes(index));
            let mut queue = queue.map_err(|e| self.failed("map the rings", e))?;
            queue.refill(pool, &mut counters);
            let flags = self.flags(plan, hook);
            let to = Binding { interface: self.device.interface.index, queue: *number, flags };
            queue.bind(to, queues.first()).map_err(|e| advice::bind(&self.device, &to, e))?;
            let watched = self.rights.watch(*number, queue.as_fd());
            watched.map_err(|e| self.failed("give the socket to the program", e))?;
            queues.push(queue);
        }
        Ok(queues)
    }

    fn socket(&mut self) -> Result<OwnedFd, LinkError> {
        let socket = self.rights.socket().map_err(|e| self.failed("open a socket", e))?;
        if self.options.busy_poll_us > 0 {
            let XdpOptions { busy_poll_us, busy_poll_budget: budget, .. } = self.options;
            let set = self.rights.busy_poll(socket.as_fd(), BusyPoll { busy_poll_us, budget });
            set.map_err(|e| self.failed("busy polling", e))?;
        }
        Ok(socket)
    }

    fn flags(&self, plan: &UmemLayout, hook: Hook) -> Flags {
        let mut flags = match (self.options.mode, hook) {
            (XdpMode::ZeroCopy, _) => Flags::XDP_ZEROCOPY,
            // The kernel falls back to copying by itself.
            (XdpMode::Auto, Hook::Driver) => Flags::empty(),
            _ => Flags::XDP_COPY,
        };
        flags.set(Flags::XDP_USE_NEED_WAKEUP, self.options.wakeup);
        flags.set(Flags::XDP_USE_SG, plan.parts);
        flags
    }

    fn mode(&mut self, hook: Hook, first: &Queue) -> Result<Mode, LinkError> {
        if hook == Hook::Generic {
            return Ok(Mode::Generic);
        }
        let zero_copy = first.zero_copy().map_err(|e| self.failed("ask for the mode", e))?;
        if !zero_copy && self.options.mode == XdpMode::Auto {
            let said = self.device.features.map(|features| features.zero_copy);
            self.notes.push(match said {
                Some(true) => "zero-copy refused, though the driver has it".to_owned(),
                Some(false) => "the driver has no zero-copy".to_owned(),
                None => "zero-copy refused".to_owned(),
            });
        }
        Ok(if zero_copy { Mode::ZeroCopy } else { Mode::NativeCopy })
    }

    fn info(&self, plan: &UmemLayout, mode: Mode, queues: usize) -> LinkInfo {
        let device = &self.device;
        let asked = if self.options.mode == XdpMode::Auto { "probed" } else { "as asked" };
        let mut detail = format!("{} ({asked}), driver {}", mode.name(), device.driver());
        detail += &format!(", {queues} of {} queues", device.receive_queues().unwrap_or(1));
        if self.options.tx_queues > 1 {
            detail += &format!(", {} of them transmit", self.options.tx_queues);
        }
        detail += &format!(", chunks of {}", plan.geometry.chunk);
        if plan.parts {
            detail += ", frames in parts";
        }
        if !device.interface.up {
            detail += ", interface down";
        }
        for note in &self.notes {
            detail += "; ";
            detail += note;
        }
        LinkInfo {
            interface: Some(device.interface.name.clone()),
            mode,
            copies: Copies::of_xdp(mode, device.driver()),
            detail,
            queues,
            part_bytes_max: plan.geometry.part_bytes() as usize,
            receive_frames: plan.receive as usize / plan.parts_each,
            receive_parts: plan.receiving() * queues,
            forwards: true,
            partial_checksums: matches!(device.driver(), "veth" | "tun" | ""),
            ..LinkInfo::new(NAME, device.mac(), device.mtu())
        }
    }
}

/// Registers the frame memory; returns whether metadata is possible.
///
/// The kernel counts the memory of a closed link as locked a little longer. An open directly after
/// a close, with no higher limit than that, has to wait for it.
fn register_soon(
    socket: BorrowedFd<'_>,
    memory: &FrameMemory,
    geometry: Geometry,
) -> io::Result<bool> {
    let deadline = Instant::now() + RELEASE;
    loop {
        match register(socket, memory, geometry) {
            Err(error)
                if error.raw_os_error() == Some(libc::ENOBUFS)
                    && memory.len() as u64 <= rights::lockable_bytes()
                    && Instant::now() < deadline =>
            {
                std::thread::sleep(Duration::from_millis(1));
            }
            done => return done,
        }
    }
}

fn hook_name(hook: Hook) -> &'static str {
    match hook {
        Hook::Generic => "generic",
        Hook::Driver | Hook::Auto => "native",
    }
}

/// Returns a descriptor that is readable when any queue's socket is: for a single queue the socket
/// itself, which wakes its sleeper without an epoll instance between them.
fn poll_all(queues: &[Queue]) -> io::Result<OwnedFd> {
    if let [queue] = queues {
        return queue.as_fd().try_clone_to_owned();
    }
    let all = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    for queue in queues {
        let data = epoll::EventData::new_u64(u64::from(queue.number));
        epoll::add(&all, queue, data, epoll::EventFlags::IN)?;
    }
    Ok(all)
}
