//! Tests of the ledger of a transmit stream against the radio's played samples, packet by packet.

use std::time::Duration;

use crate::common::PATIENCE;
use crate::common::played::{Played, Stage, numbered};
use millstream_emulator::CounterSnapshot;
use millstream_radio::{TxArgs, TxCause, TxLedger, TxMetadata};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// Samples per second.
const RATE_HZ: f64 = 4e6;

/// The capacity of the radio's buffer in samples: a few dozen packets.
const BUFFER_SAMPLES: u64 = 1 << 13;

#[test]
fn what_comes_twice_hides_no_loss() {
    let mut stage = Stage::new(2e6, 1 << 16);
    stage.radio.faults().add("duplicate to_device data count=20 every=50 skip=200").unwrap();
    let samples = numbered(1_500_000);
    let mut stream = stage.device.tx_stream(TxArgs::new(0).with_samples_per_packet(500)).unwrap();
    stream.send_sc16(&samples, TxMetadata::now().ending(), PATIENCE).unwrap();
    let ledger = stream.finish();
    let played = stage.played(samples.len());
    println!("{} once, {} again\n{ledger}", played.once(), played.again());
    assert!(played.again() > 0);
    assert_eq!((ledger.transmitted, ledger.unknown.samples), (played.once(), 0));
    assert_eq!((ledger.repeated.min, ledger.repeated.max), (played.again(), played.again()));
    assert_eq!(ledger.lost(TxCause::NetworkLoss), 0, "the network lost nothing");
}

#[test]
fn packets_out_of_order_overflow_no_buffer() {
    let mut stage = Stage::new(2e6, 1 << 16);
    stage.radio.faults().add("reorder to_device data packets=2 p=0.01 seed=4").unwrap();
    let samples = numbered(1_500_000);
    let mut stream = stage.device.tx_stream(TxArgs::new(0).with_samples_per_packet(500)).unwrap();
    stream.send_sc16(&samples, TxMetadata::now().ending(), PATIENCE).unwrap();
    let ledger = stream.finish();
    let played = stage.played(samples.len());
    let counters = stage.radio.counters();
    println!("{ledger}\n{counters:?}");
    assert!(counters.tx_sequence_errors > 0);
    assert_eq!((counters.tx_overflow_packets, played.once()), (0, 1_500_000));
    assert_eq!((ledger.transmitted, ledger.lost_total()), (1_500_000, 0));
}

/// A sequence of numbers from a seed.
struct Draw(SplitMix64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0.next_u64()
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }
}

/// The faults of one transmission.
#[derive(Debug)]
struct Mix {
    faults: Vec<String>,
    samples_per_packet: u32,
    samples: usize,
    /// The samples of each call, which is a burst; the last one may be shorter.
    call: usize,
    timed: bool,
    /// Samples are only lost, duplicated or reordered.
    simple: bool,
}

impl Mix {
    fn draw(draw: &mut Draw) -> Self {
        let simple = draw.one_in(3);
        let mut faults = Vec::new();
        let data = [
            "lose to_device data",
            "duplicate to_device data",
            "reorder to_device data packets=1",
            "reorder to_device data packets=3",
            "truncate to_device data bytes=40",
            "delay to_device data ms=1",
        ];
        let others = [
            "lose to_host status",
            "duplicate to_host status",
            "reorder to_host status packets=1",
            "delay to_host status ms=1",
            "truncate to_host status bytes=12",
            "lose to_device command",
            "duplicate to_device command",
            "reorder to_device command packets=1",
            "lose to_host request",
            "duplicate to_host request",
        ];
        let mut add = |of: &[&str], draw: &mut Draw| {
            let fault = of[draw.below(of.len() as u64) as usize];
            let chance = [0.002, 0.01, 0.05, 0.2][draw.below(4) as usize];
            faults.push(format!("{fault} p={chance} seed={}", draw.below(1 << 20)));
        };
        add(&data, draw);
        if !simple {
            (0..draw.below(3)).for_each(|_| add(&data, draw));
            (0..draw.below(4)).for_each(|_| add(&others, draw));
            if draw.one_in(4) {
                let ticks = [-20_000, 3_000, 50_000][draw.below(3) as usize];
                faults.push(format!("clock_jump ticks={ticks}"));
            }
        }
        Self {
            faults,
            samples_per_packet: 50 + draw.below(400) as u32,
            samples: 1 + draw.below(60_000) as usize,
            call: 1 + draw.below(30_000) as usize,
            timed: draw.one_in(3),
            simple,
        }
    }

