//! The steady state: nothing is allocated, and no frame is lost, on either side.

use std::time::{Duration, Instant};

use millstream_link::loopback::{CableState, LoopOptions};
use millstream_net::engine::{ThreadReport, inventory, set_probe};
use millstream_testkit::allocations;

use crate::{Net, PATIENCE, collect};

fn thread(name: &str) -> ThreadReport {
    let all = inventory().threads;
    all.into_iter().find(|thread| thread.name == name).expect("the thread runs")
}

/// Sends and receives batches; returns the number of datagrams.
fn traffic(net: &mut (millstream_link::port::Port, millstream_link::port::Port), turns: usize) {
    let (near, far) = net;
    let train = [7; 64 * 40];
    for _ in 0..turns {
        near.tx.send_train(&train, 40, far.local).unwrap();
        near.tx.send(&train[..900], far.local).unwrap();
        let mut seen = 0;
        while seen < 65 {
            let count = far.rx.recv_batch(PATIENCE).unwrap();
            assert_ne!(count, 0, "{seen} came");
            seen += count;
        }
    }
}

#[test]
fn neither_user_nor_thread_allocates() {
    set_probe(allocations);
    for part_bytes_max in [None, Some(512)] {
        for mode in ["thread=steady,user_wait=park", "thread=steady", "io=inline"] {
            let link = LoopOptions { part_bytes_max, ..LoopOptions::default() };
            let inline = mode == "io=inline";
            let far = if inline { "thread=steady" } else { mode };
            let net = Net::with(mode, far, &link);
            let mut ports = (net.near(), net.far());
            traffic(&mut ports, 20);
            let of_thread = || thread("ms-io-steady").probe;
            let thread_before = of_thread();
            let before = allocations();
            traffic(&mut ports, 500);
            assert_eq!(allocations() - before, 0, "{mode}: allocations by the user's thread");
            assert_eq!(of_thread(), thread_before, "{mode}: by the I/O thread");
        }
    }
}

#[test]
fn frames_are_in_one_place_each_and_none_is_lost() {
    let net = Net::new("thread=census", &LoopOptions::default());
    let totals = || -> Vec<usize> {
        thread("ms-io-census").links.iter().map(|link| link.census.total()).collect()
    };
    let before = totals();
    let mut ports = (net.near(), net.far());
    traffic(&mut ports, 2000);
    assert_eq!(totals(), before);
    drop(ports);
    let after = thread("ms-io-census");
    for link in &after.links {
        assert_eq!((link.census.lent, link.leaked_frames), (0, 0), "{link:?}");
        assert_eq!(link.census.total(), before[0]);
    }
    assert!(after.waits.busy_ns > 0 && after.waits.sleeps > 0, "{:?}", after.waits);
}

/// Complete datagrams leave; those that were begun, or could not leave, are given back.
#[test]
fn a_port_that_ends_while_it_writes_gives_every_frame_back() {
    let link = LoopOptions { part_bytes_max: Some(512), ..LoopOptions::default() };
    let net = Net::new("thread=half", &link);
    let (mut near, mut far) = (net.near(), net.far());
    near.tx.send(b"before", far.local).unwrap();
    assert_eq!(collect(&mut far, 1)[0].0, b"before");
    for _ in 0..3 {
        near.tx.lend(1400).unwrap();
        near.tx.commit(1000, far.local).unwrap();
    }
    near.tx.lend(1400).unwrap();
    drop(near);
    assert!(collect(&mut far, 3).iter().all(|(payload, _)| payload.len() == 1000));

    let mut near = net.near();
    let until = Instant::now() + PATIENCE;
    let mut lent = near.tx.lend(1400);
    net.cable.set(CableState::Down);
    while lent.and_then(|()| near.tx.commit(1400, far.local)).is_ok() {
        assert!(Instant::now() < until, "it is down");
        near.tx.depart().unwrap();
        lent = near.tx.lend(1400);
    }
    net.cable.set(CableState::Up);
    // The delayed datagrams fill the other end's queue, so that more are lost there.
    let mut seen = false;
    while !seen {
        assert!(Instant::now() < until, "it is up again");
        if near.tx.lend(700).and_then(|()| near.tx.commit(700, far.local)).is_ok() {
            near.tx.depart().unwrap();
        }
        let count = far.rx.recv_batch(Duration::from_millis(1)).unwrap();
        seen = (0..count).any(|index| far.rx.datagram(index).payload.len() == 700);
    }
    near.tx.lend(1400).unwrap();
    drop((near, far));
    for link in &thread("ms-io-half").links {
        assert_eq!((link.census.lent, link.leaked_frames), (0, 0), "{link:?}");
    }
}

#[test]
fn a_port_that_is_never_given_back_shows_in_the_inventory() {
    let net = Net::new("thread=leak", &LoopOptions::default());
    let (mut near, far) = (net.near(), net.far());
    near.tx.send(b"x", far.local).unwrap();
    let mut rx = far.rx;
    assert_eq!(rx.recv_batch(PATIENCE).unwrap(), 1);
    std::mem::forget(rx);
    drop(far.tx);
    let report = thread("ms-io-leak");
    let mut ports = report.links.iter().flat_map(|link| &link.ports);
    let port = ports.find(|port| port.local == far.local).expect("it is still there");
    assert_eq!(port.held_receive, 1);
    let link = report.links.iter().find(|link| link.ports.contains(port)).unwrap();
    assert!(link.census.lent > 0);
}
