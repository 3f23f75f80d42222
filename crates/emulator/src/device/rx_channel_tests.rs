use super::*;
use crate::time::SampleClock;
use proptest::prelude::*;

const BUFFER: u64 = 10_000;
const PACKET: u64 = 364;

fn keeper() -> DeviceClock {
    DeviceClock::new(SampleClock::new(0, 0, 1e6, 1.0))
}

fn events(channel: &mut RxChannel, now: u64) -> Vec<RxEvent> {
    std::iter::from_fn(|| channel.advance(&keeper(), now)).collect()
}

/// Takes all complete packets; returns first sample, number of samples, EOB.
fn drain(channel: &mut RxChannel, now: u64) -> Vec<(u64, u64, bool)> {
    let mut out = Vec::new();
    while let Some(packet) = channel.next_packet(PACKET) {
        if packet.tick + packet.samples > now {
            break;
        }
        channel.take(packet);
        out.push((packet.tick, packet.samples, packet.eob));
    }
    out
}

fn finite(samples: u64) -> Acquire {
    Acquire { start: None, samples: Some(samples), ..Acquire::NOW }
}

const CONTINUOUS: Acquire = Acquire::NOW;

proptest! {
    #[test]
    fn a_finite_acquisition_has_exactly_its_samples(
        count in 1u64..5_000,
        steps in prop::collection::vec(1u64..700, 100),
    ) {
        let mut channel = RxChannel::new(BUFFER);
        channel.push(finite(count), 1_000);
        let (mut now, mut got, mut next, mut ends) = (1_000, 0, 1_000, 0);
        for step in steps {
            events(&mut channel, now);
            for (tick, samples, eob) in drain(&mut channel, now) {
                prop_assert_eq!(tick, next);
                prop_assert!(samples <= PACKET && samples > 0);
                (next, got, ends) = (next + samples, got + samples, ends + u32::from(eob));
                prop_assert_eq!(eob, got == count);
            }
            now += step;
        }
        if now > 1_000 + count + 700 {
            prop_assert_eq!((got, ends), (count, 1));
            prop_assert_eq!(channel.next_packet(PACKET), None);
        }
    }

    #[test]
    fn a_continuous_stream_has_no_hole_however_late_the_clock_is_read(
        steps in prop::collection::vec(1u64..BUFFER, 1..50),
        stop_after in 0u64..1_000,
    ) {
        let mut channel = RxChannel::new(BUFFER);
        channel.push(CONTINUOUS, 0);
        let (mut now, mut next) = (0, 0);
        for step in steps {
            for event in events(&mut channel, now) {
                prop_assert_eq!(event, RxEvent::Started { tick: 0 });
            }
            for (tick, samples, eob) in drain(&mut channel, now) {
                prop_assert_eq!((tick, samples, eob), (next, PACKET, false));
                next += samples;
            }
            now = next + step;
        }
        events(&mut channel, now);
        now += stop_after.min(next + BUFFER - now);
        channel.stop(now);
        let last = drain(&mut channel, now + 1);
        prop_assert!(last.last().unwrap().2);
        let total: u64 = last.iter().map(|packet| packet.1).sum();
        prop_assert_eq!(next + total, now + 1);
    }
}

#[test]
fn a_timed_start_begins_at_its_timestamp() {
    let mut channel = RxChannel::new(BUFFER);
    channel.push(Acquire { start: Some(5_000), samples: Some(10), ..Acquire::NOW }, 1_000);
    assert_eq!(channel.next_event(&keeper()), Some(5_000));
    assert_eq!(events(&mut channel, 4_999), []);
    assert_eq!(channel.next_packet(PACKET), None);
    // A late wake-up is the machine's fault, not the host's: no late command, no lost sample.
    assert_eq!(events(&mut channel, 6_000), [RxEvent::Started { tick: 5_000 }]);
    assert_eq!(drain(&mut channel, 6_000), [(5_000, 10, true)]);
}

#[test]
fn a_timed_start_in_the_past_is_late_and_discarded() {
    let mut channel = RxChannel::new(BUFFER);
    channel.push(Acquire { start: Some(999), samples: None, ..Acquire::NOW }, 1_000);
    channel.push(finite(5), 1_001);
    assert_eq!(events(&mut channel, 1_002), [RxEvent::Late { tick: 1_000 }]);
    assert_eq!(events(&mut channel, 9_000), [], "it waits for the host");
    assert_eq!((channel.next_event(&keeper()), channel.free_slots()), (None, 31));
    channel.release(9_000);
    assert_eq!(events(&mut channel, 9_003), [RxEvent::Started { tick: 9_003 }]);
    assert_eq!(channel.free_slots(), 32, "the running one has a slot");
    channel.reset();
    channel.push(Acquire { start: Some(1_000), samples: None, ..Acquire::NOW }, 1_000);
    assert_eq!(events(&mut channel, 1_002), [RxEvent::Started { tick: 1_000 }], "just in time");
}

