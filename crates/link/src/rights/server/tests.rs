//! Tests of a broker and its clients over a real socket, with steps that need no rights.

use super::*;
use crate::frame::Steer;
use crate::rights::message::{BrokerReply, BrokerRequest, MESSAGE_BYTES_MAX, VERSION};
use crate::rights::{Attach, AttachedProgram, Broker, BusyPoll, Hook, channel, errno, locked};
use rustix::process::Pid;
use std::ops::RangeInclusive;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// The number of open links, to see them undone.
static OPEN: AtomicUsize = AtomicUsize::new(0);

/// Locked by a test that counts them.
pub static COUNTING: Mutex<()> = Mutex::new(());

/// A number of queues for which the driver takes long.
const SLOW: u32 = 7;

/// Steps that return `/dev/null` for every descriptor.
#[derive(Default)]
pub struct Fake {
    /// The process whose limit is really raised.
    raises: Option<i32>,
}

impl Fake {
    /// Creates steps that let the process lock the memory that a client requests.
    pub fn raising(process: i32) -> Self {
        OPEN.fetch_add(1, Ordering::SeqCst);
        Self { raises: Some(process) }
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        OPEN.fetch_sub(1, Ordering::SeqCst);
    }
}

fn null() -> io::Result<OwnedFd> {
    Ok(std::fs::File::open("/dev/null")?.into())
}

impl Rights for Fake {
    fn holder(&self) -> String {
        "fake".into()
    }
    fn socket(&mut self) -> io::Result<OwnedFd> {
        null()
    }
    fn allow_locked(&mut self, bytes: u64) -> io::Result<()> {
        let Some(process) = self.raises else { return Ok(()) };
        let before = locked::of(process)?.rlim_cur;
        locked::raise(Pid::from_raw(process), bytes)?;
        assert_eq!(locked::of(process)?.rlim_cur, before + bytes);
        Ok(())
    }
    fn busy_poll(&mut self, _: BorrowedFd<'_>, _: BusyPoll) -> io::Result<()> {
        Ok(())
    }
    fn attach(&mut self, _: &Attach) -> io::Result<AttachedProgram> {
        Ok(AttachedProgram {
            hook: Hook::Generic,
            refused: Some("no".into()),
            link: null()?,
            counters: null()?,
        })
    }
    fn watch(&mut self, _: u32, _: BorrowedFd<'_>) -> io::Result<()> {
        Ok(())
    }
    fn udp_ports(&mut self) -> io::Result<Vec<RangeInclusive<u16>>> {
        Ok(Vec::new())
    }
    fn steer(&mut self, _: &Steer) -> io::Result<()> {
        Ok(())
    }
    fn channels(&mut self, count: u32) -> io::Result<u32> {
        if count == SLOW {
            std::thread::sleep(Duration::from_millis(300));
        }
        Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP))
    }
}

fn open(_: &'static Family, _: &str, _: &PeerIdentity) -> io::Result<Box<dyn Rights>> {
    OPEN.fetch_add(1, Ordering::SeqCst);
    Ok(Box::new(Fake::default()))
}

/// A broker on a thread; it ends when this is dropped.
struct Running {
    path: PathBuf,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Vec<BrokerEvent>>>,
    _folder: tempfile::TempDir,
}

impl Running {
    fn start(policy: GrantPolicy) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("grant.sock");
        let mut server = Server::listen(&path, policy, open).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = std::thread::spawn(move || {
            let mut events = Vec::new();
            while !stopped.load(Ordering::SeqCst) || !server.serving.is_empty() {
                server.step(Duration::from_millis(5), &mut |event| events.push(event)).unwrap();
            }
            events
        });
        Self { path, stop, thread: Some(thread), _folder: folder }
    }

    /// Returns the reported events, once every client has gone.
    fn end(mut self) -> Vec<BrokerEvent> {
        self.stop.store(true, Ordering::SeqCst);
        self.thread.take().unwrap().join().unwrap()
    }

    fn connect(&self, interface: &str) -> io::Result<Broker> {
        Broker::connect(&self.path, "xdp", interface)
    }
}

fn policy() -> GrantPolicy {
    let mut policy = GrantPolicy::new("veth0", &[&crate::xdp::RIGHTS]);
    policy.users = vec![rustix::process::getuid().as_raw()];
    policy.channels = true;
    policy
}

