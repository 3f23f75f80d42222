//! Tests from a transmit packet over the loopback to a receive packet, to the sample, on simulated
//! time.

use super::test_bench::*;
use super::*;
use crate::antenna::{Loopback, Sc16};
use millstream_dsp::chunks::Chunks;
use millstream_wire::chdr::{DataRepr, Packet};
use millstream_wire::stream::CommandOp;
use proptest::prelude::*;

fn bench(delay_samples: u64) -> Bench {
    let cable = || AntennaSource::Loopback(Loopback { channel: 0, delay_samples });
    let mut bench = Bench::hearing([cable(), cable()], RATE_HZ, TX_BUFFER_SAMPLES);
    bench.connect();
    bench.open_stream(1 << 30);
    bench.receive(&stream_command(CommandOp::Init, 0, 0));
    bench
}

/// Transmits samples that count up from `first`, as one burst at `time`.
fn transmit(bench: &mut Bench, seq: u16, time: u64, first: u32, count: usize) {
    let (timestamp, payload_len) = (Some(time), 4 * count);
    let repr = DataRepr { seq, timestamp, eob: true, payload_len, ..DataRepr::default() };
    bench.device.receive(&samples_from(first, repr), HOST, bench.now_ns);
}

/// Appends the received samples, and checks that none is missing between them.
fn collect(sent: &[Vec<u8>], heard: &mut Vec<u32>) {
    for packet in sent {
        let packet = Packet::parse(packet, Width::W64).unwrap();
        if let Ok(data) = DataRepr::parse(&packet) {
            assert_eq!(data.timestamp, Some(heard.len() as u64));
            let samples: &[Sc16] = packet.payload().in_chunks().0;
            heard.extend(samples.iter().map(|sample| u32::from_le_bytes(*sample)));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// However often the clock is read, a receiver gets at tick t the sample sent at t - delay.
    #[test]
    fn every_sample_is_heard_after_exactly_the_delay(
        delay in prop_oneof![Just(0u64), 0u64..300, 5_000u64..20_000],
        bursts in prop::collection::vec((3u64..2_000, 1usize..1_900), 1..12),
        steps in prop::collection::vec(1u64..4_000, 1..40),
    ) {
        let mut bench = bench(delay);
        bench.write(0x1014, 2, None);
        let (mut sent, mut heard) = (vec![0u32; 500], Vec::new());
        let mut bursts = bursts.into_iter().zip(0u16..).peekable();
        let mut steps = steps.into_iter().cycle();
        let mut now = 0;
        while heard.len() < 60_000 {
            // The host is a little ahead of the clock.
            while let Some(((gap, count), seq)) =
                bursts.next_if(|_| sent.len() as u64 <= now + 4_500)
            {
                sent.resize((sent.len() + gap as usize).max(now as usize + 1), 0);
                let first = sent.len() as u32 + 1;
                transmit(&mut bench, seq, sent.len() as u64, first, count);
                sent.extend((first..).take(count));
            }
            now += steps.next().unwrap();
            bench.now_ns = now * US;
            while bench.device.advance(bench.now_ns) <= bench.now_ns {}
            collect(&bench.take_sent(), &mut heard);
        }
        let counters = bench.counters.snapshot();
        prop_assert_eq!(counters.tx_late_packets + counters.tx_overflow_packets, 0);
        prop_assert_eq!(counters.rx_overruns, 0);
        sent.resize(heard.len(), 0);
        let silence = vec![0; delay as usize];
        let want: Vec<u32> = silence.into_iter().chain(sent).take(heard.len()).collect();
        prop_assert!(heard == want);
    }
}

#[test]
fn what_waits_for_credit_is_what_was_on_the_air_then() {
    let mut bench = bench(0);
    bench.credit(0, 0, 0);
    transmit(&mut bench, 0, 100, 1, 1_000);
    bench.write(0x1014, 2, None);
    // The buffer of 5 000 samples overflows, and much later the host grants credit again.
    let mut told = messages(&bench.run(90_000_000));
    told.retain(|message| message.address == 0x1000);
    assert_eq!((told.len(), told[0].timestamp), (1, Some(4_999)));
    transmit(&mut bench, 1, 90_000_100, 7_777, 1_000);
    bench.run(95_000_000);
    bench.credit(1 << 30, 0, 0);
    let mut heard = Vec::new();
    collect(&bench.run(95_000_001), &mut heard);
    assert_eq!(heard.len(), 5_000);
    let want = |tick: usize| if (100..1_100).contains(&tick) { tick as u32 - 99 } else { 0 };
    assert!(heard.iter().enumerate().all(|(tick, heard)| *heard == want(tick)));
}

#[test]
fn after_a_reboot_the_air_is_heard_whatever_a_call_under_way_told_the_device() {
    let mut bench = bench(0);
    bench.run(90_000);
    let before = bench.device.keeper;
    let after = DeviceClock::new(crate::time::SampleClock::new(bench.now_ns, 0, RATE_HZ, 1.0));
    bench.device.power_cycle(after);
    // A call of the old session, followed by the management side's reaction to the reboot.
    bench.device.execute(DeviceCommand::Time(before));
    bench.device.advance(bench.now_ns);
    bench.device.execute(DeviceCommand::PowerCycle(after));
    bench.connect();
    bench.open_stream(1 << 30);
    bench.receive(&stream_command(CommandOp::Init, 0, 0));
    transmit(&mut bench, 0, 100, 1, 1_000);
    bench.write(0x1014, 2, None);
    let mut heard = Vec::new();
    collect(&bench.run(95_000), &mut heard);
    assert_eq!(heard[99..102], [0, 1, 2]);
}

/// After a stop (SIGSTOP, a virtual machine's pause) the device continues at once: its thread does
/// not process a day in strides.
#[test]
fn time_in_which_the_process_was_stopped_is_passed_over_and_counted() {
    const RATE_HZ: f64 = 500e6;
    let cable = || AntennaSource::Loopback(Loopback { channel: 0, delay_samples: 100 });
    let mut bench = Bench::hearing([cable(), cable()], RATE_HZ, TX_BUFFER_SAMPLES);
    bench.connect();
    bench.open_stream(1 << 30);
    bench.receive(&stream_command(CommandOp::Init, 0, 0));
    let short_ns = (CATCH_UP_TICKS as f64 / RATE_HZ * 1e9) as u64 / 2;
    bench.now_ns += short_ns;
    bench.device.advance(bench.now_ns);
    assert_eq!(bench.counters.snapshot().loopback_skipped_samples, 0, "a hiccup is gone through");
    bench.now_ns += 86_400_000_000_000;
    bench.device.advance(bench.now_ns);
    let day = 86_400 * RATE_HZ as u64;
    assert_eq!(bench.counters.snapshot().loopback_skipped_samples, day - CATCH_UP_TICKS);
    // It also works as before.
    let now = bench.now_ns / 2;
    transmit(&mut bench, 0, now + 1_000, 1, 1_000);
    bench.write(0x1014, 2, None);
    bench.now_ns += 10_000;
    while bench.device.advance(bench.now_ns) <= bench.now_ns {}
    let mut heard = Vec::new();
    for packet in bench.take_sent() {
        let packet = Packet::parse(&packet, Width::W64).unwrap();
        if DataRepr::parse(&packet).is_ok() {
            let samples: &[Sc16] = packet.payload().in_chunks().0;
            heard.extend(samples.iter().map(|sample| u32::from_le_bytes(*sample)));
        }
    }
    assert_eq!(heard[1_099..2_101], (0..=1_000).chain([0]).collect::<Vec<u32>>());
}
