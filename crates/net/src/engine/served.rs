//! An open link, and the registration of ports on it. At the end of a registration pending
//! datagrams are sent first where possible.

use std::collections::BTreeSet;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use millstream_link::LinkError;
use millstream_link::frame::{ETHERNET_BYTES_MAX, FrameLink, FrameMemory, LinkInfo};
use millstream_link::port::{Capabilities, Port, PortOptions};
use millstream_link::udp::bind_error;
use millstream_ring::{Doorbell, Wait};

use crate::options::{Asked, bad};
use crate::port::{Ends, FrameLayout, Lane, Poller, PortParts, Shares, assemble};
use crate::stack::{Stack, Subnet};

use super::advice;
use super::clock::now_ns;
use super::commands::{HostId, NoAnswer};
use super::configure::configure;
use super::host::Host;
use super::inline::{Inline, InlineDrive};
use super::kernel::{Reservation, is_granted};
use super::neighbours::Neighbours;
use super::open_lock::OpenLock;
use super::pieces::PARTS_MAX;
use super::registry;
use super::worker::{IoThread, ThreadDrive};

/// The most datagrams that one receive lends.
const BATCH: usize = 64;

/// The most frames to transmit of one port, where datagrams are not in many parts.
const TRANSMIT_SHARE: usize = 256;

/// The interval at which a closing port checks whether it has nothing left to send.
const CLOSING_LOOK_EVERY: Duration = Duration::from_micros(100);

/// The driver of an open link.
pub(super) enum Driver {
    Thread(Arc<IoThread>),
    Inline(Arc<Inline>),
}

/// The link's unassigned frames and UDP ports.
#[derive(Debug)]
pub(super) struct Budget {
    pub receive: usize,
    pub transmit: usize,
    pub ports: BTreeSet<u16>,
}

/// An open link. Its last holder closes it.
pub(super) struct OpenLink {
    /// Locked by threads that open or close ports on the link.
    pub gate: Arc<OpenLock>,
    pub asked: Asked,
    pub info: LinkInfo,
    memory: Arc<FrameMemory>,
    addresses: Vec<Subnet>,
    shape: FrameLayout,
    id: HostId,
    pub driver: Driver,
    budget: Mutex<Budget>,
}

impl OpenLink {
    /// Puts a stack on `link` and starts driving it in the requested way.
    pub fn start(
        gate: &Arc<OpenLock>,
        link: Box<dyn FrameLink>,
        asked: Asked,
        driver: impl FnOnce() -> Result<Option<Arc<IoThread>>, LinkError>,
    ) -> Result<Arc<Self>, LinkError> {
        let info = link.info().clone();
        let memory = Arc::clone(link.memory());
        let (config, kernel) = configure(&asked, &info)?;
        let addresses = config.addresses.clone();
        let stack = Stack::new(config)
            .map_err(|error| setup("addresses of the link", io::Error::other(error)))?;
        let shape = FrameLayout {
            headroom: stack.header_len(),
            part_bytes_max: info.part_bytes_max,
            payload_bytes_max: stack.payload_len_max(),
        };
        if shape.parts_max() > PARTS_MAX {
            return Err(too_many_parts(&info, &shape));
        }
        let worker = driver()?;
        let bell = match &worker {
            Some(worker) => Arc::clone(&worker.contact.shared.bell),
            None => Arc::new(Doorbell::new().map_err(|error| setup("eventfd", error))?),
        };
        let neighbours = match kernel {
            Some(kernel) => {
                let name = info.interface.as_deref().unwrap_or(info.name);
                Neighbours::start(name, kernel.index, kernel.netlink, Arc::clone(&bell))
                    .map(Some)
                    .map_err(|error| setup("thread for neighbours", error))?
            }
            None => None,
        };
        let mut host = Host::new(link, stack, neighbours);
        host.steer()?;
        let id = registry::next_id();
        // Shares are in buffers, of which a frame may take several.
        let receive = (info.receive_frames * shape.parts_max()).max(info.receive_parts) * 3 / 4;
        let budget = Budget { receive, transmit: 0, ports: BTreeSet::new() };
        let driver = match worker {
            Some(worker) => {
                worker.contact.adopt(id, host)?;
                Driver::Thread(worker)
            }
            None => {
                let inline = Inline::new(host, bell).map_err(|error| setup("dup", error))?;
                Driver::Inline(Arc::new(inline))
            }
        };
        let budget = Mutex::new(Budget { transmit: registry::TRANSMIT_FRAMES * 3 / 4, ..budget });
        let gate = Arc::clone(gate);
        let open = Self { gate, asked, info, memory, addresses, shape, id, driver, budget };
        open.claim_address()?;
        Ok(Arc::new(open))
    }

    /// Returns its name in messages.
    pub fn name(&self) -> &str {
        self.info.interface.as_deref().unwrap_or(self.info.name)
    }