/// F8, as in the recorded exchanges 42 and 43.
#[test]
fn captures_behind_each_other_lose_samples() {
    for (cycles_per_sample, lost) in [(1, 3), (2, 1), (4, 1)] {
        let mut channel = RxChannel::new(BUFFER).with_cycle(1, cycles_per_sample);
        channel.push(finite(100), 0);
        channel.push(finite(50), 1);
        let second = 100 + lost;
        let started = [0, second].map(|tick| RxEvent::Started { tick });
        assert_eq!(events(&mut channel, 1_000), started);
        assert_eq!(drain(&mut channel, 1_000), [(0, 100, true), (second, 50, true)]);
    }
}

/// As in the recorded exchanges 42 and 43.
#[test]
fn a_capture_timed_at_the_end_of_the_one_before_is_late() {
    for (cycles_per_sample, cases) in
        [(1, [(0, Err(2)), (2, Err(3)), (3, Ok(3))]), (4, [(0, Err(1)), (1, Err(2)), (2, Ok(2))])]
    {
        for (gap, want) in cases {
            let mut channel = RxChannel::new(BUFFER).with_cycle(1, cycles_per_sample);
            channel.push(Acquire { start: Some(100), samples: Some(100), ..Acquire::NOW }, 0);
            channel.push(Acquire { start: Some(200 + gap), samples: Some(50), ..Acquire::NOW }, 1);
            let want = match want {
                Ok(after) => RxEvent::Started { tick: 200 + after },
                Err(after) => RxEvent::Late { tick: 200 + after },
            };
            assert_eq!(channel.next_event(&keeper()), Some(100));
            assert_eq!(events(&mut channel, 1_000), [RxEvent::Started { tick: 100 }, want]);
        }
    }
}

#[test]
fn the_core_has_33_slots_and_a_stop_empties_them() {
    let mut channel = RxChannel::new(BUFFER);
    let later = Acquire { start: Some(1 << 40), samples: None, ..Acquire::NOW };
    for slot in 0..33 {
        assert_eq!(channel.free_slots(), 33 - slot);
        channel.push(later, 0);
    }
    assert_eq!(channel.free_slots(), 0);
    channel.stop(5);
    assert_eq!(channel.free_slots(), 33, "stop empties the queue");
    assert_eq!(events(&mut channel, 1 << 41), []);
}

/// As the logic does: a stop empties the queue, but does not end the wait for the host.
#[test]
fn a_stop_does_not_free_a_core_whose_message_waits_and_its_end_drops_a_new_command() {
    let mut channel = RxChannel::new(BUFFER);
    channel.push(Acquire { start: Some(5), samples: Some(9), ..Acquire::NOW }, 1_000);
    channel.push(finite(10), 1_000);
    assert_eq!(events(&mut channel, 1_100), [RxEvent::Late { tick: 1_000 }]);
    channel.stop(1_200);
    assert_eq!(channel.free_slots(), 33);
    channel.push(finite(11), 1_300);
    channel.push(finite(12), 1_300);
    assert_eq!(events(&mut channel, 2_000), []);
    channel.release(2_000);
    assert_eq!(events(&mut channel, 3_000), [RxEvent::Started { tick: 2_003 }]);
    assert_eq!(drain(&mut channel, 3_000), [(2_003, 12, true)]);
}

#[test]
fn stop_ends_the_packet_under_way() {
    let mut channel = RxChannel::new(BUFFER);
    channel.push(CONTINUOUS, 0);
    events(&mut channel, 0);
    assert_eq!(drain(&mut channel, 800), [(0, 364, false), (364, 364, false)]);
    channel.stop(800);
    assert_eq!(drain(&mut channel, 801), [(728, 73, true)]);
    assert_eq!(channel.next_packet(PACKET), None);
}

