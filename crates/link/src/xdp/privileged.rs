//! The steps that need privileges: plain data in, descriptors out.
//!
//! A socket needs CAP_NET_RAW, the program and its maps CAP_BPF (and CAP_PERFMON), attaching it and
//! busy polling CAP_NET_ADMIN. Everything else (memory, rings, bind, poll) needs no privileges, and
//! is done by the streaming process; see `rights`.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use super::bpf::{
    self, Descriptors, LoadOptions, MapKind, ProgramPlace, QUEUES_MAX, RULES_BYTES, Rules,
};
use crate::frame::Steer;
use crate::rights::{Attach, AttachedProgram, BusyPoll, Hook};

/// The name of our program in `ip link` and `bpftool prog`.
pub const PROGRAM_NAME: &str = "millstream";

/// `XDP_FLAGS_SKB_MODE` and `XDP_FLAGS_DRV_MODE` of `linux/if_link.h`.
const FLAG_GENERIC: u32 = 1 << 1;
const FLAG_DRIVER: u32 = 1 << 2;

/// Opens an AF_XDP socket that is not set up yet.
///
/// # Errors
/// The error of socket(2).
pub fn socket() -> io::Result<OwnedFd> {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
    Ok(socket_with(AddressFamily::XDP, SocketType::RAW, SocketFlags::CLOEXEC, None)?)
}

/// Makes a socket poll its device while it waits, instead of using the device's interrupts.
///
/// # Errors
/// The error of setsockopt(2).
pub fn busy_poll(socket: BorrowedFd<'_>, how: BusyPoll) -> io::Result<()> {
    let options = [
        (libc::SO_PREFER_BUSY_POLL, 1),
        (libc::SO_BUSY_POLL, how.busy_poll_us),
        (libc::SO_BUSY_POLL_BUDGET, how.budget),
    ];
    for (name, value) in options {
        millstream_host::socket::set(socket, libc::SOL_SOCKET, name, &value)?;
    }
    Ok(())
}

/// Our loaded program, with the maps that it reads.
#[derive(Debug)]
pub(super) struct Loaded {
    pub program: OwnedFd,
    pub counters: OwnedFd,
    rules: OwnedFd,
    sockets: OwnedFd,
    rate_max_hz: u32,
}

impl Loaded {
    /// Loads the program, which at first passes every frame to the kernel.
    pub fn new(wanted: &Attach) -> io::Result<Self> {
        let cpus = bpf::cpus();
        let value = |name, bytes| bpf::create_map(name, MapKind::Value { bytes });
        let rules = value("ms_rules", RULES_BYTES as u32)?;
        let counters = value("ms_counters", bpf::counters_bytes(cpus) as u32)?;
        // The rate limit keeps its state there: readers must not write.
        bpf::freeze(counters.as_fd())?;
        let sockets =
            bpf::create_map("ms_sockets", MapKind::Sockets { queues: QUEUES_MAX as u32 })?;
        let code = bpf::assemble(Descriptors {
            rules: rules.as_raw_fd(),
            counters: counters.as_raw_fd(),
            sockets: sockets.as_raw_fd(),
            cpus,
            parts: wanted.parts,
        });
        let place = ProgramPlace::Xdp { parts: wanted.parts };
        let program = bpf::load(&code, LoadOptions { name: PROGRAM_NAME, place })?;
        let loaded = Self { program, counters, rules, sockets, rate_max_hz: wanted.rate_max_hz };
        loaded.steer(&Steer::default())?;
        Ok(loaded)
    }

    pub fn watch(&self, queue: u32, socket: BorrowedFd<'_>) -> io::Result<()> {
        // SAFETY: the map's values are descriptors.
        unsafe { bpf::update(self.sockets.as_fd(), queue, &socket.as_raw_fd()) }
    }

    pub fn steer(&self, wanted: &Steer) -> io::Result<()> {
        let rules = Rules::new(wanted, self.rate_max_hz);
        let rules = rules.map_err(|text| io::Error::new(io::ErrorKind::InvalidInput, text))?;
        // SAFETY: the map's value is a `Rules`, which has no padding.
        unsafe { bpf::update(self.rules.as_fd(), 0, &*rules) }
    }
}

/// Our program on an interface. It is detached when its link's last descriptor is closed.
#[derive(Debug)]
pub struct Program {
    loaded: Loaded,
    hook: Hook,
    refused: Option<String>,
    link: OwnedFd,
}

impl Program {
    /// Loads the program and attaches it to the interface of index `interface`; it passes every
    /// frame to the kernel until [`Program::steer`].
    ///
    /// # Errors
    /// `ResourceBusy` or `AlreadyExists` when the interface has another program; otherwise the
    /// error of bpf(2).
    pub fn attach(interface: u32, wanted: &Attach) -> io::Result<Self> {
        let loaded = Loaded::new(wanted)?;
        let (hook, refused, link) = attach(loaded.program.as_fd(), interface, wanted.hook)?;
        Ok(Self { loaded, hook, refused, link })
    }

    /// Duplicates the descriptors of the attachment and of the counters.
    ///
    /// # Errors
    /// When there are no descriptors left.
    pub fn attached(&self) -> io::Result<AttachedProgram> {
        let (link, counters) = (self.link.try_clone()?, self.loaded.counters.try_clone()?);
        Ok(AttachedProgram { hook: self.hook, refused: self.refused.clone(), link, counters })
    }

    /// Makes the program send wanted frames of `queue` to a socket that is, or will be, bound to
    /// it.
    ///
    /// # Errors
    /// The error of bpf(2).
    pub fn watch(&self, queue: u32, socket: BorrowedFd<'_>) -> io::Result<()> {
        self.loaded.watch(queue, socket)
    }

    /// Replaces the program's selection of wanted frames.
    ///
    /// # Errors
    /// `InvalidInput` for too many ports or addresses; otherwise the error of bpf(2).
    pub fn steer(&self, wanted: &Steer) -> io::Result<()> {
        self.loaded.steer(wanted)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // Where detaching is refused, closing the link's last descriptor does it.
        let _ = bpf::detach(self.link.as_fd());
    }
}

/// Attaches in the requested mode; `Auto` takes the second best where the driver refuses, but not
/// where another program is attached.
fn attach(
    program: BorrowedFd<'_>,
    interface: u32,
    hook: Hook,
) -> io::Result<(Hook, Option<String>, OwnedFd)> {
    let generic = || bpf::attach(program, interface, FLAG_GENERIC);
    if hook == Hook::Generic {
        return Ok((hook, None, generic()?));
    }
    match bpf::attach(program, interface, FLAG_DRIVER) {
        Ok(link) => Ok((Hook::Driver, None, link)),
        Err(error) if hook == Hook::Driver || occupied(&error) => Err(error),
        Err(error) => Ok((Hook::Generic, Some(error.to_string()), generic()?)),
    }
}

/// Whether an interface was refused because it has a program.
pub(super) fn occupied(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ResourceBusy | io::ErrorKind::AlreadyExists)
}