    /// Calls `job` with the link, on the link's thread.
    pub(super) fn with<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Host) -> T + Send + 'static,
    ) -> Result<T, NoAnswer> {
        match &self.driver {
            Driver::Thread(worker) => worker.contact.with(self.id, job),
            Driver::Inline(inline) => inline.host().as_mut().map(job).ok_or(NoAnswer::Gone),
        }
    }

    /// Whether it still works, as far as is known.
    ///
    /// # Errors
    /// [`LinkError`] if its thread does not answer.
    pub fn is_usable(&self) -> Result<bool, LinkError> {
        match self.with(|host| !host.is_dead()) {
            Ok(usable) => Ok(usable),
            Err(NoAnswer::Gone) => Ok(false),
            Err(silent) => Err(silent.into()),
        }
    }

    /// Waits until own addresses are claimed: no other station may have them.
    fn claim_address(&self) -> Result<(), LinkError> {
        let addresses: Vec<Ipv4Addr> = self.addresses.iter().map(|own| own.address).collect();
        let until = now_ns() + 10_000_000_000;
        loop {
            let ours = addresses.clone();
            let state = self.with(move |host| {
                if !host.is_settled() {
                    host.step(now_ns());
                }
                (host.is_settled(), ours.into_iter().find(|own| !host.stack().is_ours(*own)))
            });
            match state? {
                (true, None) => return Ok(()),
                (true, Some(address)) => {
                    let reason = "is in use by another host on this network: choose another";
                    return Err(bad(format!("address={address}"), reason));
                }
                _ if now_ns() > until => return Ok(()),
                _ => std::thread::sleep(Duration::from_millis(1)),
            }
        }
    }

    pub(super) fn budget(&self) -> MutexGuard<'_, Budget> {
        self.budget.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a port.
    pub fn port(
        self: &Arc<Self>,
        bind: SocketAddrV4,
        options: &PortOptions,
        asked: &Asked,
    ) -> Result<Port, LinkError> {
        let (local, reservation) = self.bind(bind)?;
        let shares = self.shares(options, asked)?;
        let (lane, ends) = Lane::new(local, shares, &self.memory);
        match self.with(move |host| host.add(lane)) {
            Ok(added) => added?,
            Err(why) => {
                // If it is added late, it is removed again.
                let _ = self.with(move |host| host.remove(local.port()));
                return Err(why.into());
            }
        }
        {
            let mut budget = self.budget();
            budget.receive -= shares.receive;
            budget.transmit -= shares.transmit;
            budget.ports.insert(local.port());
        }
        let registration =
            Registration { link: Some(Arc::clone(self)), local, shares, reservation };
        let parts = self.shape.parts_max();
        let mut capabilities = Capabilities::new(self.shape.payload_bytes_max, BATCH);
        let queue = (shares.receive - BATCH) / parts;
        capabilities.recv_queue_datagrams = Some(queue);
        capabilities.recv_queue_bytes = queue * self.shape.payload_bytes_max;
        let wait = options.wait(asked.engine.user_wait.unwrap_or(Wait::Adaptive));
        let drive = self.drive(wait, options.patient, &ends);
        Ok(assemble(PortParts {
            local,
            ends,
            capabilities,
            drive,
            registration: Arc::new(registration),
            shape: self.shape,
        }))
    }

    fn drive(&self, wait: Wait, patient: bool, ends: &Ends) -> Arc<dyn Poller> {
        match &self.driver {
            Driver::Thread(worker) => {
                Arc::new(ThreadDrive { shared: Arc::clone(&worker.contact.shared), wait })
            }
            Driver::Inline(inline) => {
                let state = Arc::clone(&ends.rx.state);
                Arc::new(InlineDrive::new(Arc::clone(inline), wait, patient, state))
            }
        }
    }

    /// Returns the address of a new port, and the kernel's socket that reserves it.
    fn bind(&self, bind: SocketAddrV4) -> Result<(SocketAddrV4, Option<Reservation>), LinkError> {
        let address = match *bind.ip() {
            Ipv4Addr::UNSPECIFIED => self.addresses[0].address,
            address if self.addresses.iter().any(|own| own.address == address) => address,
            _ => return Err(self.not_our_address(bind)),
        };
        let bind = SocketAddrV4::new(address, bind.port());
        if self.asked.engine.address.is_none() {
            let granted = &self.info.udp_ports;
            let reservation = match bind.port() {
                0 => Reservation::any_of(address, granted, now_ns() / 1000)?,
                _ => Reservation::new(bind)?,
            };
            let local = reservation.address;
            if self.budget().ports.contains(&local.port()) {
                return Err(bind_error(local, io::Error::from_raw_os_error(libc::EADDRINUSE)));
            }
            return Ok((local, Some(reservation)));
        }
        let budget = self.budget();
        // The dynamic ports of RFC 6335, 6.
        let port = match bind.port() {
            0 => {
                let granted = |port: &u16| is_granted(&self.info.udp_ports, *port);
                let mut free = (49152..=65535).chain(1024..49152).filter(granted);
                free.find(|port| !budget.ports.contains(port)).unwrap_or(0)
            }
            port => port,
        };
        if port == 0 || budget.ports.contains(&port) {
            let which = if port == 0 { "every port that it may have" } else { "the port" };
            return Err(LinkError::Bind {
                address: SocketAddrV4::new(address, port),
                source: io::Error::from_raw_os_error(libc::EADDRINUSE),
                hint: format!(
                    "{which} is in use on {} by this process: close one, or choose another",
                    self.name()
                ),
            });
        }
        Ok((SocketAddrV4::new(address, port), None))
    }

    fn not_our_address(&self, bind: SocketAddrV4) -> LinkError {
        let own: Vec<_> = self.addresses.iter().map(|own| own.address.to_string()).collect();
        let hint = if bind.ip().is_loopback() {
            "the kernel handles all addresses 127.x: use link=udp".to_owned()
        } else {
            format!("{} has {}: choose one of these, or 0.0.0.0", self.name(), own.join(", "))
        };
        let source = io::Error::from_raw_os_error(libc::EADDRNOTAVAIL);
        LinkError::Bind { address: bind, source, hint }
    }

    /// Returns the frames that a new port may hold: what it wants, but of the rest as much must
    /// remain as it gets, for each port that follows it, and once more for any other.
    fn shares(&self, options: &PortOptions, asked: &Asked) -> Result<Shares, LinkError> {
        let parts = self.shape.parts_max();
        let budget = self.budget();
        let wanted = registry::queue_wanted(options, asked, self.info.mtu);
        let among = options.more_ports.saturating_add(2);
        let receive = (wanted * parts + BATCH).min(budget.receive / among);
        let transmit = TRANSMIT_SHARE.max(4 * parts).min(budget.transmit / among);
        if receive < 2 * BATCH || transmit < 2 * parts {
            let what = format!(
                "{} frames of {} are left for another port: close one, or open the link with a \
                 smaller queue=N, so that each port takes fewer",
                budget.receive,
                self.name()
            );
            return Err(setup("frames", io::Error::other(what)));
        }
        Ok(Shares { receive, transmit })
    }
}

