//! Senders that are faster than receivers: losses are counted, nothing stalls.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use millstream_link::port::{Port, PortOptions};

use crate::rig::{PATIENCE, Rig, SETTLED, collect, drain, number, numbered};

/// Checks that the received datagrams are in order and without repetition, and all missing ones are
/// counted.
#[track_caller]
fn accounted(rig: &Rig, sent: u64, got: &[u64], drops: u64) {
    assert!(got.windows(2).all(|pair| pair[0] < pair[1]), "in order, none twice");
    let kept = got.len() as u64;
    println!("{sent} sent, {kept} kept, {drops} dropped");
    if rig.exact {
        assert_eq!(kept + drops, sent, "{kept} kept, {drops} dropped");
    } else {
        assert!(kept + drops <= sent, "{kept} kept, {drops} dropped of {sent}");
    }
}

/// Returns two ports, the second with a small queue, and how many datagrams of 1000 bytes it holds.
fn small_queue(rig: &Rig) -> (Port, Port, usize) {
    let small = PortOptions { recv_queue_bytes: 64 << 10, ..rig.options() };
    let (near, far) = rig.acquainted_with(&small);
    let capabilities = far.rx.capabilities();
    // By datagrams or by bytes (which the kernel may double), in the port's own unit.
    let room = capabilities.recv_queue_datagrams.unwrap_or(capabilities.recv_queue_bytes / 1000);
    (near, far, room)
}

pub fn a_slow_receiver_loses_counted_datagrams(rig: &Rig) {
    if rig.single {
        // A user that drives its own link has the link's ring as its queue, which the link's rules
        // test.
        return;
    }
    let (mut near, mut far, room) = small_queue(rig);
    // On a busy machine the threads in between may lose some before: then there is more.
    let (mut sent, mut got) = (0, Vec::new());
    let until = Instant::now() + PATIENCE;
    while far.rx.queue_drops() == 0 {
        assert!(Instant::now() < until, "{room} datagrams fit, and {sent} were sent");
        for _ in 0..4 * room as u64 + 1000 {
            near.tx.send(&numbered(sent, 1000), far.local).unwrap();
            sent += 1;
            // These threads get the time they need: only the last queue may overflow.
            if sent % 32 == 0 {
                thread::sleep(Duration::from_micros(200));
            }
        }
        got.extend(drain(&mut far));
    }
    let drops = far.rx.queue_drops();
    accounted(rig, sent, &got, drops);
    assert!(!got.is_empty(), "what fits is kept");
    // The stream continues normally.
    for n in 0..10 {
        near.tx.send(&numbered(n, 1000), far.local).unwrap();
    }
    let after: Vec<_> = collect(&mut far, 10).iter().map(|got| number(&got.0)).collect();
    assert!(after.iter().copied().eq(0..10), "{} after the overflow", after.len());
    assert_eq!(far.rx.queue_drops(), drops);
}

pub fn a_flood_is_accounted_for(rig: &Rig) {
    let (mut near, mut far) = rig.acquainted();
    let to = far.local;
    const TRAINS: u64 = 400;
    const TRAIN: u64 = 50;
    let sender = thread::spawn(move || {
        let mut sent = 0;
        let mut train = Vec::new();
        for turn in 0..TRAINS {
            train.clear();
            (turn * TRAIN..(turn + 1) * TRAIN).for_each(|n| train.extend(numbered(n, 200)));
            // A send may end with an error for lack of room, in time; it must not hang.
            sent += u64::from(near.tx.send_train(&train, 200, to).is_ok());
        }
        sent
    });
    let mut got = Vec::new();
    while !sender.is_finished() {
        got.extend(drain(&mut far));
    }
    assert_eq!(sender.join().unwrap(), TRAINS, "trains taken");
    got.extend(drain(&mut far));
    // With coalescing the kernel counts a lost train as one.
    let exact = rig.exact && !far.rx.capabilities().coalescing;
    let drops = far.rx.queue_drops();
    assert!(got.windows(2).all(|pair| pair[0] < pair[1]), "in order, none twice");
    let (sent, kept) = (TRAINS * TRAIN, got.len() as u64);
    println!("{sent} sent, {kept} kept, {drops} dropped");
    assert!(kept + drops <= sent && (!exact || kept + drops == sent));
    assert!(kept > 0);
}

/// Each send succeeds, or reports that there is no room; the driver of the link then makes some.
pub fn a_flood_that_waits_for_nothing_arrives(rig: &Rig) {
    let (mut near, mut far) = rig.acquainted();
    let (mut got, mut sent) = (Vec::new(), 0);
    let end = Instant::now() + PATIENCE;
    while sent < 4000 {
        match near.tx.try_send(&numbered(sent, 1000), far.local) {
            Ok(()) => sent += 1,
            Err(error) => {
                assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock, "{error}");
                assert!(Instant::now() < end, "{sent} sent");
                near.rx.recv_batch(Duration::ZERO).unwrap();
                got.extend(drain(&mut far));
            }
        }
    }
    got.extend(drain(&mut far));
    accounted(rig, sent, &got, far.rx.queue_drops());
    assert!(!got.is_empty());
}

