//! Tests of a port with several streams.

use std::net::{Ipv4Addr, UdpSocket};

use millstream_link::open;
use millstream_link::port::PortOptions;
use millstream_wire::chdr::DataRepr;

use super::*;

/// Far longer than any step takes, so that a failing test ends.
const PATIENCE: Duration = Duration::from_secs(10);

const A: Epid = Epid(5);
const B: Epid = Epid(6);

fn connection(recv_queue_bytes: usize, receivers: usize) -> (SharedPort, UdpSocket) {
    let local = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
    let options = PortOptions { recv_queue_bytes, ..PortOptions::default() };
    let port = open("udp", local, &options).unwrap();
    let device = UdpSocket::bind(local).unwrap();
    device.set_read_timeout(Some(PATIENCE)).unwrap();
    device.connect(port.local).unwrap();
    (SharedPort::new(port, Width::W64, receivers), device)
}

fn packet(dst_epid: Epid, seq: u16, payload_len: usize) -> Vec<u8> {
    let repr = DataRepr { dst_epid, seq, payload_len, ..DataRepr::default() };
    let mut bytes = vec![0; repr.packet_len(Width::W64)];
    repr.emit(Width::W64, &mut bytes).unwrap();
    bytes
}

/// Receives until `count` datagrams have come, and returns their numbers.
fn receive(port: &mut Port, count: usize) -> Vec<u16> {
    let mut numbers = Vec::new();
    while numbers.len() < count {
        let came = port.rx.recv_batch(PATIENCE).unwrap();
        assert_ne!(came, 0, "{} of {count} came", numbers.len());
        for index in 0..came {
            let packet = Packet::parse(port.rx.datagram(index).payload, Width::W64).unwrap();
            numbers.push(packet.header().seq);
        }
    }
    numbers
}

#[test]
fn packets_go_to_the_stream_of_their_endpoint_and_strays_are_counted() {
    let (connection, device) = connection(1 << 20, 2);
    let (mut a, mut b) = (connection.port(A), connection.port(B));
    assert_eq!((connection.streams(), a.local), (2, b.local));
    for seq in 0..100 {
        let epid = [A, B, A, Epid(9), A][usize::from(seq) % 5];
        device.send(&packet(epid, seq, 8)).unwrap();
    }
    device.send(b"no packet").unwrap();
    device.send(&packet(B, 1000, 8)).unwrap();
    let of = |places: &[u16]| (0..100).filter(|seq| places.contains(&(seq % 5))).collect();
    let of_a: Vec<u16> = of(&[0, 2, 4]);
    let of_b: Vec<u16> = of(&[1]);
    assert_eq!(receive(&mut a, 60), of_a);
    assert_eq!(receive(&mut b, 21), [of_b, vec![1000]].concat());
    assert_eq!((connection.strays(), a.rx.queue_drops(), b.rx.queue_drops()), (21, 0, 0));
    assert_eq!(a.rx.recv_batch(Duration::ZERO).unwrap(), 0);
    // What comes for a stream that has ended is a stray.
    drop(b);
    device.send(&packet(B, 0, 8)).unwrap();
    assert_eq!(a.rx.recv_batch(Duration::from_millis(50)).unwrap(), 0);
    assert_eq!((connection.strays(), connection.streams()), (22, 1));
}

#[test]
fn a_waiting_stream_gets_what_another_one_polls() {
    let (connection, device) = connection(1 << 20, 2);
    let (mut a, mut b) = (connection.port(A), connection.port(B));
    std::thread::scope(|scope| {
        let threads = [&mut a, &mut b].map(|port| scope.spawn(|| receive(port, 100)));
        for seq in 0..100 {
            for epid in [A, B] {
                device.send(&packet(epid, seq, 8)).unwrap();
            }
            if seq % 20 == 0 {
                // So that both threads wait at times.
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        for thread in threads {
            assert_eq!(thread.join().unwrap(), (0..100).collect::<Vec<_>>());
        }
    });
    assert_eq!(connection.strays(), 0);
}

#[test]
fn a_stream_that_fetches_nothing_loses_its_own_packets_alone() {
    let (connection, device) = connection(1 << 16, 2);
    let (mut a, mut b) = (connection.port(A), connection.port(B));
    let queue_bytes = a.rx.capabilities().recv_queue_bytes;
    let most = queue_bytes / packet(A, 0, 1000).len();
    let sent = most as u16 + 100;
    for seq in 0..sent {
        device.send(&packet(A, seq, 1000)).unwrap();
        device.send(&packet(B, seq, 8)).unwrap();
        assert_eq!(receive(&mut b, 1), [seq]);
    }
    assert_eq!(receive(&mut a, most), (0..most as u16).collect::<Vec<_>>());
    assert_eq!(a.rx.recv_batch(Duration::ZERO).unwrap(), 0);
    assert_eq!((a.rx.queue_drops(), b.rx.queue_drops()), (100, 0));
    // There is room again.
    device.send(&packet(A, 7, 1000)).unwrap();
    assert_eq!(receive(&mut a, 1), [7]);
}

#[test]
fn the_queue_is_shared_and_all_streams_send_from_one_address() {
    let (connection, device) = connection(1 << 20, 4);
    let (mut a, mut b) = (connection.port(A), connection.port(B));
    let whole = connection.shared.rx.lock().unwrap().capabilities().recv_queue_bytes;
    assert_eq!(a.rx.capabilities().recv_queue_bytes, whole / 8 * 7 / 4);
    let std::net::SocketAddr::V4(to) = device.local_addr().unwrap() else { panic!("IPv4") };
    a.tx.send(b"one", to).unwrap();
    b.tx.lend(100).unwrap();
    b.tx.lent(0)[..3].copy_from_slice(b"two");
    b.tx.commit(3, to).unwrap();
    b.tx.depart().unwrap();
    a.tx.try_send(b"three", to).unwrap();
    let busy = connection.shared.tx();
    let refused = b.tx.try_send(b"four", to).unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::WouldBlock);
    drop(busy);
    for text in [&b"one"[..], b"two", b"three"] {
        let mut bytes = [0; 16];
        // Connected: from that address alone.
        let length = device.recv(&mut bytes).unwrap();
        assert_eq!(&bytes[..length], text);
    }
}