#[test]
fn stop_right_behind_a_packet_takes_one_more_sample_for_eob() {
    let mut channel = RxChannel::new(BUFFER);
    channel.push(CONTINUOUS, 0);
    events(&mut channel, 0);
    drain(&mut channel, 728);
    channel.stop(728);
    assert_eq!(drain(&mut channel, 729), [(728, 1, true)]);
}

#[test]
fn a_full_buffer_is_an_overrun_and_what_it_holds_is_still_delivered() {
    let mut channel = RxChannel::new(BUFFER);
    channel.push(CONTINUOUS, 0);
    assert_eq!(events(&mut channel, BUFFER), [RxEvent::Started { tick: 0 }]);
    assert_eq!(channel.next_event(&keeper()), Some(BUFFER + 1));
    assert_eq!(events(&mut channel, BUFFER + 500), [RxEvent::Overrun { tick: BUFFER - 1 }]);
    assert_eq!(events(&mut channel, BUFFER + 9_999), [], "it has stopped");
    let packets = drain(&mut channel, BUFFER + 9_999);
    assert_eq!(packets.iter().map(|packet| packet.1).sum::<u64>(), BUFFER);
    assert!(packets.last().unwrap().2, "EOB closes it");
    // The host restarts it with a timed command; the two pieces do not mix.
    channel.release(20_000);
    channel.stop(30_000);
    channel.push(Acquire { start: Some(40_000), samples: None, ..Acquire::NOW }, 30_000);
    assert_eq!(events(&mut channel, 40_500), [RxEvent::Started { tick: 40_000 }]);
    assert_eq!(drain(&mut channel, 40_500), [(40_000, PACKET, false)]);
}

#[test]
fn a_restart_behind_a_stuck_buffer_overruns_at_once_with_one_sample() {
    let mut channel = RxChannel::new(BUFFER);
    channel.push(CONTINUOUS, 0);
    events(&mut channel, BUFFER + 1);
    channel.release(BUFFER + 2);
    channel.push(CONTINUOUS, BUFFER + 10);
    let told = events(&mut channel, BUFFER + 20);
    let tick = BUFFER + 10;
    assert_eq!(told, [RxEvent::Started { tick }, RxEvent::Overrun { tick }]);
    let packets = drain(&mut channel, BUFFER + 20);
    assert_eq!(packets.last(), Some(&(tick, 1, true)));
}

#[test]
fn many_short_bursts_wait_for_room_instead_of_growing() {
    let mut channel = RxChannel::new(BUFFER);
    for round in 0..20 {
        while channel.free_slots() > 0 {
            channel.push(finite(1), round);
        }
        events(&mut channel, 1_000 + 100 * round);
    }
    assert_eq!(channel.segments.len(), SEGMENTS_MAX);
    assert_eq!(channel.free_slots(), 0);
}

#[test]
fn a_buffer_full_of_short_bursts_wants_no_attention() {
    let mut channel = RxChannel::new(BUFFER);
    for burst in 0..SEGMENTS_MAX as u64 + 2 {
        channel.push(finite(1), 4 * burst);
        events(&mut channel, 4 * burst + 1);
    }
    assert_eq!(channel.segments.len(), SEGMENTS_MAX);
    assert_eq!(channel.next_event(&keeper()), None, "only sending makes room");
    drain(&mut channel, 300);
    assert_eq!(events(&mut channel, 300).len(), 2, "the bursts that waited");
}

#[test]
fn what_was_heard_is_sent_even_if_the_stop_came_before() {
    let mut channel = RxChannel::new(BUFFER);
    channel.push(CONTINUOUS, 0);
    events(&mut channel, 100);
    channel.read_antenna(100, u64::MAX, |stretch| assert_eq!(stretch.ticks, 0..100));
    // The clock was set slower meanwhile.
    channel.stop(60);
    assert_eq!(drain(&mut channel, 100), [(0, 100, true)]);
}

#[test]
fn bursts_of_a_radio_with_cycles_begin_and_end_with_one() {
    let mut channel = RxChannel::new(BUFFER + 3).with_cycle(4, 1);
    channel.push(CONTINUOUS, 1_001);
    assert_eq!(events(&mut channel, 1_003), []);
    assert_eq!(channel.next_event(&keeper()), Some(1_004));
    assert_eq!(events(&mut channel, 1_004), [RxEvent::Started { tick: 1_004 }]);
    channel.stop(1_009);
    assert_eq!(drain(&mut channel, 1_012), [(1_004, 8, true)]);
    channel.push(Acquire { start: Some(2_003), samples: Some(4), ..Acquire::NOW }, 1_500);
    assert_eq!(events(&mut channel, 2_100), [RxEvent::Started { tick: 2_004 }]);
    events(&mut channel, 2_100);
    channel.push(CONTINUOUS, 2_100);
    let tick = 2_100 + BUFFER;
    let told = events(&mut channel, 2_101 + BUFFER);
    // The first burst is still in the buffer.
    let overrun = RxEvent::Overrun { tick: tick - 5 };
    assert_eq!(told, [RxEvent::Started { tick: 2_100 }, overrun]);
    let got = drain(&mut channel, 1 << 20);
    assert!(got.iter().all(|(tick, samples, _)| tick % 4 == 0 && samples % 4 == 0), "{got:?}");
}

