//! This process does the privileged steps by itself, or as a broker for another one.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use rustix::process::Pid;

use super::{Attach, Attached, BusyPoll, Family, Rights, locked};
use crate::frame::Steer;

/// The privileged steps of one link, done here.
#[derive(Debug)]
pub struct Direct {
    family: Family,
    interface: u32,
    /// The process to act for; none: this one.
    client: Option<Pid>,
}

impl Direct {
    /// Steps for a link on an interface, of this process or of the process `client`.
    ///
    /// # Errors
    /// `NotFound` (ENODEV) when there is no such interface in this network namespace.
    pub fn new(family: Family, interface: &str, client: Option<Pid>) -> io::Result<Self> {
        let any = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
        let interface = rustix::net::netdevice::name_to_index(&any, interface)?;
        Ok(Self { family, interface, client })
    }
}

impl Rights for Direct {
    fn holder(&self) -> String {
        "direct".to_owned()
    }

    fn socket(&mut self) -> io::Result<OwnedFd> {
        let family = match self.family {
            Family::Packet => AddressFamily::PACKET,
            Family::Xdp => AddressFamily::XDP,
        };
        Ok(socket_with(family, SocketType::RAW, SocketFlags::CLOEXEC, None)?)
    }

    fn allow_locked(&mut self, bytes: u64) -> io::Result<()> {
        locked::raise(self.client, bytes)
    }

    fn busy_poll(&mut self, _socket: BorrowedFd<'_>, _how: BusyPoll) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn attach(&mut self, _wanted: &Attach) -> io::Result<Attached> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn watch(&mut self, _queue: u32, _socket: BorrowedFd<'_>) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn steer(&mut self, _wanted: &Steer) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn channels(&mut self, _count: u32) -> io::Result<u32> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