/// Opens a connection that can send any bytes.
fn raw(path: &Path) -> OwnedFd {
    let kind = SocketType::SEQPACKET;
    let socket = socket_with(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None).unwrap();
    connect(&socket, &SocketAddrUnix::new(path).unwrap()).unwrap();
    socket
}

#[test]
fn a_client_gets_descriptors_and_leaves_nothing() {
    let _counting = COUNTING.lock();
    let running = Running::start(policy());
    let mut broker = running.connect("veth0").unwrap();
    drop(broker.socket().unwrap());
    let attached = broker.attach(&Attach::default()).unwrap();
    assert_eq!((attached.hook, attached.refused.as_deref()), (Hook::Generic, Some("no")));
    broker.steer(&Steer { udp_ports: vec![49200], ..Steer::default() }).unwrap();
    assert_eq!(OPEN.load(Ordering::SeqCst), 1);
    drop(broker);
    let events = running.end();
    assert_eq!(OPEN.load(Ordering::SeqCst), 0, "a client that has gone is cleared up after");
    let told: Vec<_> = events.iter().map(BrokerEvent::to_string).collect();
    assert!(told[0].ends_with("has xdp on veth0"), "{told:?}");
    assert!(told[1].ends_with("has ended; xdp on veth0 is free again"), "{told:?}");
}

#[test]
fn what_is_not_granted_is_refused_with_the_reason() {
    let _counting = COUNTING.lock();
    let running = Running::start(policy());
    let error = running.connect("eth0").unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
    let expected = "says: the broker does not grant the interface eth0, only veth0";
    assert!(error.to_string().ends_with(expected), "{error}");
    let mut broker = running.connect("veth0").unwrap();
    let error = broker.steer(&Steer { udp_ports: vec![53], ..Steer::default() }).unwrap_err();
    assert!(error.to_string().contains("does not grant UDP port 53"), "{error}");
    let error = broker.allow_locked(2 << 30).unwrap_err();
    assert!(error.to_string().contains("allows a link to lock 1024 MiB"), "{error}");
    let error = broker.watch(0, null().unwrap().as_fd()).unwrap_err();
    assert!(error.to_string().contains("the request must carry one socket of the link"), "{error}");
    let error = broker.channels(4).unwrap_err();
    assert_eq!(errno(&error), Some(libc::EOPNOTSUPP), "what failed keeps its errno: {error}");
    broker.attach(&Attach::default()).unwrap();
    assert!(broker.attach(&Attach::default()).is_err(), "one program a link");
}

#[test]
fn a_client_learns_which_ports_it_may_take() {
    let _counting = COUNTING.lock();
    let mut policy = policy();
    policy.ports = vec![49153..=49400, 7..=7];
    let running = Running::start(policy);
    let mut broker = running.connect("veth0").unwrap();
    assert_eq!(broker.udp_ports().unwrap(), [49153..=49400, 7..=7]);
    broker.steer(&Steer { udp_ports: vec![49400, 7], ..Steer::default() }).unwrap();
    drop(broker);
    running.end();
}

/// The gateway's, for instance; or one to which a router forwards.
#[test]
fn an_address_that_is_not_granted_is_refused() {
    let _counting = COUNTING.lock();
    let mut policy = policy();
    policy.addresses = vec!["192.0.2.0/28".parse().unwrap()];
    let running = Running::start(policy);
    let mut broker = running.connect("veth0").unwrap();
    let mut steer = |address: [u8; 4], own_addresses| {
        let addresses = vec![address.into()];
        broker.steer(&Steer { addresses, own_addresses, ..Steer::default() })
    };
    for own_addresses in [false, true] {
        steer([192, 0, 2, 15], own_addresses).unwrap();
        let error = steer([192, 0, 2, 16], own_addresses).unwrap_err().to_string();
        assert!(error.ends_with("start the broker with --network 192.0.2.16"), "{error}");
    }
    steer([127, 0, 0, 1], false).unwrap();
    drop(broker);
    running.end();
}

