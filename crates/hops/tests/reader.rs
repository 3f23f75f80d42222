//! Readings of real hops: sockets, queues and programs in network namespaces of their own.

use millstream_cpu::usage::thread_cpu_time;
use millstream_hops::HopReader;
use millstream_host::netlink::{Netlink, PortShape, QueueOrder};
use millstream_testkit::netns::{INTERFACE, Namespace, PairOptions, VethPair};
use millstream_watch::{HopReading, ThreadReading};
use rustix::net::sockopt::set_socket_recv_buffer_size;
use rustix::process::{Pid, Signal, kill_process};
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// The usual time between two readings.
const PAUSE: Duration = Duration::from_millis(20);

/// Reads until `is_it`.
fn read_until(reader: &mut HopReader, is_it: impl Fn(&HopReading) -> bool) -> HopReading {
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        let reading = reader.read(0);
        if is_it(&reading) {
            return reading;
        }
        assert!(Instant::now() < end, "{reading:#?}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn pair() -> Option<VethPair> {
    VethPair::new(PairOptions::default())
}

#[test]
fn a_socket_that_nobody_reads_shows_what_waits_and_each_datagram_that_it_dropped() {
    const SENT: u64 = 300;
    let Some(pair) = pair() else { return };
    let end = SocketAddrV4::new(pair.right.address, 7000);
    let names = [INTERFACE.to_owned()];
    let (socket, mut reader) = pair.right.run(|| {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, end.port())).unwrap();
        set_socket_recv_buffer_size(&socket, 20_000).unwrap();
        (socket, HopReader::open(None, &names).unwrap())
    });
    assert_eq!(reader.read(0).sockets, [], "no flow is followed yet");
    reader.follow(&[end]);
    let before = reader.read(0);
    let sender = pair.left.run(|| UdpSocket::bind((pair.left.address, 0)).unwrap());
    let send = || assert_eq!(sender.send_to(&[7; 500], end).unwrap(), 500);
    send();
    let one = read_until(&mut reader, |reading| reading.sockets[0].queued_bytes > 0);
    let waiting =
        |reading: &HopReading| reading.sockets[0].queued_bytes / one.sockets[0].queued_bytes;
    (1..SENT).for_each(|_| send());
    let full =
        read_until(&mut reader, |reading| reading.sockets[0].dropped + waiting(reading) == SENT);
    let no_room = |reading: &HopReading| reading.stack.udp_no_room.unwrap();
    assert_eq!(no_room(&full) - no_room(&before), full.sockets[0].dropped);
    socket.set_nonblocking(true).unwrap();
    let read = (0..).take_while(|_| socket.recv(&mut [0; 500]).is_ok()).count() as u64;
    let after = read_until(&mut reader, |reading| reading.sockets[0].queued_bytes == 0);
    assert_eq!((read, after.sockets[0].dropped), (waiting(&full), SENT - read));
    let [socket] = &after.sockets[..] else { panic!("{:?}", after.sockets) };
    assert_eq!((socket.local.port(), socket.remote), (7000, None));
    assert_eq!((socket.pid, socket.send_queued_bytes), (Some(std::process::id()), 0));
    assert_eq!(socket.buffer_bytes, 40_000, "twice what was asked for");
    assert_eq!(after.interfaces[0].name, INTERFACE);
    assert!(after.backlog_dropped.is_some() && after.stolen_ns.is_some());
    assert_eq!(after.interfaces[0].ring_full, Some(0), "a veth has no ring");
    assert_eq!(reader.lacks(), [""; 0], "root sees all there is");
}

#[test]
fn a_queue_that_is_full_on_the_way_out_shows_each_packet_that_it_dropped() {
    const SENT: u64 = 200;
    let Some(pair) = pair() else { return };
    let end = (pair.right.address, 7000);
    let receiver = pair.right.run(|| UdpSocket::bind(end).unwrap());
    receiver.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    let opened = pair.left.run(|| {
        // Neighbour discovery would be dropped, too; a kernel without IPv6 has no file.
        let file = format!("/proc/sys/net/ipv6/conf/{INTERFACE}/disable_ipv6");
        let _ = std::fs::write(file, "1");
        let mut netlink = Netlink::open().unwrap();
        let index = netlink.interface(INTERFACE).unwrap().index;
        let shape = PortShape {
            rate_bps: 400_000,
            overhead: 0,
            least: 64,
            credit: Duration::from_millis(1),
            order: QueueOrder::Arrival { limit: 10 },
        };
        let sender = UdpSocket::bind((pair.left.address, 0)).unwrap();
        // The neighbour is resolved before its packets wait.
        sender.send_to(&[], end).unwrap();
        receiver.recv(&mut [0; 9]).unwrap();
        if let Err(error) = netlink.shape(index, &shape) {
            println!("skipped: {error}");
            return None;
        }
        Some((sender, HopReader::open(None, &[INTERFACE.into()]).unwrap()))
    });
    let Some((sender, mut reader)) = opened else { return };
    let queue = |reading: &HopReading| reading.interfaces[0].queue_dropped;
    assert_eq!(queue(&reader.read(0)), Some(0));
    for _ in 0..SENT {
        sender.send_to(&[7; 500], end).unwrap();
    }
    let came = (0..).take_while(|_| receiver.recv(&mut [0; 500]).is_ok()).count() as u64;
    assert!(came < SENT, "all came");
    let after = read_until(&mut reader, |reading| queue(reading) > Some(0));
    assert_eq!(queue(&after), Some(SENT - came));
}

