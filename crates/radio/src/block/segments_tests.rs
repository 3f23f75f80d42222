//! Tests of the places of gaps, and of their tags.

use std::num::NonZeroU32;

use millstream_flow::{Block, BlockError, Context, Mock, PortVisitor, Ports, Work};

use super::*;

const RATE: StreamRate = StreamRate { ticks_hz: 20.0, ticks_per_sample: NonZeroU32::MIN };

/// Ten samples, a gap with two causes, ten more; ten after a stop, and twenty
/// around a tuning, which begins in the middle of a delivery.
struct Gappy(SampleCount, Out<u8>);

impl Gappy {
    fn give(&mut self, ticks: u64) {
        self.deliver(10, Some(ticks));
    }

    fn deliver(&mut self, samples: u64, ticks: Option<u64>) {
        self.0.deliver(samples, ticks, RATE);
        for (index, segment) in self.0.untagged() {
            segment.tag((0, index), &mut self.1, RATE);
        }
        self.1.produce(samples as usize);
    }
}

impl Ports for Gappy {
    fn ports(&mut self, ports: &mut dyn PortVisitor) {
        ports.output("out", &mut self.1);
    }
}

impl Block for Gappy {
    fn work(&mut self, _: &mut Context) -> Result<Work, BlockError> {
        self.give(30);
        self.0.refuse(4);
        self.0.refuse(3);
        self.0.note(RxEvent::Overrun { samples: 5 }, None)?;
        // An event comes without samples.
        self.deliver(0, None);
        self.give(52);
        self.0.restart(false);
        self.deliver(0, None);
        self.give(900);
        // From tick 915 on; the samples before it are not from there.
        self.0.tune(Some(915), TunedOutput { output: 0, freq_hz: 1e9 });
        self.give(910);
        self.give(920);
        Ok(Work::Finished)
    }
}

#[test]
fn the_first_sample_after_a_gap_says_when_it_came_and_what_is_missing() {
    let mut mock = Mock::new(Gappy(SampleCount::new(None).0, Out::new()));
    mock.run().unwrap();
    let told: Vec<String> = mock
        .take_tags("out")
        .iter()
        .map(|tag| format!("{} {} {}", tag.offset, tag.key, tag.value))
        .collect();
    assert_eq!(
        told,
        [
            "0 rx_time 1.500000000 s",
            "10 loss_cause consumer_full",
            "10 loss_items 7",
            "10 loss_cause device_overrun",
            "10 loss_items 5",
            "10 rx_time 2.600000000 s",
            "20 rx_rate_hz 20",
            "20 rx_time 45.000000000 s",
            "35 rx_freq_hz 1000000000",
            "35 rx_time 45.750000000 s",
        ]
    );
}

/// The segments of deliveries of these numbers of samples, each with its time.
fn told(count: &mut SampleCount, deliveries: &[(u64, u64)]) {
    for (samples, ticks) in deliveries {
        count.deliver(*samples, Some(*ticks), RATE);
    }
}

#[test]
fn tunings_begin_at_their_samples_and_those_behind_a_delivery_wait() {
    let (mut count, segments) = SampleCount::new(None);
    let to = |output, freq_hz| TunedOutput { output, freq_hz };
    count.tune(Some(103), to(0, 1e9));
    // Both outputs moved at once; another tuning comes between the same samples as the first.
    count.tune(Some(108), to(0, 2e9));
    count.tune(Some(108), to(1, 3e9));
    count.tune(Some(115), to(0, 4e9));
    told(&mut count, &[(10, 100), (5, 110), (5, 115)]);
    // One whose time has passed begins with the next samples.
    count.tune(Some(90), to(0, 5e9));
    told(&mut count, &[(5, 120)]);
    let found: Vec<_> = segments
        .try_iter()
        .map(|segment| {
            let tuned = segment.tuning().map(|tuned| (tuned.output, tuned.freq_hz));
            (segment.first_sample, segment.time_ticks, tuned)
        })
        .collect();
    assert_eq!(
        found,
        [
            (0, Some(100), None),
            (3, Some(103), Some((0, 1e9))),
            (8, Some(108), Some((0, 2e9))),
            (8, Some(108), Some((1, 3e9))),
            (15, Some(115), Some((0, 4e9))),
            (20, Some(120), Some((0, 5e9))),
        ]
    );
}