    fn play(&self, stage: &mut Stage) -> (TxLedger, Played, CounterSnapshot) {
        let before = stage.radio.counters();
        let samples = numbered(self.samples);
        let args = TxArgs::new(0).with_samples_per_packet(self.samples_per_packet);
        let mut stream = stage.device.tx_stream(args).expect("the stream opens");
        for fault in &self.faults {
            stage.radio.faults().add(fault).expect("a fault");
        }
        let soon = || stage.device.time_ticks().map(|now| now + (RATE_HZ * 5e-3) as u64);
        for call in samples.chunks(self.call) {
            let mut meta = TxMetadata::now().ending();
            meta.time_ticks = self.timed.then(|| soon().expect("the device lives"));
            let sent = stream.send_sc16(call, meta, PATIENCE).expect("the device lives");
            assert_eq!((sent.samples, sent.end_of_burst), (call.len(), true));
        }
        // The packets for the end of the stream are not lost.
        stage.radio.faults().clear();
        std::thread::sleep(Duration::from_millis(2));
        let ledger = stream.finish();
        let mut counters = stage.radio.counters();
        counters.tx_overflow_samples -= before.tx_overflow_samples;
        (ledger, stage.played(self.samples), counters)
    }

    /// Returns the errors of the ledger.
    fn judge(&self, ledger: &TxLedger, played: &Played, counters: &CounterSnapshot) -> Vec<String> {
        let mut wrong = Vec::new();
        let mut check = |good: bool, what: String| wrong.extend((!good).then_some(what));
        check(ledger.balance().is_ok(), "it does not balance".to_owned());
        check(ledger.accepted == self.samples as u64, "not all were accepted".to_owned());
        let (unknown, repeated) = (ledger.unknown, ledger.repeated);
        let lost = self.samples as u64 - played.once();
        let known = ledger.lost_total();
        let bounds = known + unknown.lost_min..=known + unknown.lost_max;
        check(bounds.contains(&lost), format!("{lost} of {bounds:?} were not played"));
        let again = repeated.min..=repeated.max;
        check(again.contains(&played.again()), format!("{} of {again:?} again", played.again()));
        let lossless = !self.faults.iter().any(|fault| {
            let taken = fault.starts_with("lose") || fault.starts_with("truncate");
            taken && fault.contains("data")
        });
        let network = ledger.lost(TxCause::NetworkLoss);
        check(!lossless || network == 0, format!("the network lost nothing, not {network}"));
        if self.simple && !self.timed {
            check(unknown.samples == 0, format!("{} unknown", unknown.samples));
            check(repeated.min == repeated.max, format!("{again:?} again"));
            let crowded = counters.tx_overflow_samples > 0 || repeated.max > 0;
            check(crowded || lost == network || !lossless, format!("{network} of {lost}"));
        }
        wrong
    }
}

/// Mixes of faults; `MILLSTREAM_FAULT_MIXES` sets their number, `MILLSTREAM_FAULT_SEED` the first
/// seed.
#[test]
fn the_ledger_tells_what_was_played_whatever_the_network_does() {
    let number = |name: &str, default| {
        std::env::var(name).ok().map_or(default, |text| text.parse().expect("a whole number"))
    };
    let first = number("MILLSTREAM_FAULT_SEED", 1);
    let mut stage = Stage::new(RATE_HZ, BUFFER_SAMPLES);
    let (mut simple, mut exact, mut played_again) = (0, 0, 0);
    let mixes = number("MILLSTREAM_FAULT_MIXES", 60);
    for seed in first..first + mixes {
        let mix = Mix::draw(&mut Draw(SplitMix64::seed_from_u64(seed)));
        let (ledger, played, counters) = mix.play(&mut stage);
        let wrong = mix.judge(&ledger, &played, &counters);
        assert!(wrong.is_empty(), "seed {seed}: {wrong:?}\n{mix:?}\n{ledger}\n{counters:?}");
        simple += u64::from(mix.simple);
        exact += u64::from(ledger.unknown.samples == 0);
        played_again += u64::from(played.again() > 0);
    }
    println!("{mixes} mixes, {simple} simple, {exact} exact, {played_again} with repetitions");
}
