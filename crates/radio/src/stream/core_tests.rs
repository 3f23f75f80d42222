//! Tests of the core of a receive stream, by bytes and time.

use std::net::{Ipv4Addr, SocketAddrV4};

use millstream_link::port::Capabilities;
use millstream_wire::{Epid, Width};
use proptest::prelude::*;

use super::*;
use crate::Clock;
use crate::opening::silent;
use crate::stream::StreamRate;
use crate::topology::Endpoint;

#[path = "doubt_tests.rs"]
mod doubt;
#[path = "exchange_tests.rs"]
mod exchange;
#[path = "stages_tests.rs"]
mod stages;
#[path = "stopped_tests.rs"]
mod stopped;

const DEVICE: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 2), 49153);
const EPID: Epid = Epid(7);
const SPP: u64 = 100;
const FRAME: usize = 1000;
/// The time of the first sample, ticks.
const BEGIN: u64 = 5000;

/// A core with the time that has passed.
struct Bench {
    core: RxCore,
    now: Instant,
}

impl Bench {
    /// Returns a stream without an end that was started, at 1 Msps.
    fn running() -> Self {
        let mut bench = Self::idle();
        bench.core.begin(None, None, false);
        bench
    }

    fn idle() -> Self {
        Self::idle_of(EPID, SPP as u32)
    }

    fn idle_of(epid: Epid, spp: u32) -> Self {
        let endpoint = Endpoint { port: 3, instance: 1, epid: Epid(2), control: false, data: true };
        let path = StreamPath {
            device: DEVICE,
            width: Width::W64,
            frame_bytes: FRAME,
            entry_port: 0,
            endpoint,
            epid,
            rate: StreamRate::of_radio(1e6),
            clock: Clock::MACHINE,
        };
        let mut queue = Capabilities::new(FRAME, 64);
        queue.recv_queue_bytes = 1 << 16;
        let credit = Credit::new(&queue, 16 + 4 * spp as usize);
        let (silence, now) = (Duration::from_millis(300), Instant::now());
        let core =
            RxCore::new(path, (spp, NonZeroU32::MIN), 1, credit, &RxArgs::new(0), silence, now);
        Self { core, now }
    }

    fn pass_time(&mut self, ms: u64) {
        self.now += Duration::from_millis(ms);
    }

    /// Gives the core a datagram of the device.
    fn take(&mut self, payload: &[u8]) -> Intake {
        self.core.look(self.now);
        let outcome = self.core.accept(&LentDatagram { index: 0, payload, source: DEVICE });
        self.core.listen(self.core.has_result());
        outcome
    }

    /// Gives it packet `seq` of a run that began with number 0 at `BEGIN`.
    fn packet(&mut self, seq: u16, samples: u64, eob: bool) -> Intake {
        self.take(&packet(seq, BEGIN + SPP * u64::from(seq), samples, eob))
    }

    /// Takes what there is, as a streamer does: the events and the times of samples.
    fn results(&mut self) -> Vec<(RxEvent, Option<u64>)> {
        let mut results = Vec::new();
        loop {
            if let Some(pending) = self.core.take_pending() {
                results.push((pending.event, pending.ticks));
            } else if let Some(held) = self.core.held {
                let samples = (held.end - held.at) / SC16_LEN;
                self.core.books.deliver(samples as u64);
                self.core.pass(held, samples);
                results.push((RxEvent::None, held.ticks));
            } else if !self.core.accept_waiting() {
                return results;
            }
            assert_eq!(self.core.books.ledger().balance(), Ok(()));
        }
    }
}

fn packet(seq: u16, ticks: u64, samples: u64, eob: bool) -> Vec<u8> {
    let payload_len = samples as usize * SC16_LEN;
    let timestamp = Some(ticks);
    let repr = DataRepr { dst_epid: EPID, seq, timestamp, eob, payload_len, ..DataRepr::default() };
    let mut bytes = vec![0; repr.packet_len(Width::W64)];
    repr.emit(Width::W64, &mut bytes).expect("there is room");
    bytes
}