#[test]
fn behind_a_device_that_was_opened_again_the_outputs_have_their_last_frequencies() {
    let (mut count, segments) = SampleCount::new(None);
    told(&mut count, &[(10, 100)]);
    // It went away before the samples of a tuning came.
    count.tune(Some(110), TunedOutput { output: 1, freq_hz: 7e9 });
    let again = [1e9, 7e9].into_iter().enumerate();
    count.opened_again(again.map(|(output, freq_hz)| TunedOutput { output, freq_hz }).collect());
    count.reopen(50);
    told(&mut count, &[(10, 160)]);
    let found: Vec<_> = segments.try_iter().skip(1).collect();
    let [first, second] = found[..] else { panic!("{found:?}") };
    assert_eq!((first.first_sample, first.gap), (10, Some(GapCause::Reopened { samples: 50 })));
    assert_eq!((second.first_sample, second.gap), (10, None));
    assert_eq!([first, second].map(|one| one.tuning().unwrap().freq_hz), [1e9, 7e9]);
}

#[test]
fn the_last_tuning_of_each_output_waits_however_many_came() {
    let (mut count, segments) = SampleCount::new(None);
    let to = |output, freq_hz| TunedOutput { output, freq_hz };
    count.tune(Some(100), to(1, 9e9));
    (0..40).for_each(|turn| count.tune(Some(100 + turn), to(0, turn as f64)));
    assert_eq!(count.tunings.len(), TUNINGS_WAITING);
    told(&mut count, &[(90, 100)]);
    let found: Vec<_> = segments.try_iter().filter_map(|segment| segment.tuning()).collect();
    assert_eq!((found[0], found.last()), (to(1, 9e9), Some(&to(0, 39.0))));
}

/// The number of drawn ledgers: that of the environment's `LEDGERS`, or 20 000.
fn ledgers() -> u64 {
    std::env::var("LEDGERS").map_or(20_000, |text| text.parse().expect("a whole number"))
}

#[test]
fn a_ledger_whose_gaps_touch_the_end_of_the_request_expects_the_request() {
    let mut touched = 0;
    for seed in 0..ledgers() {
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let mut draw = |below: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % below
        };
        let wanted = 1 + draw(1000);
        let (mut count, segments) = SampleCount::new(Some(wanted));
        let (mut ledger, mut before) = (Ledger::default(), [0; Cause::ALL.len()]);
        let mut events = 0;
        while !count.is_over() {
            // A gap of several causes, with samples of a packet behind it.
            let causes = draw(4);
            let mut lost = 0;
            for _ in 0..causes {
                let cause = Cause::ALL[draw(Cause::ALL.len() as u64 - 1) as usize];
                let samples = if cause == Cause::ConsumerFull { 0 } else { draw(400) };
                ledger.lose(cause, samples);
                lost += samples;
            }
            let packet = 1 + draw(300);
            ledger.expected += lost + packet;
            ledger.hold(packet);
            if lost > 0 {
                let past = lost.saturating_sub(count.wanted());
                touched += u64::from(past > 0);
                ledger.cut(0, past, &before);
                let event = RxEvent::Overrun { samples: lost }.cut(past);
                count.note(event, Some(&ledger)).unwrap();
                events += 1;
            }
            let samples = count.room(packet as usize) as u64;
            ledger.deliver(samples);
            if samples > 0 {
                before = Cause::ALL.map(|cause| ledger.lost(cause));
            }
            let refused = if draw(5) == 0 { samples } else { 0 };
            if refused > 0 {
                ledger.refuse(refused);
                count.refuse(refused);
            } else {
                count.deliver(samples, None, RATE);
            }
            // The rest of the packet was not asked for.
            ledger.close();
        }
        count.end();
        assert_eq!(ledger.expected, wanted, "seed {seed}");
        assert_eq!(ledger.balance(), Ok(()), "seed {seed}");
        let told: u64 =
            segments.try_iter().flat_map(|one| one.losses().collect::<Vec<_>>()).map(|l| l.1).sum();
        assert_eq!(told, ledger.lost_total(), "seed {seed}: {events} events");
    }
    assert!(touched * 4 > ledgers(), "only {touched} gaps reached past the end");
}
