//! One client of a broker: its remaining rights, and the changes made for it.

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use millstream_host::netlink::Netlink;

use super::peer::Client;
use super::served_connection::ServerState;
use super::{BrokerEvent, PeerIdentity, taken};
use crate::interfaces;
use crate::rights::message::{self, BrokerReply, BrokerRequest, RANGES_MAX, VERSION};
use crate::rights::policy::GrantPolicy;
use crate::rights::{Family, Rights, channel, locked};

/// The most sockets of one link; it needs one for each queue.
const SOCKETS_MAX: usize = 256;

/// A connection.
pub struct BrokerSession {
    socket: Arc<OwnedFd>,
    client: Arc<Client>,
    shared: Arc<ServerState>,
    link: Option<Link>,
    refusals: u64,
}

/// The link of a client.
struct Link {
    /// Link and interface, for people.
    what: String,
    interface: String,
    client: Arc<Client>,
    family: &'static Family,
    rights: Box<dyn Rights>,
    attached: bool,
    sockets: usize,
}

/// The answer and descriptors for the client, or the reason of a refusal.
type Answer = Result<(BrokerReply, Vec<OwnedFd>), Refusal>;

struct Refusal {
    errno: i32,
    reason: String,
}

impl BrokerSession {
    pub fn new(socket: Arc<OwnedFd>, client: Client, shared: Arc<ServerState>) -> Self {
        Self { socket, client: Arc::new(client), shared, link: None, refusals: 0 }
    }

    fn peer(&self) -> PeerIdentity {
        self.client.peer.clone()
    }

    /// Undoes all changes, and reports the end of the client's link.
    pub fn end(mut self, tell: &mut dyn FnMut(BrokerEvent)) {
        let Some(link) = self.link.take() else { return };
        let (what, interface) = (link.what.clone(), link.interface.clone());
        self.shared.alone(&interface, || drop(link));
        tell(BrokerEvent::Closed { peer: self.peer(), what });
    }

    /// Waits for one request and serves it; returns whether the connection stays. It ends when the
    /// client has gone, sends a request that cannot be understood, or does not take its answers.
    pub fn step(&mut self, tell: &mut dyn FnMut(BrokerEvent)) -> bool {
        let received = match channel::receive(self.socket.as_fd()) {
            Ok(Some(received)) => received,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return true,
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                let reason = "the message is too long, or has too many descriptors";
                refuse_unread(&self.socket, reason);
                return false;
            }
            Ok(None) | Err(_) => return false,
        };
        let request = match BrokerRequest::decode(&received.bytes) {
            Ok(request) => request,
            Err(error) => {
                let version = message::version_of(&received.bytes);
                let other = version.filter(|version| *version != VERSION).map(other_version);
                refuse_unread(&self.socket, &other.unwrap_or_else(|| error.to_string()));
                return false;
            }
        };
        let begins = matches!(request, BrokerRequest::Hello { .. });
        let (reply, along) = match self.answer(request, received.descriptors) {
            Ok(done) => done,
            Err(Refusal { errno, reason }) => {
                // A client that repeats a refused request must not fill a log.
                self.refusals += 1;
                if self.refusals.is_power_of_two() {
                    tell(BrokerEvent::Refused { peer: self.peer(), reason: reason.clone() });
                }
                (BrokerReply::Refused { errno, reason }, Vec::new())
            }
        };
        if let (true, Some(link)) = (begins, &self.link) {
            tell(BrokerEvent::Opened { peer: self.peer(), what: link.what.clone() });
        }
        let along: Vec<_> = along.iter().map(AsFd::as_fd).collect();
        channel::send(self.socket.as_fd(), &reply.encode(), &along).is_ok()
    }

    fn answer(&mut self, request: BrokerRequest, descriptors: Vec<OwnedFd>) -> Answer {
        let shared = &self.shared;
        match (request, &mut self.link) {
            (BrokerRequest::Hello { version, link, interface }, None) => {
                let begun = begin(&self.client, shared, version, &link, interface)?;
                self.link = Some(begun);
                done()
            }
            (BrokerRequest::Hello { .. }, Some(_)) => refuse(
                "this connection to the broker already has its link: open another connection for \
                 another link",
            ),
            (_, None) => refuse("the first request must name the process and the link"),
            (request, Some(link)) => {
                let interface = link.interface.clone();
                shared.alone(&interface, || link.answer(request, descriptors, &shared.policy))
            }
        }
    }
}