fn skipped(packets: u64) -> SkippedPackets {
    let mut skipped = SkippedPackets::new();
    skipped.whole = packets;
    skipped
}

fn samples_at(ticks: u64) -> (RxEvent, Option<u64>) {
    (RxEvent::None, Some(ticks))
}

#[test]
fn a_packet_is_held_until_its_samples_were_taken_and_a_report_is_due_once_per_period() {
    let mut bench = Bench::running();
    let (mut reports, bytes) = (0, 16 + 4 * SPP);
    let packets = 10 * bench.core.credit.capacity_bytes() / bytes;
    for seq in 0..packets as u16 {
        assert_eq!(bench.packet(seq, SPP, false), Intake::Done);
        let held = bench.core.held.expect("its samples");
        assert_eq!((held.at, held.end), (16, 16 + 4 * SPP as usize));
        // In two parts.
        bench.core.books.deliver(SPP);
        assert_eq!(bench.core.pass(held, 30), (false, false));
        let held = bench.core.held.expect("the rest");
        assert_eq!(held.ticks, Some(BEGIN + SPP * u64::from(seq) + 30));
        assert!(!bench.core.report_due, "its buffer is still in use");
        bench.core.pass(held, 70);
        if std::mem::take(&mut bench.core.report_due) {
            bench.core.credit.report(EPID, EPID);
            reports += 1;
        }
    }
    let every = bench.core.credit.period_bytes().div_ceil(bytes);
    assert_eq!(reports, packets / every, "once in {every} packets");
    assert_eq!(bench.core.books.ledger().delivered, packets * SPP);
}

#[test]
fn packets_wait_for_an_earlier_one_until_it_comes_or_time_has_passed() {
    let mut bench = Bench::running();
    bench.packet(0, SPP, false);
    bench.results();
    bench.packet(2, SPP, false);
    bench.packet(1, SPP, false);
    assert_eq!(bench.results(), [samples_at(BEGIN + SPP), samples_at(BEGIN + 2 * SPP)]);

    bench.packet(5, SPP, false);
    assert_eq!(bench.results(), []);
    let until = bench.now + Duration::from_secs(9);
    assert_eq!(bench.core.wait(bench.now, until), SLEEP_MAX);
    bench.pass_time(70);
    assert_eq!(bench.core.wait(bench.now, until), Duration::from_millis(30), "100 ms in all");
    bench.pass_time(30);
    bench.core.look(bench.now);
    assert!(bench.core.give_up_waiting());
    let gap = RxEvent::SequenceGap { packets: 2, samples: 2 * SPP };
    let at = BEGIN + 5 * SPP;
    assert_eq!(bench.results(), [(gap, Some(at)), samples_at(at)]);
    assert_eq!(bench.core.books.ledger().lost(Cause::NetworkLoss), 2 * SPP);
}

#[test]
fn a_start_that_came_too_late_ends_the_capture() {
    let mut bench = Bench::idle();
    bench.core.begin(Some(1000), Some(BEGIN), false);
    bench.core.reports.late_commands = 1;
    assert_eq!(bench.core.idle(bench.now), None);
    assert_eq!(bench.results(), [(RxEvent::LateCommand, None)]);
    assert_eq!(bench.core.books.ledger().lost(Cause::LateCommand), 1000);
    assert_eq!(bench.core.run.mode(), Mode::Idle);
}

#[test]
fn the_end_of_a_stopped_burst_is_not_awaited_for_ever() {
    let mut bench = Bench::running();
    bench.packet(0, SPP, false);
    bench.results();
    bench.core.run.stop(bench.now);
    bench.pass_time(299);
    assert_eq!(bench.core.idle(bench.now), None);
    assert_ne!(bench.core.run.mode(), Mode::Idle);
    bench.pass_time(1);
    assert_eq!(bench.core.idle(bench.now), None);
    assert_eq!((bench.core.run.mode(), bench.results()), (Mode::Idle, vec![(RxEvent::None, None)]));
}

