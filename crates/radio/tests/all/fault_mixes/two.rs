//! Two streams of one simulated device, whose recoveries share its registers.

use std::cell::Cell;

use millstream_emulator::Faults;
use millstream_radio::RxStreamer;

use super::mix::Mix;
use super::outcome::Outcome;
use super::registers;
use super::rig::{BEFORE_OVERRUN, BUFFER_SAMPLES, Rig, Simulated};
use super::taken::Taken;
use super::{RATE_HZ, seeds};
use crate::common::shrink::{check_all, tell};
use crate::common::{PATIENCE, SPP};

/// The number of mixes; `MILLSTREAM_FAULT_MIXES` sets another number.
const MIXES: u64 = 500;

/// The streams in turn, and what each has received.
struct Pair<'a> {
    rig: &'a Simulated,
    streams: [(RxStreamer, Taken); 2],
}

impl Pair<'_> {
    /// Receives by turns while `more` of a stream.
    fn receive(&mut self, more: impl Fn(&RxStreamer) -> bool) {
        let until = self.rig.now() + 3 * PATIENCE;
        while self.streams.iter().any(|(stream, _)| more(stream)) {
            assert!(self.rig.now() < until, "it hangs");
            for (stream, taken) in &mut self.streams {
                let first = Cell::new(true);
                taken.receive(self.rig, stream, |stream| first.replace(false) && more(stream));
            }
        }
    }

    /// Receives so many more packets of each stream.
    fn receive_packets(&mut self, packets: u64) {
        let least =
            |pair: &Self| pair.streams.each_ref().map(|(stream, _)| stream.ledger().delivered);
        let goal = least(self).iter().max().unwrap() + packets * SPP;
        self.receive(|stream| stream.ledger().delivered < goal);
    }
}

fn run(mix: &Mix) {
    let rig = Simulated::new();
    let (path, before) = (rig.path(), rig.counters());
    let streams = [0, 1].map(|channel| (rig.open_channel(channel), Taken::of(mix)));
    let mut pair = Pair { rig: &rig, streams };
    for (stream, _) in &mut pair.streams {
        stream.start_continuous(None).unwrap();
    }
    pair.receive_packets(mix.before);
    path.answers.set(&mix.answers);
    for fault in &mix.packets {
        let switch = if fault.received { &path.received } else { &path.given };
        switch.add(fault.rule()).unwrap();
    }
    let mut device = mix.device.clone();
    device.sort();
    for (after, text) in device {
        pair.receive_packets(after / SPP / 2);
        rig.with_faults(|faults| faults.add(&text)).unwrap();
    }
    rig.settle();
    pair.receive_packets(BEFORE_OVERRUN / SPP + mix.behind);
    path.answers.set(&[]);
    for switch in [&path.received, &path.given] {
        switch.clear();
    }
    pair.receive_packets(mix.behind);
    for (stream, _) in &mut pair.streams {
        stream.stop().unwrap();
    }
    pair.receive(RxStreamer::is_running);
    rig.with_faults(Faults::clear);
    let after = rig.counters();
    // A smaller mix may have lost its stall.
    let stalled = mix.stall_ms() * RATE_HZ as u64 / 1000 > BUFFER_SAMPLES + SPP;
    assert!(!stalled || after.rx_overruns > 0, "the device stalled longer than its buffer lasts");
    let went_on = pair.streams.iter().any(|(_, taken)| taken.runs.len() > 1);
    assert!(after.rx_overruns == 0 || went_on, "neither went on behind a gap");
    let seen = rig.take_seen();
    let all = seen.each_ref().map(|[sent, _]| sent.len() as u64).iter().sum::<u64>();
    let again = pair.streams.each_ref().map(|(stream, _)| stream.counters().stalls);
    let streams = pair.streams.into_iter().zip(seen).enumerate();
    for (channel, ((stream, taken), [sent, arrived])) in streams {
        let (counters, drops, ledger) = (*stream.counters(), stream.queue_drops(), stream.finish());
        tell(format_args!("  {counters:?}\n{ledger}"));
        // The device counts the packets of both, and the reports from before a new set-up of either.
        let (before, mut after) = (before, after);
        after.rx_packets -= all - sent.len() as u64;
        if again[1 - channel] > 0 && mix.delays_reports() {
            after.rx_status_invalid = before.rx_status_invalid;
        }
        let finite = None;
        Outcome { finite, taken, sent, arrived, ledger, counters, drops, before, after }.check(mix);
    }
}

#[test]
fn simulated_mixes_of_two_streams_share_the_registers_of_their_device() {
    check_all(seeds(MIXES), |seed| registers::mix_of(seed, true), run);
}