fn other_version(version: u16) -> String {
    format!("speaks version {VERSION}, not {version}: use the same millstream on both sides")
}

/// Answers a request that was not read.
pub fn refuse_unread(socket: &OwnedFd, reason: &str) {
    let reply = BrokerReply::Refused { errno: libc::EPERM, reason: reason.to_owned() };
    // A client that does not read gets no answer.
    let _ = channel::send(socket.as_fd(), &reply.encode(), &[]);
}

fn begin(
    client: &Arc<Client>,
    shared: &ServerState,
    version: u16,
    link: &str,
    interface: String,
) -> Result<Link, Refusal> {
    if version != VERSION {
        return Err(refusal(&other_version(version)));
    }
    let granted = shared.policy.granted_family(link, &interface);
    let family = granted.map_err(|reason| refusal(&reason))?;
    if !client.is_in_this_network() {
        return Err(refusal(
            "the process is in another network namespace than the broker: start a broker there",
        ));
    }
    let rights = (shared.open)(family, &interface, &client.peer)?;
    let what = format!("{} on {interface}", family.link);
    let client = Arc::clone(client);
    Ok(Link { what, interface, client, family, rights, attached: false, sockets: 0 })
}

impl Link {
    fn answer(
        &mut self,
        request: BrokerRequest,
        descriptors: Vec<OwnedFd>,
        policy: &GrantPolicy,
    ) -> Answer {
        match request {
            BrokerRequest::Hello { .. } => refuse("said twice"),
            BrokerRequest::Socket if self.sockets >= SOCKETS_MAX => refuse("too many sockets"),
            BrokerRequest::Socket => {
                self.sockets += 1;
                Ok((BrokerReply::Done, vec![self.rights.socket()?]))
            }
            BrokerRequest::AllowLocked { bytes } => {
                let most = policy.locked_bytes_max;
                if bytes > most {
                    return refuse(&format!(
                        "the broker allows a link to lock {} MiB: use fewer frame buffers, or \
                         start the broker with a larger --locked",
                        most >> 20
                    ));
                }
                let process = self.client.peer.pid;
                let before = locked::of(process)?;
                // The limit holds for any number of requests and connections.
                self.rights.allow_locked(locked::room(process, bytes, most)?)?;
                if !self.client.is_alive() {
                    // The number may have been reused by then.
                    locked::put_back(process, before);
                    return refuse("the process that connected has ended");
                }
                done()
            }
            BrokerRequest::BusyPoll(how) => {
                self.rights.busy_poll(self.own_socket(&descriptors)?, how)?;
                done()
            }
            BrokerRequest::Attach(_) if self.attached || !self.family.programs => {
                refuse("this link has a program already, or cannot have one")
            }
            BrokerRequest::Attach(wanted) => {
                let made = self.rights.attach(&wanted)?;
                self.attached = true;
                let refused = made.refused.unwrap_or_default();
                let reply = BrokerReply::Attached { hook: made.hook, refused };
                Ok((reply, vec![made.link, made.counters]))
            }
            BrokerRequest::Watch { queue } => {
                self.rights.watch(queue, self.own_socket(&descriptors)?)?;
                done()
            }
            BrokerRequest::Steer(wanted) => {
                let (addresses, broadcast) = of_this_machine()?;
                let kernel = [addresses, broadcast.clone()].concat();
                policy.steer(&wanted, &kernel).map_err(|reason| refusal(&reason))?;
                let uid = self.client.peer.uid;
                let taken = (uid != 0).then(|| taken::by_another(&wanted, uid, &broadcast));
                if let Some((port, owner)) = taken.flatten() {
                    return refuse(&format!(
                        "user {owner} already uses UDP port {port}: use another port"
                    ));
                }
                self.rights.steer(&wanted)?;
                done()
            }
            BrokerRequest::Channels { .. } if !policy.channels => refuse(
                "the broker does not allow changes of the number of queues: start it with --queues",
            ),
            BrokerRequest::Channels { count } => {
                Ok((BrokerReply::Queues(self.rights.channels(count)?), Vec::new()))
            }
            BrokerRequest::Ports => {
                let ports = policy.ports.iter().take(RANGES_MAX).cloned().collect();
                Ok((BrokerReply::Ports(ports), Vec::new()))
            }
        }
    }