#[test]
fn what_is_not_of_this_stream_costs_one_counter() {
    let mut bench = Bench::running();
    let whole = packet(0, BEGIN, SPP, false);
    let foreign = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 9), 49153);
    bench.core.accept(&LentDatagram { index: 0, payload: &whole, source: foreign });
    bench.take(&whole[..11]);
    let mut other = whole.clone();
    other[0] ^= 1;
    bench.take(&other);
    let counters = bench.core.books.counters();
    assert_eq!((counters.foreign, counters.malformed, counters.misaddressed), (1, 1, 1));
    assert_eq!((bench.core.has_result(), counters.packets), (false, 0));
}

/// Something that happens to a core.
#[derive(Debug, Clone)]
enum Happening {
    Packet {
        seq: u16,
        ticks: u64,
        samples: u64,
        eob: bool,
        cut: usize,
    },
    Bytes(Vec<u8>),
    Time {
        ms: u64,
    },
    Reports(SideReports),
    Restart {
        told: u64,
        lead: u64,
        anew: bool,
    },
    /// The outcome of a request of the recovery.
    Answer {
        word: u32,
        fate: u8,
    },
    Stop,
}

impl Bench {
    /// Waits for a restart at `start` that was commanded at the device's time `told`.
    fn restart(&mut self, told: u64, start: u64) {
        let (attempts, cause, clock_set, discarded) = (1, Cause::DeviceOverrun, false, false);
        let restart = Restart { attempts, told, start, cause, clock_set, discarded };
        self.core.await_restart(restart);
    }

    fn set_up(&mut self, packets: u64) {
        let credit = self.core.credit.clone();
        self.core.note_set_up(&skipped(packets), credit).expect("a restart follows");
    }

    /// Gives the core what its recovery needs. Returns false when none is under way.
    fn answer(&mut self, word: u32, fate: u8) -> bool {
        let what = "a register read";
        let outcome = match fate {
            0 => Err(silent(DEVICE, what, 5, Duration::from_millis(200))),
            1 => Err(RadioError::Refused { what, port: 1, address: 2, status: "time error" }),
            _ => Ok(word),
        };
        let outcome = match self.core.need() {
            None => return false,
            Some(RecoveryNeed::Register(_)) => self.core.note_outcome(outcome, self.now),
            Some(RecoveryNeed::Arrivals) => {
                self.core.end_recovery();
                self.core.note_arrivals(fate == 3);
                Ok(())
            }
            Some(RecoveryNeed::SetUp) => {
                let credit = self.core.credit.clone();
                self.core.note_set_up(&skipped(word.into()), credit)
            }
        };
        // An error ends the recovery.
        assert!(outcome.is_ok() || !self.core.is_recovering());
        true
    }
}

