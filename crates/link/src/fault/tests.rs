//! Tests of the wrapped halves against a port in memory and an oracle, on a clock that the test
//! advances.

mod batches;

use std::collections::VecDeque;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::*;
use crate::port::{Capabilities, Datagram, FrameLoan, PortRx, PortTx};

const PEER: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 9);
const BATCH_MAX: usize = 5;

type Wire = Arc<Mutex<VecDeque<Vec<u8>>>>;

/// A receive half that lends datagrams of the wire; a wait advances the clock.
struct MemoryRx {
    wire: Wire,
    lent: Vec<Vec<u8>>,
    clock: Arc<AtomicU64>,
}

impl PortRx for MemoryRx {
    fn capabilities(&self) -> Capabilities {
        Capabilities::new(1000, BATCH_MAX)
    }

    fn recv_batch(&mut self, timeout: Duration) -> io::Result<usize> {
        let mut wire = self.wire.lock().unwrap();
        let count = wire.len().min(BATCH_MAX);
        self.lent = wire.drain(..count).collect();
        if count == 0 {
            self.clock.fetch_add(timeout.as_nanos() as u64, Ordering::Relaxed);
        }
        Ok(count)
    }

    fn datagram(&self, index: usize) -> Datagram<'_> {
        Datagram { payload: &self.lent[index], source: PEER }
    }

    fn queue_drops(&self) -> u64 {
        0
    }
}

/// A transmit half that puts datagrams on the wire, and records the datagrams of each call.
struct MemoryTx(Wire, Arc<Mutex<Vec<usize>>>, FrameLoan);

impl PortTx for MemoryTx {
    fn loan(&mut self) -> &mut FrameLoan {
        &mut self.2
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::new(1000, BATCH_MAX)
    }

    fn send(&mut self, payload: &[u8], to: SocketAddrV4) -> io::Result<()> {
        assert_eq!(to, PEER);
        self.1.lock().unwrap().push(1);
        self.0.lock().unwrap().push_back(payload.to_vec());
        Ok(())
    }

    fn send_train(&mut self, train: &[u8], each: usize, _: SocketAddrV4) -> io::Result<()> {
        let datagrams: Vec<_> = train.chunks(each).map(<[u8]>::to_vec).collect();
        self.1.lock().unwrap().push(datagrams.len());
        self.0.lock().unwrap().extend(datagrams);
        Ok(())
    }
}

/// Both halves over one wire each, with a switch.
struct Bench {
    switch: FaultSwitch,
    clock: Arc<AtomicU64>,
    wire: Wire,
    rx: Box<dyn PortRx>,
    tx: Box<dyn PortTx>,
    sent: Wire,
    calls: Arc<Mutex<Vec<usize>>>,
}

impl Bench {
    fn new() -> Self {
        let clock = Arc::new(AtomicU64::new(0));
        let hands = Arc::clone(&clock);
        let switch = FaultSwitch::new(move || hands.load(Ordering::Relaxed));
        let (wire, sent, calls) = (Wire::default(), Wire::default(), Arc::default());
        let inner = MemoryRx { wire: Arc::clone(&wire), lent: vec![], clock: Arc::clone(&clock) };
        let rx = switch.wrap_rx(Box::new(inner));
        let tx = switch.wrap_tx(Box::new(MemoryTx(
            Arc::clone(&sent),
            Arc::clone(&calls),
            FrameLoan::default(),
        )));
        Self { switch, clock, wire, rx, tx, sent, calls }
    }

    fn advance(&self, ns: u64) {
        self.clock.fetch_add(ns, Ordering::Relaxed);
    }

    /// Returns everything that can be received within `ns`.
    fn receive(&mut self, ns: u64) -> Vec<Vec<u8>> {
        let mut got = Vec::new();
        loop {
            let count = self.rx.recv_batch(Duration::from_nanos(ns)).unwrap();
            assert!(count <= BATCH_MAX);
            if count == 0 {
                return got;
            }
            for index in 0..count {
                let datagram = self.rx.datagram(index);
                assert_eq!(datagram.source, PEER);
                got.push(datagram.payload.to_vec());
            }
        }
    }

    fn take_sent(&self) -> Vec<Vec<u8>> {
        self.sent.lock().unwrap().drain(..).collect()
    }
}

/// Returns datagrams of eight bytes that start with their number.
fn numbered(numbers: impl IntoIterator<Item = u32>) -> Vec<Vec<u8>> {
    numbers.into_iter().map(|n| [n.to_le_bytes(), [0xaa; 4]].concat()).collect()
}

