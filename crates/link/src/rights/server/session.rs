//! One client of a broker: what it may still ask, and what was done for it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use super::{Event, Open, Peer, peer, taken};
use crate::interfaces;
use crate::rights::message::{Reply, Request, VERSION, hook_number};
use crate::rights::policy::Policy;
use crate::rights::{Family, Rights, channel, locked};

/// Sockets of one link; it needs one a queue.
const SOCKETS_MAX: usize = 256;

/// A connection.
pub struct Session {
    socket: OwnedFd,
    pub peer: Peer,
    link: Option<Link>,
}

/// What a client has.
struct Link {
    /// Link and interface, for people.
    what: String,
    peer: Peer,
    family: Family,
    rights: Box<dyn Rights>,
    attached: bool,
    sockets: usize,
}

/// What was done, or the reason of a refusal.
type Answer = Result<Done, Refusal>;

/// What the client is to be told, and given.
#[derive(Default)]
struct Done {
    value: u32,
    note: String,
    descriptors: Vec<OwnedFd>,
}

struct Refusal {
    errno: i32,
    reason: String,
}

impl Session {
    pub fn new(socket: OwnedFd, peer: Peer) -> Self {
        Self { socket, peer, link: None }
    }

    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Undoes everything; what the client had.
    pub fn end(&mut self) -> Option<String> {
        self.link.take().map(|link| link.what)
    }

    /// Answers a request that was not read.
    pub fn refuse(&self, reason: &str) {
        let reply = Reply::Refused { errno: libc::EPERM, reason: reason.to_owned() };
        // Whoever does not listen is not told.
        let _ = channel::send(self.socket.as_fd(), &reply.encode(), &[]);
    }

    /// One request; whether the connection stays. It ends when the client has gone, says what
    /// cannot be understood, or does not take its answers.
    pub fn turn(&mut self, policy: &Policy, open: Open, tell: &mut dyn FnMut(Event)) -> bool {
        let received = match channel::receive(self.socket.as_fd()) {
            Ok(Some(received)) => received,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return true,
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                self.refuse("the message is too long, or too many descriptors came along");
                return false;
            }
            Ok(None) | Err(_) => return false,
        };
        let request = match Request::decode(&received.bytes) {
            Ok(request) => request,
            Err(error) => {
                self.refuse(&error.to_string());
                return false;
            }
        };
        let begins = matches!(request, Request::Hello { .. });
        let answer = self.answer(request, received.descriptors, policy, open);
        let (reply, along) = match answer {
            Ok(done) => (Reply::Done { value: done.value, note: done.note }, done.descriptors),
            Err(Refusal { errno, reason }) => {
                tell(Event::Refused { peer: self.peer.clone(), reason: reason.clone() });
                (Reply::Refused { errno, reason }, Vec::new())
            }
        };
        if let (true, Some(link)) = (begins, &self.link) {
            tell(Event::Opened { peer: self.peer.clone(), what: link.what.clone() });
        }
        let along: Vec<_> = along.iter().map(AsFd::as_fd).collect();
        channel::send(self.socket.as_fd(), &reply.encode(), &along).is_ok()
    }

    fn answer(
        &mut self,
        request: Request,
        descriptors: Vec<OwnedFd>,
        policy: &Policy,
        open: Open,
    ) -> Answer {
        match (request, &mut self.link) {
            (Request::Hello { version, family, interface }, None) => {
                self.link = Some(begin(&self.peer, policy, open, version, family, &interface)?);
                done(0)
            }
            (Request::Hello { .. }, Some(_)) => refuse("this connection has its link already"),
            (_, None) => refuse("the first request must say who asks for what"),
            (request, Some(link)) => link.answer(request, descriptors, policy),
        }
    }
}