fn happening() -> impl Strategy<Value = Happening> {
    let near = 0u64..20_000;
    let ticks = prop_oneof![8 => near.clone(), 1 => any::<u64>()];
    let packet = (0u16..60, ticks, 0u64..=SPP, prop::bool::weighted(0.1), 0usize..40);
    let packet = packet.prop_map(|(seq, ticks, samples, eob, cut)| {
        // Most are whole, and many have the time of their number.
        let ticks = if cut % 3 == 0 { ticks } else { BEGIN + SPP * u64::from(seq) };
        let (samples, cut) = (if cut % 4 == 0 { samples } else { SPP }, cut.saturating_sub(36));
        Happening::Packet { seq, ticks, samples, eob, cut }
    });
    let reports =
        (0u64..3, 0u64..3, 0u64..3, near.clone()).prop_map(|(drops, late, overruns, at)| {
            let (late_commands, overrun_ticks, too_long) = (late, at, 0);
            Happening::Reports(SideReports {
                queue_drops: drops,
                too_long,
                late_commands,
                overruns,
                overrun_ticks,
            })
        });
    let restart = (near, 0u64..5000, any::<bool>());
    let restart = restart.prop_map(|(told, lead, anew)| Happening::Restart { told, lead, anew });
    let word = prop_oneof![2 => Just(0u32), 4 => 0u32..20_000, 1 => any::<u32>()];
    let answer = (word, 0u8..30).prop_map(|(word, fate)| Happening::Answer { word, fate });
    prop_oneof![
        12 => packet,
        1 => prop::collection::vec(any::<u8>(), 0..64).prop_map(Happening::Bytes),
        3 => (0u64..400).prop_map(|ms| Happening::Time { ms }),
        1 => reports,
        1 => restart,
        12 => answer,
        1 => Just(Happening::Stop),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    /// `results` checks the ledger behind each result.
    #[test]
    fn whatever_comes_and_whenever_the_ledger_balances(
        finite in prop::option::of(1u64..5000),
        happenings in prop::collection::vec(happening(), 1..120),
    ) {
        let mut bench = Bench::idle();
        bench.core.begin(finite, None, false);
        for happening in happenings {
            match happening {
                Happening::Packet { seq, ticks, samples, eob, cut } => {
                    let bytes = packet(seq, ticks, samples, eob);
                    if bench.core.is_recovering() {
                        continue;
                    }
                    // Others come first once, or the end of a capture.
                    while bench.take(&bytes[..bytes.len() - cut]) == Intake::Again {
                        bench.results();
                    }
                }
                Happening::Bytes(_) | Happening::Time { .. } | Happening::Restart { .. }
                    if bench.core.is_recovering() => {}
                Happening::Bytes(bytes) => drop(bench.take(&bytes)),
                Happening::Answer { word, fate } => drop(bench.answer(word, fate)),
                Happening::Time { ms } => {
                    bench.pass_time(ms);
                    bench.core.wait(bench.now, bench.now);
                    bench.core.look(bench.now);
                    bench.core.give_up_waiting();
                    if let Some(step) = bench.core.idle(bench.now) {
                        drop(bench.core.begin_step(step, bench.now));
                    }
                }
                Happening::Reports(reports) => bench.core.reports = reports,
                Happening::Restart { told, lead, anew } => {
                    if !bench.core.run.is_continuous() {
                        continue;
                    }
                    if anew {
                        bench.set_up(lead / SPP);
                        bench.core.end_recovery();
                    }
                    let start = bench.core.aligned(told + lead, told);
                    bench.restart(told, start);
                }
                Happening::Stop => {
                    bench.core.give_up_recovery();
                    bench.core.forget_what_has_not_begun(BEGIN);
                    bench.core.run.stop(bench.now);
                }
            }
            if let Some(step) = bench.core.step.take() {
                drop(bench.core.begin_step(step, bench.now));
            }
            bench.core.report_due = false;
            bench.results();
        }
        let ledger = bench.core.books.ledger();
        prop_assert_eq!((ledger.balance(), ledger.held), (Ok(()), 0));
    }
}

#[test]
fn a_restart_begins_with_a_sample_of_the_stream_and_a_cycle_of_the_radio() {
    let number = |number| NonZeroU32::new(number).unwrap();
    for (cycle, ticks, now, wanted) in [
        (1, 1, 9000, 9500),
        // The packets before show no time, so far.
        (4, 1, 9000, 9500),
        (4, 1, 9001, 9501),
        (4, 2, 9003, 9500 + 3),
        (8, 16, 9004, 9500),
        (8, 16, 9005, 9501),
    ] {
        let mut bench = Bench::running();
        bench.core.cycle = number(cycle);
        bench.core.path.rate = StreamRate { ticks_hz: 1e6, ticks_per_sample: number(ticks) };
        assert_eq!(bench.core.aligned(9500, now), wanted, "{cycle} {ticks} {now}");
    }
    // Behind packets, whole samples are missing.
    let mut bench = Bench::running();
    bench.packet(0, SPP, false);
    bench.results();
    bench.core.cycle = number(4);
    bench.core.path.rate = StreamRate { ticks_hz: 1e6, ticks_per_sample: number(6) };
    let due = bench.core.numbers.next_ticks().unwrap();
    let start = bench.core.aligned(due + 1, due + 2);
    assert_eq!((start.wrapping_sub(due) % 6, start.wrapping_sub(due + 2) % 4), (0, 0));
}
