//! Datagrams that are written where they are sent from.

use std::io;
use std::net::SocketAddrV4;

use millstream_link::port::{Port, PortTx};
use millstream_testkit::allocations;

use crate::rig::{PATIENCE, Rig, collect, content, number, numbered, silent};

/// Writes a datagram into room for `room` bytes.
fn commit(tx: &mut dyn PortTx, payload: &[u8], room: usize, to: SocketAddrV4) -> io::Result<()> {
    tx.lend(room)?;
    let mut at = 0;
    while at < payload.len() {
        let piece = tx.lent(at);
        assert!(piece.len() >= 512.min(room) || at > 0, "the first piece has {}", piece.len());
        let here = piece.len().min(payload.len() - at);
        assert!(here > 0 && at % 8 == 0, "{here} bytes from {at} on");
        piece[..here].copy_from_slice(&payload[at..at + here]);
        at += here;
    }
    assert!(tx.lent(room).is_empty(), "nothing is behind the end");
    tx.commit(payload.len(), to)
}

pub fn lent_datagrams_of_every_size_arrive_whole(rig: &Rig) {
    let (mut near, mut far) = rig.acquainted();
    let most = rig.payload_bytes_max;
    let content = content(most);
    let sizes = [0, 1, 7, 8, 17, 18, 19, 511, 512, 1472, 1473, 2006, 2007, 3798, 4000, 7638, 8000];
    for size in sizes.into_iter().chain([most - 1, most]).filter(|size| *size <= most) {
        for room in [size, most] {
            commit(&mut *near.tx, &content[..size], room, far.local).unwrap();
            near.tx.depart().unwrap();
            let got = collect(&mut far, 1);
            assert_eq!(got.len(), 1, "{size} bytes in room for {room}");
            assert!(got[0].0 == content[..size], "{size} bytes in room for {room}");
        }
    }
    silent(&mut far);
}

pub fn lent_datagrams_leave_in_order_and_by_themselves_where_they_must(rig: &Rig) {
    let (mut near, mut far) = rig.acquainted();
    let mut next = 0u64;
    for (count, sizes) in [(1, [8, 8]), (64, [100, 100]), (200, [1000, 1000]), (150, [40, 30])] {
        let first = next;
        for at in 0..count {
            let payload = numbered(next, sizes[at % 2]);
            commit(&mut *near.tx, &payload, 1472, far.local).unwrap();
            next += 1;
        }
        near.tx.depart().unwrap();
        let got = collect(&mut far, count);
        assert!(got.iter().map(|got| number(&got.0)).eq(first..next), "{count} of {sizes:?}");
        assert!(got.iter().zip(sizes.iter().cycle()).all(|(got, size)| got.0.len() == *size));
        // The datagrams of a socket, which leave at once.
        near.tx.send(&numbered(next, 50), far.local).unwrap();
        assert_eq!(number(&collect(&mut far, 1)[0].0), next);
        next += 1;
    }
    near.tx.depart().unwrap();
    silent(&mut far);
}

/// A begun datagram stays while others leave, and beginning another one discards it.
pub fn what_was_begun_stays_until_it_is_begun_anew(rig: &Rig) {
    let (mut near, mut far) = rig.acquainted();
    commit(&mut *near.tx, &numbered(0, 400), 400, far.local).unwrap();
    near.tx.lend(800).unwrap();
    near.tx.lent(0)[..8].copy_from_slice(&7u64.to_le_bytes());
    near.tx.depart().unwrap();
    near.tx.send(&numbered(1, 40), far.local).unwrap();
    near.tx.lent(8)[..8].fill(9);
    near.tx.commit(16, far.local).unwrap();
    near.tx.depart().unwrap();
    let got = collect(&mut far, 3);
    assert!(got.iter().map(|got| number(&got.0)).eq([0, 1, 7]));
    assert_eq!(got[2].0[8..], [9; 8]);
    // More often than any port has buffers.
    (0..3000).for_each(|_| near.tx.lend(1000).unwrap());
    commit(&mut *near.tx, &numbered(2, 30), 30, far.local).unwrap();
    near.tx.depart().unwrap();
    assert_eq!(number(&collect(&mut far, 1)[0].0), 2);
}

/// The error is returned by one call or the other, and has no other effect.
pub fn what_cannot_go_is_refused_when_lent_or_sent(rig: &Rig) {
    let (mut near, mut far) = rig.acquainted();
    let long = content(rig.payload_bytes_max + 1);
    let nowhere = SocketAddrV4::new(*far.local.ip(), 0);
    let send = |near: &mut Port, payload: &[u8], to| {
        let lent = near.tx.lend(payload.len());
        lent.and_then(|()| near.tx.commit(payload.len(), to)).and_then(|()| near.tx.depart())
    };
    assert!(send(&mut near, &long, far.local).is_err(), "too long");
    assert!(send(&mut near, b"port", nowhere).is_err(), "port 0");
    silent(&mut far);
    commit(&mut *near.tx, b"right", 5, far.local).unwrap();
    near.tx.depart().unwrap();
    assert_eq!(collect(&mut far, 1)[0].0, b"right");
}

pub fn lending_allocates_nothing(rig: &Rig) {
    let (mut near, mut far) = rig.acquainted();
    let payload = content(rig.payload_bytes_max);
    let mut exchange = || {
        for _ in 0..8 {
            commit(&mut *near.tx, &payload, payload.len(), far.local).unwrap();
        }
        near.tx.depart().unwrap();
        let mut seen = 0;
        while seen < 8 {
            let count = far.rx.recv_batch(PATIENCE).unwrap();
            assert_ne!(count, 0, "{seen} came");
            seen += count;
        }
    };
    exchange();
    let before = allocations();
    (0..50).for_each(|_| exchange());
    assert_eq!(allocations(), before, "allocations by the user's thread");
}
