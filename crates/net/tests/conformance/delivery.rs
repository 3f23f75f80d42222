//! Sent datagrams arrive: whole, once, in order, from the right source.

use std::time::Duration;

use millstream_link::port::PortOptions;

use crate::rig::{Rig, collect, content, number, numbered, silent};

/// Sends a burst to a host whose address has to be resolved first.
pub fn the_first_datagrams_wait_for_the_neighbour(rig: &Rig) {
    let (mut near, mut far) = (rig.near(), rig.far());
    for n in 0..50 {
        near.tx.send(&numbered(n, 100), far.local).unwrap();
    }
    let got = collect(&mut far, 50);
    assert!(got.iter().map(|got| number(&got.0)).eq(0..50), "{} came", got.len());
}

/// From an empty payload (a frame padded to the Ethernet minimum) to what the network carries.
pub fn every_size_arrives_whole(rig: &Rig) {
    let (mut near, mut far) = (rig.near(), rig.far());
    let most = rig.payload_bytes_max;
    let content = content(most);
    // 18 bytes make a frame of 60, the shortest that is not padded.
    let sizes = [0, 1, 2, 7, 8, 17, 18, 19, 63, 64, 548, 1471, 1472, 1473, 2000, 2048, 4000, 4096];
    for size in sizes.into_iter().chain([8016, 8971, most - 1, most]).filter(|size| *size <= most) {
        near.tx.send(&content[..size], far.local).unwrap();
        let got = collect(&mut far, 1);
        assert_eq!(got.len(), 1, "{size} bytes");
        assert_eq!(got[0].0, content[..size], "{size} bytes");
        assert_eq!(got[0].1.port(), near.local.port());
        // And in the other direction.
        far.tx.send(&content[..size], near.local).unwrap();
        assert!(collect(&mut near, 1)[0].0 == content[..size], "{size} bytes back");
    }
}

/// Nothing is fragmented: a datagram that does not fit is an error, and has no other effect.
pub fn what_cannot_fit_is_refused(rig: &Rig) {
    let (mut near, mut far) = (rig.near(), rig.far());
    let long = content(rig.payload_bytes_max + 1);
    assert!(near.tx.send(&long, far.local).is_err());
    assert!(near.tx.send_train(&long, long.len(), far.local).is_err());
    silent(&mut far);
    near.tx.send(b"short", far.local).unwrap();
    assert_eq!(collect(&mut far, 1)[0].0, b"short");
}

/// A port takes datagrams up to its stated length. Longer ones may still come: they are lost, and
/// counted.
pub fn what_is_too_long_for_the_port_is_not_cut(rig: &Rig) {
    let short = PortOptions { datagram_bytes_max: 100, ..PortOptions::default() };
    let (mut near, mut far) = (rig.near(), rig.far_with(0, &short).unwrap());
    let takes = far.rx.capabilities().datagram_bytes_max;
    let content = content(1472);
    // The slots of a socket are a little longer than the port's largest datagram.
    let sizes = [40, 100, 101, 127, 128, 129, 1000, 1472];
    for size in sizes {
        near.tx.send(&content[..size], far.local).unwrap();
    }
    near.tx.send(b"end", far.local).unwrap();
    let wanted: Vec<_> = sizes.into_iter().filter(|size| *size <= takes).collect();
    let got = collect(&mut far, wanted.len() + 1);
    let (end, got) = got.split_last().unwrap();
    assert_eq!(end.0, b"end");
    assert!(got.iter().map(|got| got.0.len()).eq(wanted.iter().copied()));
    assert!(got.iter().all(|got| content.starts_with(&got.0)));
    let too_long = (sizes.len() - wanted.len()) as u64;
    assert_eq!((far.rx.too_long(), far.rx.queue_drops()), (too_long, 0));
}