fn any(effect: FaultEffect, select: Select) -> FaultRule {
    FaultRule::new(|_| true, effect).select(select)
}

/// Checks that both halves do the same to the same datagrams.
fn both(rule: impl Fn() -> FaultRule, input: &[Vec<u8>], ns: u64) -> (Vec<Vec<u8>>, RuleCounts) {
    let mut bench = Bench::new();
    let id = bench.switch.add(rule()).unwrap();
    bench.wire.lock().unwrap().extend(input.iter().cloned());
    let received = bench.receive(0);
    let late = bench.receive(ns);
    let received = [received, late].concat();
    let tally = bench.switch.tally(id).unwrap();
    for trains in [1, 3, input.len()] {
        let mut bench = Bench::new();
        let id = bench.switch.add(rule()).unwrap();
        for train in input.chunks(trains) {
            bench.tx.send_train(&train.concat(), 8, PEER).unwrap();
        }
        bench.advance(ns);
        bench.tx.release();
        assert_eq!(bench.take_sent(), received, "trains of {trains}");
        assert_eq!(bench.switch.tally(id).unwrap(), tally, "trains of {trains}");
    }
    (received, tally)
}

#[test]
fn a_rule_that_comes_while_a_half_waits_acts_on_what_ends_the_wait() {
    /// A receive half that adds the rule in the middle of the first wait, then the datagrams.
    struct Waiting(MemoryRx, FaultSwitch, bool);
    impl PortRx for Waiting {
        fn capabilities(&self) -> Capabilities {
            self.0.capabilities()
        }
        fn recv_batch(&mut self, timeout: Duration) -> io::Result<usize> {
            if std::mem::take(&mut self.2) {
                let select = Select { count: Some(2), ..Select::default() };
                self.1.add(any(FaultEffect::Lose, select)).unwrap();
                self.0.wire.lock().unwrap().extend(numbered(0..4));
            }
            self.0.recv_batch(timeout)
        }
        fn datagram(&self, index: usize) -> Datagram<'_> {
            self.0.datagram(index)
        }
        fn queue_drops(&self) -> u64 {
            0
        }
    }
    let mut bench = Bench::new();
    let (wire, clock) = (Arc::clone(&bench.wire), Arc::clone(&bench.clock));
    let inner = Waiting(MemoryRx { wire, lent: vec![], clock }, bench.switch.clone(), true);
    bench.rx = bench.switch.wrap_rx(Box::new(inner));
    assert_eq!(bench.receive(100), numbered(2..4));
}

#[test]
fn chosen_datagrams_are_lost_and_the_others_keep_their_order() {
    let select = || Select { skip: 2, every: 3, count: Some(4), ..Select::default() };
    let (got, tally) = both(|| any(FaultEffect::Lose, select()), &numbered(0..20), 1);
    assert_eq!(got, numbered((0..20).filter(|n| ![4, 7, 10, 13].contains(n))));
    assert_eq!((tally.hit, tally.done), (4, true));
    assert_eq!(tally.matched, 14, "it counts until its last hit");
}

#[test]
fn copies_come_directly_behind_the_original() {
    let select = || Select { every: 2, count: Some(2), ..Select::default() };
    let copies = || any(FaultEffect::Duplicate { copies: 2 }, select());
    let (got, tally) = both(copies, &numbered(0..6), 1);
    assert_eq!(got, numbered([0, 1, 1, 1, 2, 3, 3, 3, 4, 5]));
    assert_eq!((tally.hit, tally.held), (2, 0));
}

#[test]
fn a_reordered_datagram_comes_behind_as_many_as_asked() {
    let select = || Select { skip: 1, every: 4, count: Some(2), ..Select::default() };
    let late = || any(FaultEffect::Reorder { datagrams: 3 }, select());
    let (got, _) = both(late, &numbered(0..12), 1);
    assert_eq!(got, numbered([0, 1, 2, 3, 5, 6, 7, 4, 9, 10, 11, 8]));
}

#[test]
fn a_reordered_datagram_that_nothing_overtakes_comes_by_itself() {
    let select = || Select { skip: 3, ..Select::default() };
    let late = || any(FaultEffect::Reorder { datagrams: 5 }, select());
    let (got, tally) = both(late, &numbered(0..5), REORDER_NS_MAX);
    assert_eq!(got, numbered([0, 1, 2, 3, 4]));
    assert_eq!((tally.hit, tally.held), (2, 0));
}