    /// Returns the socket sent along: one, and of the link's family.
    fn own_socket<'a>(&self, along: &'a [OwnedFd]) -> Result<BorrowedFd<'a>, Refusal> {
        let family = i32::from(self.family.sockets.as_raw());
        match along {
            [one] if channel::is_socket_of(one, family) => Ok(one.as_fd()),
            _ => Err(refusal("the request must carry one socket of the link")),
        }
    }
}

/// Returns the kernel's addresses, including those of interfaces that are down, and the broadcast
/// addresses of their networks.
fn of_this_machine() -> io::Result<(Vec<Ipv4Addr>, Vec<Ipv4Addr>)> {
    let known = Netlink::open().and_then(|mut netlink| netlink.addresses());
    let known = known.map_err(io::Error::other)?;
    let up = interfaces::list()?;
    let broadcast = up.iter().filter_map(|one| one.broadcast).collect();
    Ok((known.iter().map(|one| one.address).collect(), broadcast))
}

fn done() -> Answer {
    Ok((BrokerReply::Done, Vec::new()))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rights::server::tests::{COUNTING, Fake};
    use rustix::process::{Pid, PidfdFlags, pidfd_open};
    use std::process::{Child, Command, Stdio};

    fn sleeper() -> (Child, Pid) {
        let child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let process = Pid::from_child(&child);
        (child, process)
    }

    /// The client has ended, and its number is another process's by the time it is served.
    #[test]
    fn what_a_stranger_was_allowed_instead_of_a_client_that_has_ended_is_taken_back() {
        let _counting = COUNTING.lock();
        let (mut ended, process) = sleeper();
        let process = pidfd_open(process, PidfdFlags::empty()).unwrap();
        drop(ended.stdin.take());
        ended.wait().unwrap();
        let (mut stranger, number) = sleeper();
        let number = number.as_raw_pid();
        // Little enough for any user to raise it.
        let before = libc::rlimit { rlim_cur: 4096, ..locked::of(number).unwrap() };
        locked::put_back(number, before);
        let peer = PeerIdentity { pid: number, uid: 0, groups: Vec::new() };
        let mut link = Link {
            what: "a test".to_owned(),
            interface: "veth0".to_owned(),
            client: Arc::new(Client { peer, process }),
            family: &crate::xdp::RIGHTS,
            rights: Box::new(Fake::raising(number)),
            attached: false,
            sockets: 0,
        };
        let policy = GrantPolicy::new("veth0", &[&crate::xdp::RIGHTS]);
        let wanted = BrokerRequest::AllowLocked { bytes: 8192 };
        let refused = link.answer(wanted, Vec::new(), &policy).expect_err("it has gone");
        assert_eq!(refused.reason, "the process that connected has ended");
        let after = locked::of(number).unwrap();
        assert_eq!((after.rlim_cur, after.rlim_max), (before.rlim_cur, before.rlim_max));
        drop(stranger.stdin.take());
        stranger.wait().unwrap();
    }
}