/// Starts this test program as one that waits for datagrams at a port of a namespace.
fn program(inside: &Namespace, port: u16) -> Child {
    let mut command = inside.command(std::env::current_exe().unwrap().to_str().unwrap());
    command.args(["--exact", "the_program_that_is_watched", "--nocapture"]);
    command.env("MILLSTREAM_TEST_PORT", port.to_string()).stdout(Stdio::null());
    command.spawn().unwrap()
}

/// Not a test by itself: [`program`] runs it.
#[test]
fn the_program_that_is_watched() {
    let Ok(port) = std::env::var("MILLSTREAM_TEST_PORT") else { return };
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port.parse().unwrap())).unwrap();
    let body = move || while socket.recv(&mut [0; 9]).is_ok() {};
    let _ = std::thread::Builder::new().name("reader".into()).spawn(body).unwrap().join();
}

#[test]
fn a_program_in_a_namespace_of_its_own_is_seen_with_its_socket_its_reader_and_a_stop() {
    let Some(pair) = pair() else { return };
    let mut child = program(&pair.right, 7001);
    let pid = child.id();
    let thread = |reading: &HopReading| -> Option<ThreadReading> {
        reading.threads.iter().find(|thread| thread.name == "reader").cloned()
    };
    let mut reader = HopReader::open(Some(pid), &[]).unwrap();
    let waits = read_until(&mut reader, |reading| {
        thread(reading).is_some_and(|thread| thread.reads.is_some() && thread.state == 'S')
    });
    let names: Vec<_> = waits.interfaces.iter().map(|one| one.name.as_str()).collect();
    let [socket] = &waits.sockets[..] else { panic!("{:?}", waits.sockets) };
    let found = thread(&waits).unwrap();
    let process = Pid::from_raw(pid as i32).unwrap();
    kill_process(process, Signal::STOP).unwrap();
    let stopped = read_until(&mut reader, |reading| thread(reading).unwrap().state == 'T');
    // A datagram waits, as nobody reads it.
    let sender = pair.left.run(|| UdpSocket::bind((pair.left.address, 0)).unwrap());
    sender.send_to(&[7; 5], (pair.right.address, 7001)).unwrap();
    read_until(&mut reader, |reading| reading.sockets[0].queued_bytes > 0);
    kill_process(process, Signal::CONT).unwrap();
    let runs = read_until(&mut reader, |reading| {
        reading.sockets[0].queued_bytes == 0 && thread(reading).unwrap().state == 'S'
    });
    child.kill().unwrap();
    child.wait().unwrap();
    let ended = read_until(&mut reader, |reading| reading.threads.is_empty());
    assert_eq!((socket.local.port(), socket.pid), (7001, Some(pid)));
    assert_eq!((found.pid, found.reads), (pid, Some(socket.inode)));
    assert!(thread(&runs).unwrap().cpu_ns >= thread(&stopped).unwrap().cpu_ns);
    assert!(names.contains(&"lo") && names.contains(&INTERFACE), "{names:?}");
    assert_eq!(ended.sockets, []);
}

#[test]
fn another_users_program_leaves_open_what_the_sentences_say() {
    let Some(alone) = Namespace::alone() else { return };
    let mut child = program(&alone, 7002);
    let pid = child.id();
    let end = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 7002);
    let (reading, lacks, refusal) = alone.run(|| {
        let nobody: libc::uid_t = 65534;
        // SAFETY: changes the user of this thread alone, which ends with this job.
        let done = unsafe { libc::syscall(libc::SYS_setresuid, nobody, nobody, nobody) };
        assert_eq!(done, 0);
        let mut reader = HopReader::open(None, &["lo".into()]).unwrap();
        reader.follow(&[end]);
        let reading = read_until(&mut reader, |reading| !reading.sockets.is_empty());
        (reading, reader.lacks(), HopReader::open(Some(pid), &[]).unwrap_err().to_string())
    });
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!((reading.sockets[0].pid, reading.threads), (None, vec![]));
    let start = "whose socket 0.0.0.0:7002 is, is not visible";
    assert!(lacks.len() == 1 && lacks[0].starts_with(start), "{lacks:?}");
    assert!(lacks[0].contains("CAP_SYS_PTRACE"), "{lacks:?}");
    let start = format!("cannot see the network of process {pid}");
    assert!(refusal.starts_with(&start) && refusal.ends_with("run with sudo"), "{refusal}");
}