#[test]
fn a_delayed_datagram_comes_when_its_time_has_come_and_not_before() {
    let mut bench = Bench::new();
    let select = Select { count: Some(1), ..Select::default() };
    let id = bench.switch.add(any(FaultEffect::Delay { ns: 1_000 }, select)).unwrap();
    bench.wire.lock().unwrap().extend(numbered(0..3));
    bench.tx.send_train(&numbered(0..3).concat(), 8, PEER).unwrap();
    assert_eq!(bench.switch.tally(id).unwrap().held, 1);
    assert_eq!(bench.tx.release(), Some(Duration::from_nanos(1_000)));
    bench.advance(999);
    bench.tx.release();
    assert_eq!(bench.take_sent(), numbered([1, 2]));
    bench.advance(1);
    assert_eq!(bench.tx.release(), None);
    assert_eq!(bench.take_sent(), numbered([0]));
    let select = Select { count: Some(1), ..Select::default() };
    bench.switch.add(any(FaultEffect::Delay { ns: 1_000 }, select)).unwrap();
    assert_eq!(bench.receive(0), numbered([1, 2]));
    // A long wait ends when the datagram is due.
    let before = bench.clock.load(Ordering::Relaxed);
    assert_eq!(bench.rx.recv_batch(Duration::MAX).unwrap(), 1);
    assert_eq!(bench.clock.load(Ordering::Relaxed), before + 1_000);
}

#[test]
fn a_rule_that_goes_lets_go_what_it_holds() {
    for clear in [false, true] {
        let mut bench = Bench::new();
        let delay = any(FaultEffect::Delay { ns: u64::MAX }, Select::default());
        let id = bench.switch.add(delay).unwrap();
        bench.wire.lock().unwrap().extend(numbered(0..3));
        bench.tx.send_train(&numbered(0..3).concat(), 8, PEER).unwrap();
        assert!(bench.receive(10).is_empty() && bench.take_sent().is_empty());
        if clear {
            bench.switch.clear();
        } else {
            assert_eq!(bench.switch.remove(id).unwrap().held, 6);
        }
        bench.tx.release();
        assert_eq!((bench.receive(0), bench.take_sent()), (numbered(0..3), numbered(0..3)));
    }
}

#[test]
fn the_rest_of_a_batch_comes_after_its_last_copy() {
    let mut bench = Bench::new();
    let select = Select { count: Some(1), ..Select::default() };
    bench.switch.add(any(FaultEffect::Duplicate { copies: 1 }, select)).unwrap();
    bench.wire.lock().unwrap().extend(numbered(0..BATCH_MAX as u32));
    assert_eq!(bench.receive(0), numbered([0, 0, 1, 2, 3, 4]));
}

#[test]
fn what_a_rule_that_is_gone_held_leaves_before_what_is_sent_then() {
    let mut bench = Bench::new();
    let id = bench.switch.add(any(FaultEffect::Delay { ns: u64::MAX }, Select::default())).unwrap();
    bench.tx.send(&numbered([0])[0], PEER).unwrap();
    bench.switch.remove(id);
    bench.tx.send(&numbered([1])[0], PEER).unwrap();
    assert_eq!(bench.take_sent(), numbered([0, 1]));
}

#[test]
fn what_the_port_refuses_later_is_counted() {
    struct Refusing;
    impl PortTx for Refusing {
        fn loan(&mut self) -> &mut FrameLoan {
            unreachable!("nothing is lent")
        }
        fn capabilities(&self) -> Capabilities {
            Capabilities::new(1000, BATCH_MAX)
        }
        fn send(&mut self, _: &[u8], _: SocketAddrV4) -> io::Result<()> {
            Err(io::ErrorKind::NetworkUnreachable.into())
        }
        fn send_train(&mut self, _: &[u8], _: usize, to: SocketAddrV4) -> io::Result<()> {
            self.send(&[], to)
        }
    }
    let bench = Bench::new();
    let mut tx = bench.switch.wrap_tx(Box::new(Refusing));
    let delay =
        || any(FaultEffect::Delay { ns: 5 }, Select { count: Some(2), ..Select::default() });
    let id = bench.switch.add(delay()).unwrap();
    tx.send_train(&numbered(0..2).concat(), 8, PEER).unwrap();
    bench.advance(5);
    tx.release();
    let tally = bench.switch.tally(id).unwrap();
    assert_eq!((tally.held, tally.overflowed, tally.done), (0, 2, true));
    // The same where it leaves in front of a later datagram, which is refused too.
    let id = bench.switch.add(delay()).unwrap();
    tx.send_train(&numbered(0..2).concat(), 8, PEER).unwrap();
    bench.advance(5);
    tx.send(&numbered([2])[0], PEER).unwrap_err();
    assert_eq!(bench.switch.tally(id).unwrap().overflowed, 2);
    // The same where it comes directly behind a datagram that passes.
    let id = bench.switch.add(any(FaultEffect::Delay { ns: 0 }, Select::default())).unwrap();
    tx.send(&numbered([3])[0], PEER).unwrap();
    assert_eq!(bench.switch.tally(id).unwrap().overflowed, 1);
}