pub fn two_ports_do_not_disturb_each_other(rig: &Rig) {
    if rig.single {
        return;
    }
    let (mut near, mut far) = ([rig.near(), rig.near()], [rig.far(), rig.far()]);
    for turn in 0..50u64 {
        for (which, sender) in near.iter_mut().enumerate() {
            let portion: Vec<u8> =
                (0..20).flat_map(|n| numbered(1000 * turn + 100 * which as u64 + n, 64)).collect();
            sender.tx.send_train(&portion, 64, far[which].local).unwrap();
        }
        for (which, receiver) in far.iter_mut().enumerate() {
            let first = 1000 * turn + 100 * which as u64;
            let got = collect(receiver, 20);
            assert!(got.iter().map(|got| number(&got.0)).eq(first..first + 20), "turn {turn}");
            assert!(got.iter().all(|got| got.1.port() == near[which].local.port()));
        }
    }
    assert_eq!(far.map(|port| port.rx.queue_drops()), [0, 0]);
}

/// One user does not poll its port at all, and is sent far more than any queue holds.
pub fn a_slow_port_does_not_stall_another(rig: &Rig) {
    if rig.single {
        return;
    }
    let small = PortOptions { recv_queue_bytes: 64 << 10, ..rig.options() };
    let (mut near, mut quick) = rig.acquainted();
    let mut slow = rig.far_with(0, &small).unwrap();
    let capabilities = slow.rx.capabilities();
    let room = capabilities.recv_queue_datagrams.unwrap_or(capabilities.recv_queue_bytes / 500);
    let turns = (4 * room as u64).div_ceil(50) + 20;
    for turn in 0..turns {
        for n in 0..50 {
            near.tx.send(&numbered(50 * turn + n, 500), slow.local).unwrap();
        }
        near.tx.send(&numbered(turn, 64), quick.local).unwrap();
        let count = quick.rx.recv_batch(PATIENCE).unwrap();
        assert_eq!(count, 1, "turn {turn} of {turns}");
        assert_eq!(number(quick.rx.datagram(0).payload), turn);
    }
    assert_eq!(quick.rx.queue_drops(), 0);
    let got = drain(&mut slow);
    assert!(slow.rx.queue_drops() > 0 && !got.is_empty());
    accounted(rig, 50 * turns, &got, slow.rx.queue_drops());
}

/// A user stops receiving in the middle of a stream, until far more was sent than its queue holds:
/// losses are counted, and after the backlog everything is as before, without an action of the
/// user.
pub fn a_user_that_pauses_resumes_at_once(rig: &Rig) {
    if rig.single {
        return;
    }
    let (mut near, mut far, room) = small_queue(rig);
    let pause = 4 * room as u64 + 1000;
    let (to, sent) = (far.local, Arc::new(AtomicU64::new(0)));
    let is_recovered = Arc::new(AtomicBool::new(false));
    let sender = {
        let (sent, is_recovered) = (Arc::clone(&sent), Arc::clone(&is_recovered));
        thread::spawn(move || {
            // Until the receiver, which may have got no CPU, has some of the present stream.
            let mut n = 0;
            while n < 2 * pause || !is_recovered.load(Ordering::Relaxed) && n < 500 * pause {
                near.tx.send(&numbered(n, 1000), to).unwrap();
                n += 1;
                sent.store(n, Ordering::Relaxed);
                if n % 10 == 0 {
                    thread::sleep(Duration::from_micros(500));
                }
            }
        })
    };
    while sent.load(Ordering::Relaxed) < pause {
        thread::sleep(Duration::from_millis(1));
    }
    let (resumed, started) = (sent.load(Ordering::Relaxed), Instant::now());
    let (mut got, mut recovered) = (Vec::<u64>::new(), None);
    loop {
        let over = sender.is_finished();
        let count = far.rx.recv_batch(SETTLED).unwrap();
        got.extend((0..count).map(|index| number(far.rx.datagram(index).payload)));
        if recovered.is_none() && got.last().is_some_and(|last| *last >= resumed) {
            // The backlog and the gap are past: this is the present stream.
            recovered = Some(started.elapsed());
            is_recovered.store(true, Ordering::Relaxed);
        }
        if over && count == 0 {
            break;
        }
    }
    sender.join().unwrap();
    println!("the stream as it is now after {:?}", recovered.expect("the stream goes on"));
    assert!(far.rx.queue_drops() > 0, "{room} datagrams fit, and {resumed} were sent");
    accounted(rig, sent.load(Ordering::Relaxed), &got, far.rx.queue_drops());
}
