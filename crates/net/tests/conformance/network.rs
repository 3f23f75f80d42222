//! The network of a port: other ports, interfaces that go down, and the kernel on the same
//! interface.

use std::io::{Read, Write};
use std::net::{SocketAddrV4, TcpListener, TcpStream, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

use millstream_link::port::Port;
use millstream_testkit::netns::INTERFACE;
use socket2::{Domain, Protocol, Socket, Type};

use crate::rig::{PATIENCE, Rig, collect, drain, number, numbered, silent};

pub fn another_port_gets_nothing(rig: &Rig) {
    if rig.single {
        return;
    }
    let (mut near, mut far, mut beside) = (rig.near(), rig.far(), rig.far());
    let closed = rig.far().local;
    for _ in 0..20 {
        near.tx.send(b"for nobody", closed).unwrap();
        near.tx.send(b"for one", far.local).unwrap();
    }
    assert!(collect(&mut far, 20).iter().all(|got| got.0 == b"for one"));
    silent(&mut far);
    silent(&mut beside);
    assert_eq!(far.rx.queue_drops() + beside.rx.queue_drops(), 0);
}

/// Sends numbers until one of them arrives.
fn until_heard(near: &mut Port, far: &mut Port, from: u64) -> u64 {
    let until = Instant::now() + PATIENCE;
    for n in from.. {
        assert!(Instant::now() < until, "{} datagrams went unheard", n - from);
        // Refusals end when the interface is back; a lost datagram is not needed.
        let _ = near.tx.send(&numbered(n, 64), far.local);
        let count = far.rx.recv_batch(Duration::from_millis(20)).unwrap_or_else(|_| {
            thread::sleep(Duration::from_millis(5));
            0
        });
        if (0..count).any(|index| number(far.rx.datagram(index).payload) >= from) {
            return n;
        }
    }
    unreachable!()
}

/// Either side's interface goes down for a while; ports stay open and work again.
pub fn an_interface_that_was_down_carries_again(rig: &Rig) {
    let Some(pair) = rig.pair() else { return };
    let (mut near, mut far) = (rig.near(), rig.far());
    let mut next = until_heard(&mut near, &mut far, 0) + 1;
    for side in [&pair.right, &pair.left] {
        // Datagrams still in flight from before must not be taken for new ones.
        drain(&mut far);
        drain(&mut near);
        side.sh(&format!("ip link set {INTERFACE} down"));
        for n in 0..20 {
            // Refused or lost, but in time.
            let _ = near.tx.send(&numbered(next + n, 64), far.local);
            assert_eq!(far.rx.recv_batch(Duration::from_millis(2)).unwrap_or(0), 0);
        }
        side.sh(&format!("ip link set {INTERFACE} up"));
        next = until_heard(&mut near, &mut far, next + 100) + 1;
        // Both directions.
        next = until_heard(&mut far, &mut near, next) + 1;
    }
    drain(&mut far);
    for n in 0..100 {
        near.tx.send(&numbered(n, 64), far.local).unwrap();
    }
    let got = collect(&mut far, 100);
    assert!(got.iter().map(|got| number(&got.0)).eq(0..100), "as good as new");
}

/// TCP, another program's UDP and ping work on the same interfaces, while a port streams.
pub fn the_kernel_goes_on_serving_the_interface(rig: &Rig) {
    let Some(pair) = rig.pair() else { return };
    let (mut near, mut far) = (rig.near(), rig.far());
    let listener = pair.right.run(|| TcpListener::bind((pair.right.address, 0)).unwrap());
    let tcp = listener.local_addr().unwrap();
    let served = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        bytes.len()
    });
    let mut stream = pair.left.run(|| TcpStream::connect(tcp).unwrap());
    let [other, asker] = [&pair.right, &pair.left]
        .map(|side| side.run(|| UdpSocket::bind((side.address, 0)).unwrap()));
    other.set_read_timeout(Some(PATIENCE)).unwrap();
    let ping = pair.left.run(echo_socket);
    for turn in 0..50u64 {
        near.tx.send_train(&[turn as u8; 20 * 500], 500, far.local).unwrap();
        stream.write_all(&[7; 10_000]).unwrap();
        asker.send_to(&turn.to_le_bytes(), other.local_addr().unwrap()).unwrap();
        let mut bytes = [0; 100];
        assert_eq!(other.recv(&mut bytes).unwrap(), 8);
        assert_eq!(number(&bytes), turn);
        let there = SocketAddrV4::new(pair.right.address, 0);
        assert!(echoes(&ping, there, turn as u16), "ping {turn}");
        let got = collect(&mut far, 20);
        assert!(got.len() == 20 && got.iter().all(|got| got.0 == [turn as u8; 500]));
    }
    drop(stream);
    assert_eq!(served.join().unwrap(), 500_000);
    assert_eq!(far.rx.queue_drops(), 0);
}

fn echo_socket() -> Socket {
    let socket =
        Socket::new(Domain::IPV4, Type::from(libc::SOCK_RAW), Some(Protocol::ICMPV4)).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

/// Sends an echo request (RFC 792) and waits for its reply.
fn echoes(socket: &Socket, to: SocketAddrV4, sequence: u16) -> bool {
    let [high, low] = sequence.to_be_bytes();
    // Type 8, code 0; identifier "ms". The checksum is the complement of the sum of words.
    let sum = 0x0800 + u32::from(u16::from_be_bytes(*b"ms")) + u32::from(sequence);
    let [check_high, check_low] = (!((sum & 0xffff) + (sum >> 16)) as u16).to_be_bytes();
    let request = [8, 0, check_high, check_low, b'm', b's', high, low];
    socket.send_to(&request, &to.into()).unwrap();
    let mut reply = [0; 200];
    while let Ok(count) = (&*socket).read(&mut reply) {
        // Behind the IPv4 header of 20 bytes: type 0.
        if count >= 28 && reply[20] == 0 && reply[24..28] == request[4..] {
            return true;
        }
    }
    false
}
