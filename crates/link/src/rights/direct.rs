//! Privileged steps that this process does, for itself or as a broker for another process.

use std::io;
use std::ops::RangeInclusive;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use rustix::process::Pid;

use super::{Attach, AttachedProgram, BusyPoll, Family, Rights, locked};
use crate::frame::Steer;
use crate::queues::Queues;
use crate::xdp::privileged::{self, Program};

/// The privileged steps of one link, done by this process.
#[derive(Debug)]
pub struct DirectSteps {
    family: &'static Family,
    interface: u32,
    /// The process to act for. `None`: this one.
    client: Option<Pid>,
    /// The program on the interface for an AF_XDP link. Dropped before the queues are restored:
    /// drivers refuse to change them under a program.
    program: Option<Program>,
    queues: Queues,
    /// Queues with a socket.
    watched: Vec<u32>,
}

impl DirectSteps {
    /// Creates the steps for a link on an interface, for this process or for the process `client`.
    ///
    /// # Errors
    /// `NotFound` (ENODEV) when there is no such interface in this network namespace.
    pub fn new(family: &'static Family, interface: &str, client: Option<Pid>) -> io::Result<Self> {
        let any = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
        let queues = Queues::new(interface);
        let interface = rustix::net::netdevice::name_to_index(&any, interface)?;
        Ok(Self { family, interface, client, program: None, queues, watched: Vec::new() })
    }

    fn program(&self) -> io::Result<&Program> {
        self.program.as_ref().ok_or_else(|| io::Error::other("no program is attached"))
    }
}

impl Rights for DirectSteps {
    fn holder(&self) -> String {
        super::DIRECT.to_owned()
    }

    fn socket(&mut self) -> io::Result<OwnedFd> {
        Ok(socket_with(self.family.sockets, SocketType::RAW, SocketFlags::CLOEXEC, None)?)
    }

    fn allow_locked(&mut self, bytes: u64) -> io::Result<()> {
        locked::raise(self.client, bytes)
    }

    fn busy_poll(&mut self, socket: BorrowedFd<'_>, how: BusyPoll) -> io::Result<()> {
        privileged::busy_poll(socket, how)
    }

    fn attach(&mut self, wanted: &Attach) -> io::Result<AttachedProgram> {
        let program = Program::attach(self.interface, wanted)?;
        self.program.insert(program).attached()
    }

    fn watch(&mut self, queue: u32, socket: BorrowedFd<'_>) -> io::Result<()> {
        self.program()?.watch(queue, socket)?;
        if !self.watched.contains(&queue) {
            self.watched.push(queue);
        }
        Ok(())
    }

    fn udp_ports(&mut self) -> io::Result<Vec<RangeInclusive<u16>>> {
        Ok(Vec::new())
    }

    fn steer(&mut self, wanted: &Steer) -> io::Result<()> {
        self.program()?.steer(wanted)?;
        self.queues.steer_ports(&wanted.udp_ports, &self.watched)
    }

    fn channels(&mut self, count: u32) -> io::Result<u32> {
        self.queues.set_count(count)
    }
}