impl Drop for OpenLink {
    fn drop(&mut self) {
        if let Ok(Some(text)) = self.with(|host| host.link().explain()) {
            advice::keep(text);
        }
        match &self.driver {
            // A thread that has ended has closed the link.
            Driver::Thread(worker) => {
                let _ = worker.contact.release(self.id);
            }
            Driver::Inline(inline) => inline.close(),
        }
    }
}

/// A link that was [attached](super::attach): ports can be opened on it.
pub struct AttachedLink {
    pub(super) link: Arc<OpenLink>,
}

impl AttachedLink {
    /// Opens a port of the link, bound to `bind` (port 0: any free one).
    ///
    /// # Errors
    /// [`LinkError`], which says what to do.
    pub fn open(&self, bind: SocketAddrV4, options: &PortOptions) -> Result<Port, LinkError> {
        // One after the other, like every opening.
        let _turn = self.link.gate.lock();
        self.link.port(bind, options, &self.link.asked)
    }
}

/// Returns the most bytes of memory that a datagram takes on an interface with this MTU.
pub(super) fn datagram_memory(options: &PortOptions, mtu: usize) -> usize {
    options.datagram_bytes_max.min(mtu).max(64) + ETHERNET_BYTES_MAX
}

fn too_many_parts(info: &LinkInfo, shape: &FrameLayout) -> LinkError {
    let what = format!(
        "a packet of {} bytes lies in {} parts of {} bytes on this link, and {PARTS_MAX} are \
         supported: use longer parts, or a smaller MTU",
        info.mtu,
        shape.parts_max(),
        info.part_bytes_max
    );
    setup("frames", io::Error::other(what))
}

fn setup(what: &'static str, source: io::Error) -> LinkError {
    LinkError::Setup { what, source }
}

/// The registration of a port on its link; dropped with the port's last half.
pub(super) struct Registration {
    pub link: Option<Arc<OpenLink>>,
    pub local: SocketAddrV4,
    pub shares: Shares,
    pub reservation: Option<Reservation>,
}

impl Drop for Registration {
    fn drop(&mut self) {
        let Some(link) = self.link.take() else { return };
        let port = self.local.port();
        let began = now_ns();
        while let Ok(allowed) = link.with(move |host| host.closing_ns(port, now_ns())) {
            if now_ns() - began >= allowed {
                break;
            }
            std::thread::sleep(CLOSING_LOOK_EVERY);
        }
        // The link may close here; an open of the same link waits for that.
        let gate = Arc::clone(&link.gate);
        let _turn = gate.lock();
        let _ = link.with(move |host| host.remove(port));
        drop(self.reservation.take());
        let mut budget = link.budget();
        budget.receive += self.shares.receive;
        budget.transmit += self.shares.transmit;
        budget.ports.remove(&port);
        drop(budget);
        drop(link);
    }
}