fn begin(
    peer: &Peer,
    policy: &Policy,
    open: Open,
    version: u16,
    family: Family,
    interface: &str,
) -> Result<Link, Refusal> {
    if version != VERSION {
        let other = format!("speaks version {VERSION}, not {version}: use one millstream");
        return Err(refusal(&other));
    }
    policy.link(family, interface).map_err(|reason| refusal(&reason))?;
    if !peer::is_in_this_network(peer.pid) {
        return Err(refusal("the process lives in another network namespace than the broker"));
    }
    let rights = open(family, interface, peer)?;
    let what = format!("{} on {interface}", family.name());
    let peer = peer.clone();
    Ok(Link { what, peer, family, rights, attached: false, sockets: 0 })
}

impl Link {
    fn answer(&mut self, request: Request, descriptors: Vec<OwnedFd>, policy: &Policy) -> Answer {
        match request {
            Request::Hello { .. } => refuse("said twice"),
            Request::Socket if self.sockets >= SOCKETS_MAX => refuse("too many sockets"),
            Request::Socket => {
                self.sockets += 1;
                Ok(Done { descriptors: vec![self.rights.socket()?], ..Done::default() })
            }
            Request::AllowLocked { bytes } => {
                let most = policy.locked_bytes_max;
                if bytes > most {
                    return refuse(&format!("{} MiB may be locked; use fewer frames", most >> 20));
                }
                if !peer::is_alive(&self.peer) {
                    return refuse("the process that connected has gone");
                }
                // However often it asks, and on however many connections.
                let room = locked::room(self.peer.pid, bytes, most)?;
                self.rights.allow_locked(room)?;
                done(0)
            }
            Request::BusyPoll(how) => {
                self.rights.busy_poll(self.own_socket(&descriptors)?, how)?;
                done(0)
            }
            Request::Attach(_) if self.attached || self.family != Family::Xdp => {
                refuse("one program a link, and only for xdp")
            }
            Request::Attach(wanted) => {
                let made = self.rights.attach(&wanted)?;
                self.attached = true;
                Ok(Done {
                    value: hook_number(made.hook),
                    note: made.refused.unwrap_or_default(),
                    descriptors: vec![made.link, made.counters],
                })
            }
            Request::Watch { queue } => {
                self.rights.watch(queue, self.own_socket(&descriptors)?)?;
                done(0)
            }
            Request::Steer(wanted) => {
                let found = interfaces::list()?;
                let broadcast: Vec<_> = found.iter().filter_map(|one| one.broadcast).collect();
                let kernel: Vec<_> = found.iter().map(|one| one.address).collect();
                let kernel = [kernel, broadcast.clone()].concat();
                policy.steer(&wanted, &kernel).map_err(|reason| refusal(&reason))?;
                let uid = self.peer.uid;
                let taken = (uid != 0).then(|| taken::by_another(&wanted, uid, &broadcast));
                if let Some((port, owner)) = taken.flatten() {
                    return refuse(&format!("UDP port {port} is in use by user {owner}"));
                }
                self.rights.steer(&wanted)?;
                done(0)
            }
            Request::Channels { .. } if !policy.channels => {
                refuse("the number of queues is not granted; grant it with --channels")
            }
            Request::Channels { count } => done(self.rights.channels(count)?),
        }
    }

    /// The socket that came along: one, and of the link's family.
    fn own_socket<'a>(&self, along: &'a [OwnedFd]) -> Result<BorrowedFd<'a>, Refusal> {
        let family = match self.family {
            Family::Packet => libc::AF_PACKET,
            Family::Xdp => libc::AF_XDP,
        };
        match along {
            [one] if channel::is_socket_of(one, family) => Ok(one.as_fd()),
            _ => Err(refusal("one socket of the link must come along")),
        }
    }
}

fn done(value: u32) -> Answer {
    Ok(Done { value, ..Done::default() })
}

fn refuse(reason: &str) -> Answer {
    Err(refusal(reason))
}

fn refusal(reason: &str) -> Refusal {
    Refusal { errno: libc::EPERM, reason: reason.to_owned() }
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Self {
        let errno = error.raw_os_error().unwrap_or(libc::EIO);
        Self { errno, reason: error.to_string() }
    }
}