#[test]
fn an_interface_that_is_gone_counts_nothing_until_it_is_made_again() {
    let Some(alone) = Namespace::alone() else { return };
    let make = || alone.sh("ip link add one type veth peer other");
    make();
    let error = alone.run(|| HopReader::open(None, &["two".into()]).unwrap_err()).to_string();
    assert!(error.starts_with("there is no network interface \"two\""), "{error}");
    let mut reader = alone.run(|| HopReader::open(None, &["one".into()]).unwrap());
    assert_eq!(reader.read(0).interfaces.len(), 1);
    let mut counts =
        |wanted| read_until(&mut reader, |reading| reading.interfaces[0].receive_dropped == wanted);
    counts(Some(0));
    alone.sh("ip link del one");
    counts(None);
    make();
    counts(Some(0));
}

#[test]
fn what_a_named_interface_stands_on_is_read_too() {
    let Some(alone) = Namespace::alone() else { return };
    alone.sh("ip link add one type veth peer other");
    alone.sh("ip link add link one name upper type macvlan");
    alone.sh("ip link add bridge type bridge");
    alone.sh("ip link set upper master bridge");
    let mut reader = alone.run(|| HopReader::open(None, &["bridge".into()]).unwrap());
    let names = reader.read(0).interfaces.into_iter().map(|one| one.name);
    assert_eq!(Vec::from_iter(names), ["bridge", "upper", "one"]);
}

#[test]
fn two_hundred_flows_cost_less_than_a_millisecond_and_threads_have_a_limit() {
    let Some(alone) = Namespace::alone() else { return };
    let ends: Vec<_> =
        (0..200).map(|port| SocketAddrV4::new(Ipv4Addr::LOCALHOST, 20_000 + port)).collect();
    let (_sockets, mut reader) = alone.run(|| {
        let sockets = Vec::from_iter(ends.iter().map(|end| UdpSocket::bind(end).unwrap()));
        (sockets, HopReader::open(None, &[]).unwrap())
    });
    reader.follow(&ends);
    let (end, ended) = std::sync::mpsc::channel::<()>();
    let ended = std::sync::Arc::new(std::sync::Mutex::new(ended));
    let wait = |_| {
        let ended = ended.clone();
        std::thread::spawn(move || assert!(ended.lock().unwrap().recv().is_err()))
    };
    let threads: Vec<_> = (0..250).map(wait).collect();
    let reading = read_until(&mut reader, |reading| reading.threads.len() == 200);
    let lacks = reader.lacks();
    let (cost, rest) = (cost(&mut reader, PAUSE), reader.rest());
    drop(end);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(reading.sockets.len(), 200);
    assert!(reading.sockets.iter().all(|socket| socket.pid == Some(std::process::id())));
    assert!(lacks.len() == 1 && lacks[0].starts_with("only the first 200 threads"), "{lacks:?}");
    assert!(cost[25] < Duration::from_millis(1), "{cost:?}");
    assert!(rest > 25 * cost[0], "a rest of {rest:?} leaves it 2 % of a CPU: {cost:?}");
}

/// Returns the CPU time of readings with pauses between them, the least first.
fn cost(reader: &mut HopReader, pause: Duration) -> [Duration; 50] {
    let mut cost = [Duration::ZERO; 50];
    for cost in &mut cost {
        std::thread::sleep(pause);
        let before = thread_cpu_time();
        std::hint::black_box(reader.read(0));
        *cost = thread_cpu_time() - before;
    }
    cost.sort_unstable();
    println!("{pause:?}: least {:?}, median {:?}, most {:?}", cost[0], cost[25], cost[49]);
    cost
}

#[test]
fn a_reading_with_four_interfaces_costs_less_than_a_fifth_of_a_millisecond() {
    let Some(pair) = pair() else { return };
    pair.left.sh("ip link add one type veth peer other");
    let (_socket, mut reader) = pair.left.run(|| {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 7003)).unwrap();
        (socket, HopReader::open(None, &[]).unwrap())
    });
    reader.follow(&[SocketAddrV4::new(pair.left.address, 7003)]);
    assert_eq!(reader.read(0).interfaces.len(), 4);
    // On a busy machine caches are cold behind a pause: without one the least is the work.
    cost(&mut reader, PAUSE);
    let cost = cost(&mut reader, Duration::ZERO);
    assert!(cost[0] < Duration::from_micros(200), "{cost:?}");
}
