//! The requesting side: a broker does the privileged steps and passes descriptors.

use std::io;
use std::ops::RangeInclusive;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

use super::message::{BrokerReply, BrokerRequest, MESSAGE_BYTES_MAX, VERSION};
use super::{Attach, AttachedProgram, BusyPoll, Rights, channel};
use crate::frame::Steer;

/// The longest that a broker may take to answer.
const ANSWER_TIMEOUT: Timespec = Timespec { tv_sec: 5, tv_nsec: 0 };

/// A broker that has agreed to act for one link on one interface.
#[derive(Debug)]
pub struct Broker {
    socket: OwnedFd,
    path: PathBuf,
}

impl Broker {
    /// Asks the broker at `path` to act for the link of that name.
    ///
    /// # Errors
    /// `NotFound` or `ConnectionRefused` when no broker listens there; a refusal, as
    /// `PermissionDenied`.
    pub fn connect(path: &Path, link: &str, interface: &str) -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        connect(&socket, &SocketAddrUnix::new(path)?)?;
        let mut broker = Self { socket, path: path.to_owned() };
        let (link, interface) = (link.to_owned(), interface.to_owned());
        broker.order(&BrokerRequest::Hello { version: VERSION, link, interface }, &[])?;
        Ok(broker)
    }

    /// Sends one request and receives its answer.
    fn ask(
        &mut self,
        request: &BrokerRequest,
        along: &[BorrowedFd<'_>],
    ) -> io::Result<(BrokerReply, Vec<OwnedFd>)> {
        let request = request.encode();
        if request.len() > MESSAGE_BYTES_MAX {
            return Err(io::Error::from_raw_os_error(libc::E2BIG));
        }
        // A broker that refused before the request has closed, but its answer can still be read.
        match channel::send(self.socket.as_fd(), &request, along) {
            Err(error) if has_gone(&error) => {}
            sent => sent?,
        }
        let mut wait = [PollFd::new(&self.socket, PollFlags::IN)];
        if rustix::io::retry_on_intr(|| poll(&mut wait, Some(&ANSWER_TIMEOUT)))? == 0 {
            return Err(self.failed(io::ErrorKind::TimedOut, "did not answer within 5 s"));
        }
        // The kernel reports once that a request was not read, then returns the earlier answer.
        let answer = match channel::receive(self.socket.as_fd()) {
            Err(error) if has_gone(&error) => channel::receive(self.socket.as_fd()),
            answer => answer,
        };
        let answer = match answer {
            Ok(Some(answer)) => answer,
            Err(error) if !has_gone(&error) => return Err(error),
            Ok(None) | Err(_) => {
                let what = "has ended: start `millstream host grant` again, then this program";
                return Err(self.failed(io::ErrorKind::BrokenPipe, what));
            }
        };
        match BrokerReply::decode(&answer.bytes) {
            Ok(BrokerReply::Refused { errno, reason }) => {
                let text = format!("the broker at {} says: {reason}", self.path.display());
                let kind = io::Error::from_raw_os_error(errno).kind();
                Err(io::Error::new(kind, BrokerError { errno, text }))
            }
            Ok(reply) => Ok((reply, answer.descriptors)),
            Err(error) => {
                let what = format!("is not a broker of protocol version {VERSION}: {error}");
                Err(self.failed(io::ErrorKind::InvalidData, &what))
            }
        }
    }

    /// Does a step whose answer holds nothing.
    fn order(&mut self, request: &BrokerRequest, along: &[BorrowedFd<'_>]) -> io::Result<()> {
        self.ask(request, along).map(drop)
    }

    /// Returns the error of an answer to another request.
    fn confused(&self) -> io::Error {
        self.failed(io::ErrorKind::InvalidData, "answered another request")
    }

    fn failed(&self, kind: io::ErrorKind, what: &str) -> io::Error {
        io::Error::new(kind, format!("the broker at {} {what}", self.path.display()))
    }

    /// Returns the descriptors of an answer, in the required number.
    fn these<const N: usize>(&self, descriptors: Vec<OwnedFd>) -> io::Result<[OwnedFd; N]> {
        descriptors.try_into().map_err(|_| {
            self.failed(io::ErrorKind::InvalidData, "sent another number of descriptors")
        })
    }
}

/// A broker's error message, with the errno of the step that failed.
#[derive(Debug, thiserror::Error)]
#[error("{text}")]
struct BrokerError {
    errno: i32,
    text: String,
}

/// Returns the errno of a failed privileged step, of this process or of a broker.
#[must_use]
pub fn errno(error: &io::Error) -> Option<i32> {
    let said = || error.get_ref()?.downcast_ref::<BrokerError>().map(|said| said.errno);
    error.raw_os_error().or_else(said)
}

fn has_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
}

impl Rights for Broker {
    fn holder(&self) -> String {
        format!("broker {}", self.path.display())
    }

    fn socket(&mut self) -> io::Result<OwnedFd> {
        let (_, descriptors) = self.ask(&BrokerRequest::Socket, &[])?;
        let [socket] = self.these(descriptors)?;
        Ok(socket)
    }

    fn allow_locked(&mut self, bytes: u64) -> io::Result<()> {
        self.order(&BrokerRequest::AllowLocked { bytes }, &[])
    }

    fn busy_poll(&mut self, socket: BorrowedFd<'_>, how: BusyPoll) -> io::Result<()> {
        self.order(&BrokerRequest::BusyPoll(how), &[socket])
    }

    fn attach(&mut self, wanted: &Attach) -> io::Result<AttachedProgram> {
        let (reply, descriptors) = self.ask(&BrokerRequest::Attach(*wanted), &[])?;
        let BrokerReply::Attached { hook, refused } = reply else { return Err(self.confused()) };
        let [link, counters] = self.these(descriptors)?;
        let refused = Some(refused).filter(|reason| !reason.is_empty());
        Ok(AttachedProgram { hook, refused, link, counters })
    }

    fn watch(&mut self, queue: u32, socket: BorrowedFd<'_>) -> io::Result<()> {
        self.order(&BrokerRequest::Watch { queue }, &[socket])
    }

    fn udp_ports(&mut self) -> io::Result<Vec<RangeInclusive<u16>>> {
        match self.ask(&BrokerRequest::Ports, &[])? {
            (BrokerReply::Ports(ports), _) => Ok(ports),
            _ => Err(self.confused()),
        }
    }

    fn steer(&mut self, wanted: &Steer) -> io::Result<()> {
        self.order(&BrokerRequest::Steer(wanted.clone()), &[])
    }

    fn channels(&mut self, count: u32) -> io::Result<u32> {
        match self.ask(&BrokerRequest::Channels { count }, &[])? {
            (BrokerReply::Queues(before), _) => Ok(before),
            _ => Err(self.confused()),
        }
    }
}