/// Takes the packets that are complete; returns first tick, number of samples, EOB.
fn drain_decimated(channel: &mut RxChannel, now: u64) -> Vec<(u64, u64, bool)> {
    let mut out = Vec::new();
    while let Some(packet) = channel.next_packet(10).filter(|packet| packet.end <= now) {
        channel.take(packet);
        out.push((packet.tick, packet.samples, packet.eob));
    }
    out
}

#[test]
fn a_decimated_burst_leaves_in_whole_samples_and_drops_the_remainder() {
    let mut channel = RxChannel::new(BUFFER);
    channel.set_decimation(16);
    channel.push(finite(16 * 25 + 7), 0);
    channel.push(finite(15), 0);
    channel.push(finite(16), 0);
    let mut heard = Vec::new();
    let mut got = Vec::new();
    for now in (0..1_000).step_by(50) {
        events(&mut channel, now);
        channel.read_antenna(now, u64::MAX, |stretch| heard.push(stretch));
        got.extend(drain_decimated(&mut channel, now));
    }
    // The second burst is too short for a sample.
    assert_eq!(got, [(0, 10, false), (160, 10, false), (320, 5, true), (428, 1, true)]);
    let begins: Vec<_> = heard.iter().filter(|one| one.begins).map(|one| one.ticks.start).collect();
    assert_eq!(begins, [0, 428]);
}

#[test]
fn a_decimated_burst_stops_and_overruns_at_whole_samples() {
    let mut channel = RxChannel::new(100);
    channel.set_decimation(8);
    channel.push(CONTINUOUS, 0);
    events(&mut channel, 5);
    channel.stop(13);
    assert_eq!(drain_decimated(&mut channel, 1_000), [(0, 2, true)]);
    channel.push(CONTINUOUS, 100);
    assert_eq!(events(&mut channel, 900), [RxEvent::Started { tick: 100 }]);
    assert_eq!(events(&mut channel, 901), [RxEvent::Overrun { tick: 899 }]);
    let got = drain_decimated(&mut channel, 1_000);
    assert_eq!((got.len(), got[9]), (10, (820, 10, true)));
}

#[test]
fn a_split_burst_ends_with_a_full_packet_and_continues_at_the_new_rate() {
    let mut channel = RxChannel::new(BUFFER);
    channel.set_decimation(4);
    channel.push(CONTINUOUS, 0);
    let mut heard = Vec::new();
    events(&mut channel, 50);
    channel.read_antenna(50, u64::MAX, |stretch| heard.push((stretch.ticks, stretch.decimation)));
    channel.set_decimation(2);
    channel.split(10);
    // The second write of a rate, before the first has acted.
    channel.set_decimation(8);
    channel.split(10);
    events(&mut channel, 200);
    channel.read_antenna(200, u64::MAX, |stretch| heard.push((stretch.ticks, stretch.decimation)));
    let got = drain_decimated(&mut channel, 200);
    assert_eq!(got, [(0, 10, false), (40, 10, true), (80, 10, false)]);
    assert_eq!(heard, [(0..50, 4), (50..80, 4), (80..200, 8)]);
}

#[test]
fn a_source_that_is_behind_gets_its_ticks_in_parts() {
    let mut channel = RxChannel::new(BUFFER);
    channel.push(finite(100), 0);
    channel.push(finite(50), 0);
    events(&mut channel, 1_000);
    let mut heard = Vec::new();
    while channel.is_behind(1_000) {
        channel.read_antenna(1_000, 60, |stretch| heard.push((stretch.ticks, stretch.begins)));
    }
    assert_eq!(heard, [(0..60, true), (60..100, false), (103..123, true), (123..153, false)]);
    assert_eq!(channel.head_heard(), 100, "the second one waits");
}