#[test]
fn a_slow_driver_keeps_the_clients_of_other_interfaces_waiting_for_nothing() {
    let _counting = COUNTING.lock();
    let mut policy = policy();
    policy.interfaces.push("veth1".to_owned());
    let running = Running::start(policy);
    let [mut slow, mut other] = ["veth0", "veth1"].map(|name| running.connect(name).unwrap());
    let (tell, told) = std::sync::mpsc::channel();
    let changing = std::thread::spawn(move || {
        tell.send(()).unwrap();
        assert!(slow.channels(SLOW).is_err());
        slow
    });
    told.recv().unwrap();
    let mut answers = 0;
    while !changing.is_finished() {
        other.steer(&Steer::default()).unwrap();
        answers += 1;
    }
    let slow = changing.join().unwrap();
    assert!(answers > 3, "{answers} answers while the driver was busy");
    drop((slow, other));
    running.end();
}

#[test]
fn hostile_clients_are_refused_once_and_the_others_served() {
    let _counting = COUNTING.lock();
    let running = Running::start(policy());
    let silent = raw(&running.path);
    let early = [BrokerRequest::Channels { count: 1 }, BrokerRequest::Socket].map(|r| r.encode());
    for bytes in [&[0xff; 10][..], &[0; MESSAGE_BYTES_MAX + 1], &early[0], &early[1]] {
        let hostile = raw(&running.path);
        rustix::net::send(&hostile, bytes, rustix::net::SendFlags::empty()).unwrap();
        let answer = channel::receive(hostile.as_fd()).unwrap().expect("one answer");
        let reply = BrokerReply::decode(&answer.bytes).unwrap();
        assert!(matches!(reply, BrokerReply::Refused { .. }), "{reply:?}");
    }
    // A client that sends requests and never reads.
    let deaf = raw(&running.path);
    let hello =
        BrokerRequest::Hello { version: VERSION, link: "xdp".into(), interface: "eth9".into() };
    let hello = hello.encode();
    while rustix::net::send(&deaf, &hello, rustix::net::SendFlags::NOSIGNAL).is_ok() {}
    let mut broker = running.connect("veth0").unwrap();
    broker.steer(&Steer::default()).unwrap();
    drop((silent, deaf, broker));
    running.end();
    assert_eq!(OPEN.load(Ordering::SeqCst), 0);
}

#[test]
fn one_user_cannot_take_all_connections() {
    let _counting = COUNTING.lock();
    let running = Running::start(policy());
    let mut held: Vec<_> = (0..SESSIONS_OF_USER_MAX).map(|_| raw(&running.path)).collect();
    let error = running.connect("veth0").unwrap_err().to_string();
    assert!(error.ends_with("too many connections; close some"), "{error}");
    drop(held.pop());
    // The broker notices the closed connection in a later step.
    while running.connect("veth0").is_err() {}
    drop(held);
    running.end();
}

#[test]
fn the_socket_of_a_killed_broker_is_replaced_and_that_of_a_living_one_not() {
    let _counting = COUNTING.lock();
    let running = Running::start(policy());
    let error = Server::listen(&running.path, policy(), open).err().unwrap();
    assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    let path = running.path.clone();
    let stale = running._folder.path().join("stale.sock");
    // What a killed broker leaves. A dropped listener would not do: a process that another test is
    // starting has a copy of it until it executes its program.
    let (kind, mode) = (rustix::fs::FileType::Socket, rustix::fs::Mode::RWXU);
    rustix::fs::mknodat(rustix::fs::CWD, &stale, kind, mode, 0).unwrap();
    let listened = Server::listen(&stale, policy(), open);
    assert!(listened.is_ok() && stale.exists());
    drop(listened);
    assert!(!stale.exists());
    running.end();
    assert!(!path.exists(), "gone with its broker");
    let error = Broker::connect(&path, "xdp", "veth0").unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
}

#[test]
fn a_name_that_leads_elsewhere_by_now_is_not_opened_to_all() {
    let folder = tempfile::tempdir().unwrap();
    let (secret, path) = (folder.path().join("secret"), folder.path().join("grant.sock"));
    fs::write(&secret, "").unwrap();
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
    std::os::unix::fs::symlink(&secret, &path).unwrap();
    assert!(open_to_all(&path).is_err());
    fs::remove_file(&path).unwrap();
    fs::hard_link(&secret, &path).unwrap();
    assert_eq!(open_to_all(&path).unwrap_err().kind(), io::ErrorKind::PermissionDenied);
    assert_eq!(fs::metadata(&secret).unwrap().permissions().mode() & 0o777, 0o600);
    let running = Running::start(policy());
    assert_eq!(fs::metadata(&running.path).unwrap().permissions().mode() & 0o777, 0o666);
    running.end();
}