pub fn order_is_kept(rig: &Rig) {
    let (mut near, mut far) = rig.acquainted();
    let mut next = 0u64;
    // Single datagrams and batches alternate, in portions that every queue holds.
    for turn in 0..60 {
        let bytes = [8, 22, 64, 500, 1472][turn % 5];
        let portion: Vec<_> = (next..next + 100).map(|n| numbered(n, bytes)).collect();
        if turn % 2 == 0 {
            portion.iter().for_each(|payload| near.tx.send(payload, far.local).unwrap());
        } else {
            near.tx.send_train(&portion.concat(), bytes, far.local).unwrap();
        }
        let got = collect(&mut far, portion.len());
        assert!(got.iter().map(|got| number(&got.0)).eq(next..next + 100), "turn {turn}");
        assert!(got.iter().all(|got| got.0.len() == bytes));
        next += 100;
    }
    assert_eq!(far.rx.queue_drops(), 0);
}

pub fn batches_of_every_size_arrive(rig: &Rig) {
    let (mut near, mut far) = rig.acquainted();
    let most = far.rx.capabilities().batch_max;
    for count in [1, 2, most - 1, most, most + 1, 2 * most, 3 * most + 1] {
        let numbers = 0..count as u64;
        let train: Vec<u8> = numbers.clone().flat_map(|n| numbered(n, 40)).collect();
        near.tx.send_train(&train, 40, far.local).unwrap();
        let got = collect(&mut far, count);
        assert!(got.iter().map(|got| number(&got.0)).eq(numbers), "{count} of {most} at once");
        assert_eq!(far.rx.recv_batch(Duration::ZERO).unwrap(), 0);
    }
}

pub fn trains_are_cut_where_they_should(rig: &Rig) {
    let (mut near, mut far) = rig.acquainted();
    let most = rig.payload_bytes_max;
    let shapes = [(1, 200), (22, 22 * 300 + 5), (most, most * 3), (most - 1, most * 4 + 3)];
    for (segment, total) in shapes.into_iter().chain([(1472.min(most), 1472 * 40)]) {
        let content = content(total);
        near.tx.send_train(&content, segment, far.local).unwrap();
        let got = collect(&mut far, total.div_ceil(segment));
        let whole = got.iter().map(|got| &got.0[..]).eq(content.chunks(segment));
        assert!(whole, "{segment} of {total}: {} came", got.len());
    }
    near.tx.send_train(&[], 10, far.local).unwrap();
    assert!(near.tx.send_train(b"x", 0, far.local).is_err(), "segments of nothing");
    silent(&mut far);
}

pub fn nothing_is_missed_between_quiet_and_busy_times(rig: &Rig) {
    let (mut near, mut far) = rig.acquainted();
    for (turn, wanted) in [0, 1, 3, 200, 1, 0, 70, 300, 2].into_iter().enumerate() {
        let content = content(wanted * 300);
        near.tx.send_train(&content, 300, far.local).unwrap();
        let got = collect(&mut far, wanted);
        assert!(got.iter().map(|got| &got.0[..]).eq(content.chunks(300)), "turn {turn}");
        assert_eq!(far.rx.recv_batch(Duration::from_millis(2)).unwrap(), 0);
        assert_eq!(far.rx.recv_batch(Duration::ZERO).unwrap(), 0);
    }
    assert_eq!(far.rx.queue_drops(), 0);
}

pub fn sources_are_told_apart(rig: &Rig) {
    if rig.single {
        return;
    }
    let (mut one, mut other, mut far) = (rig.near(), rig.near(), rig.far());
    assert_ne!(one.local, other.local, "port 0 takes a free one each time");
    for turn in 0..20u8 {
        one.tx.send(&[turn, 1], far.local).unwrap();
        other.tx.send(&[turn, 2], far.local).unwrap();
        for (payload, source) in collect(&mut far, 2) {
            let sender = [&one, &other][usize::from(payload[1] - 1)];
            assert_eq!((payload[0], source.port()), (turn, sender.local.port()));
        }
    }
}