#[test]
fn what_is_held_is_bounded_and_the_rest_is_counted() {
    let mut bench = Bench::new();
    let delay = any(FaultEffect::Delay { ns: u64::MAX }, Select::default());
    let id = bench.switch.add(delay).unwrap();
    let train = numbered(0..HELD_MAX as u32 + 10).concat();
    bench.tx.send_train(&train, 8, PEER).unwrap();
    let tally = bench.switch.tally(id).unwrap();
    assert_eq!((tally.held, tally.overflowed), (HELD_MAX as u64, 10));
}

#[test]
fn damage_changes_single_datagrams_inside_a_train() {
    let flip = || FaultEffect::Corrupt { bits: 3, bytes: 4..8 };
    let select = || Select { every: 4, seed: 9, ..Select::default() };
    let (got, _) = both(|| any(flip(), select()), &numbered(0..12), 1);
    let clean = numbered(0..12);
    for (number, (got, clean)) in got.iter().zip(&clean).enumerate() {
        assert_eq!(got[..4], clean[..4]);
        assert_eq!(got[4..] != clean[4..], number % 4 == 3, "{number}");
    }
    let cut = || any(FaultEffect::Truncate { bytes: 2 }, Select { every: 2, ..Select::default() });
    let (got, _) = both(cut, &clean, 1);
    let lengths: Vec<_> = got.iter().map(Vec::len).collect();
    assert_eq!(lengths, [8, 2].repeat(6));
}

#[test]
fn what_passes_leaves_in_trains_as_long_as_possible() {
    let mut bench = Bench::new();
    let lose = any(FaultEffect::Lose, Select { skip: 4, count: Some(1), ..Select::default() });
    bench.switch.add(lose).unwrap();
    let train = numbered(0..9).concat();
    bench.tx.send_train(&train, 8, PEER).unwrap();
    bench.tx.send_train(&train[..70], 8, PEER).unwrap();
    assert_eq!(*bench.calls.lock().unwrap(), [4, 4, 9], "a train untouched stays one");
    assert_eq!(bench.take_sent().len(), 17);
}

#[test]
fn every_rule_counts_and_the_first_that_selects_acts() {
    let mut bench = Bench::new();
    let even = |bytes: &[u8]| bytes[0] % 2 == 0;
    let select = Select { count: Some(2), ..Select::default() };
    let first = bench.switch.add(FaultRule::new(even, FaultEffect::Lose).select(select)).unwrap();
    let second =
        bench.switch.add(any(FaultEffect::Duplicate { copies: 1 }, Select::default())).unwrap();
    bench.wire.lock().unwrap().extend(numbered(0..5));
    assert_eq!(bench.receive(0), numbered([1, 1, 3, 3, 4, 4]));
    let (first, second) = (bench.switch.tally(first), bench.switch.tally(second));
    assert_eq!(first.map(|tally| (tally.matched, tally.hit)), Some((2, 2)));
    assert_eq!(second.map(|tally| (tally.matched, tally.hit)), Some((5, 3)));
}

#[test]
fn a_wait_ends_although_every_datagram_is_lost() {
    let mut bench = Bench::new();
    bench.switch.add(any(FaultEffect::Lose, Select::default())).unwrap();
    bench.wire.lock().unwrap().extend(numbered(0..1000));
    assert!(bench.receive(50).is_empty());
}

#[test]
fn the_number_of_rules_is_bounded() {
    let switch = FaultSwitch::new(|| 0);
    for _ in 0..RULES_MAX {
        switch.add(any(FaultEffect::Lose, Select::default())).unwrap();
    }
    let error = switch.add(any(FaultEffect::Lose, Select::default())).unwrap_err();
    assert_eq!(error.to_string(), "there are already 64 faults: remove some first");
}
