//! Ports are opened and closed.

use std::net::SocketAddrV4;
use std::thread;
use std::time::Duration;

use millstream_link::port::{Port, PortOptions};

use crate::rig::{PATIENCE, Rig, collect, number, numbered};

pub fn a_closed_port_opens_again_at_once(rig: &Rig) {
    let (mut near, first) = (rig.near(), rig.far());
    let address = first.local;
    drop(first);
    for turn in 0..10u8 {
        let mut again = rig.far_again(address.port());
        assert_eq!(again.local.port(), address.port());
        near.tx.send(&[turn], address).unwrap();
        assert_eq!(collect(&mut again, 1)[0].0, [turn]);
    }
    // The near side too, whose link has been in use all the time.
    drop(near);
    let (mut near, mut far) = (rig.near(), rig.far());
    near.tx.send(b"fresh", far.local).unwrap();
    assert_eq!(collect(&mut far, 1)[0].0, b"fresh");
}

pub fn one_half_still_holds_the_port(rig: &Rig) {
    let Port { local, rx, tx } = rig.far();
    drop(rx);
    assert!(rig.far_with(local.port(), &rig.options()).is_err(), "the transmit half holds it");
    drop(tx);
    let Port { local, rx, tx } = rig.far_again(local.port());
    drop(tx);
    assert!(rig.far_with(local.port(), &rig.options()).is_err(), "the receive half holds it");
    drop(rx);
    rig.far_again(local.port());
}

pub fn a_port_in_use_is_refused(rig: &Rig) {
    if rig.single {
        return;
    }
    let (mut near, mut holder) = (rig.near(), rig.far());
    let error = rig.far_with(holder.local.port(), &rig.options()).err().unwrap().to_string();
    assert!(error.contains("in use"), "{error}");
    assert!(error.contains(&holder.local.port().to_string()), "{error}");
    near.tx.send(b"still mine", holder.local).unwrap();
    assert_eq!(collect(&mut holder, 1)[0].0, b"still mine");
}

/// Checks that a datagram arrives. Datagrams in flight to a closed port may reach the port that was
/// opened after it, so others may come first.
#[track_caller]
fn arrives(port: &mut Port, wanted: &[u8]) {
    loop {
        let got = collect(port, 1);
        assert!(!got.is_empty(), "it did not come");
        if got.iter().any(|got| got.0 == wanted) {
            return;
        }
    }
}

/// Opens the ports of a radio with four streams, each with its default queue.
pub fn one_link_carries_the_ports_of_a_radio(rig: &Rig) {
    if rig.single {
        return;
    }
    let mut near = rig.near();
    let control = PortOptions { recv_queue_bytes: 64 << 10, ..rig.options() };
    let mut ports = vec![rig.far_with(0, &control).expect("a port for control")];
    ports.extend((0..4).map(|_| rig.far()));
    for turn in 0..30u8 {
        for port in &mut ports {
            near.tx.send_train(&[turn; 4 * 700], 700, port.local).unwrap();
            let got = collect(port, 4);
            assert!(got.len() == 4 && got.iter().all(|got| got.0 == [turn; 700]));
        }
    }
}

pub fn nobody_listening_costs_the_sender_nothing(rig: &Rig) {
    let mut near = rig.near();
    let gone = rig.far().local;
    for _ in 0..5 {
        near.tx.send(b"hello?", gone).unwrap();
        near.tx.send_train(b"hello? hello?", 4, gone).unwrap();
        assert_eq!(near.rx.recv_batch(Duration::from_millis(1)).unwrap(), 0);
    }
    let mut far = rig.far();
    near.tx.send(b"still here", far.local).unwrap();
    arrives(&mut far, b"still here");
}

pub fn a_peer_that_comes_back_is_heard_again(rig: &Rig) {
    let mut near = rig.near();
    let mut place = None;
    for turn in 0..3u64 {
        let mut far = match place {
            None => rig.far(),
            Some(port) => rig.far_again(port),
        };
        place = Some(far.local.port());
        near.tx.send(&numbered(turn, 100), far.local).unwrap();
        arrives(&mut far, &numbered(turn, 100));
        let local = far.local;
        drop(far);
        (0..50).for_each(|_| near.tx.send(b"into the void", local).unwrap());
    }
}

pub fn halves_work_on_threads_of_their_own(rig: &Rig) {
    let (near, mut far) = rig.acquainted();
    let Port { local, mut rx, mut tx } = near;
    let to = far.local;
    const COUNT: u64 = 2000;
    let send = thread::spawn(move || {
        for n in 0..COUNT {
            tx.send(&numbered(n, 64), to).unwrap();
            if n % 50 == 49 {
                thread::sleep(Duration::from_millis(1));
            }
        }
    });
    let echoed = thread::spawn(move || {
        let mut echoed = 0;
        while echoed < COUNT {
            let count = rx.recv_batch(PATIENCE).unwrap();
            assert_ne!(count, 0, "{echoed} echoes came");
            for index in 0..count {
                assert_eq!(number(rx.datagram(index).payload), echoed);
                echoed += 1;
            }
        }
    });
    echo(&mut far, COUNT, local);
    send.join().unwrap();
    echoed.join().unwrap();
}

fn echo(port: &mut Port, mut count: u64, to: SocketAddrV4) {
    while count > 0 {
        let here = port.rx.recv_batch(PATIENCE).unwrap();
        assert_ne!(here, 0, "{count} are missing");
        for index in 0..here {
            port.tx.send(port.rx.datagram(index).payload, to).unwrap();
        }
        count -= here as u64;
    }
}
