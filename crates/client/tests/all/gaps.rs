//! Gaps by each policy: counts and times are exact.

use std::time::{Duration, Instant};

use millstream_client::{ClientError, GapPolicy, Received, RxOptions, StatusKind, StreamStart};

use crate::common::{PACKET, PATIENCE, check_ramp, ramp, reports, started, ticks, time_in};
use crate::draw::Draw;

/// Loses five packets, each alone.
const FAULT: &str = ",fault=lose to_host data skip=20 every=50 count=5";
const LOST: u64 = 5;

#[test]
fn a_gap_is_counted_exactly_and_the_stream_goes_on() {
    let radio = ramp(FAULT);
    let stream = started(&radio, reports());
    let mut samples = vec![[0_i16; 2]; 4096];
    let (mut next, mut gaps) = (None, Vec::new());
    while gaps.len() < LOST as usize {
        let read = stream.read(&mut [&mut samples], PATIENCE).unwrap();
        if let Some(gap) = read.gap {
            assert_eq!((gap.samples, gap.cause), (PACKET, "sequence"));
            assert_eq!((read.samples, read.time), (0, None));
            assert_eq!(Some(gap.resume.ticks()), next.map(|next| next + gap.samples));
            assert_eq!(gap.resume.ns(), gap.resume.ticks() as i64 * 1000);
            next = Some(gap.resume.ticks());
            gaps.push(gap);
        } else {
            let time = ticks(&read);
            assert!(next.is_none_or(|next| next == time), "contiguous");
            check_ramp(&samples[..read.samples], time);
            assert!(read.abrupt_end || read.samples == samples.len(), "{read:?}");
            assert_eq!(read.time.unwrap().ns(), time as i64 * 1000);
            next = Some(time + read.samples as u64);
        }
    }
    for gap in &gaps {
        let status = stream.take_status(Duration::ZERO).unwrap();
        assert_eq!(status.kind, StatusKind::Gap(*gap));
        assert_eq!(status.time, Some(gap.resume));
    }
    assert_eq!(stream.take_status(Duration::ZERO), None);
    assert_eq!(radio.rx(0).last_gap(), gaps.last().copied());
    let ledger = radio.rx(0).ledger().unwrap();
    ledger.balance().unwrap();
    assert_eq!(ledger.lost_total(), LOST * PACKET);
}

/// Reads of one packet are always full, and end where gaps begin.
#[test]
fn a_full_read_before_a_gap_says_so() {
    for channels in [&[0][..], &[0, 1], &[1]] {
        let radio = ramp(FAULT);
        let options = reports().with_samples_per_packet(PACKET as u32);
        let stream = radio.rx_stream(channels, options).unwrap();
        stream.start(StreamStart::now()).unwrap();
        let mut memory = vec![vec![[0_i16; 2]; PACKET as usize]; channels.len()];
        let (mut before, mut gaps) = (None::<Received>, 0);
        let (mut due, mut knows) = (None, false);
        while gaps < LOST {
            let mut outs: Vec<_> = memory.iter_mut().map(|one| &mut one[..]).collect();
            let begin = Instant::now();
            let read = stream.read(&mut outs, PATIENCE).unwrap();
            if let Some(gap) = read.gap {
                assert_eq!(Some(gap.resume.ticks()), due.map(|due| due + gap.samples));
                assert!(before.unwrap().abrupt_end || !knows, "{before:?} {gap:?}");
                due = Some(gap.resume.ticks());
                gaps += 1;
            } else {
                assert_eq!(read.samples, PACKET as usize);
                assert!(due.is_none_or(|due| due == ticks(&read)), "{read:?}");
                assert!(before.is_none_or(|before| !before.abrupt_end), "{before:?}");
                due = Some(ticks(&read) + PACKET);
            }
            // A busy machine may bring the next packet behind the longest wait for it.
            (before, knows) = (Some(read), begin.elapsed() < Duration::from_millis(100));
        }
    }
}

/// A read whose time is over cannot know more than what is there.
#[test]
fn a_read_without_time_does_not_wait_for_the_next_packet() {
    let radio = ramp(",fault=lose to_host data skip=3");
    let stream = started(&radio, RxOptions::default());
    let mut samples = vec![[0_i16; 2]; 3 * PACKET as usize];
    let mut count = 0;
    while count < samples.len() {
        let read = stream.read(&mut [&mut samples[count..]], Duration::ZERO).unwrap();
        assert!(!read.abrupt_end && read.gap.is_none());
        count += read.samples;
    }
}

#[test]
fn zeros_keep_the_count_of_samples() {
    let radio = ramp(FAULT);
    let stream = started(&radio, RxOptions::default().with_gaps(GapPolicy::Zeros));
    let mut samples = vec![[1_i16; 2]; 1234];
    let (mut first, mut count, mut zeros) = (None, 0, 0);
    while count < 300 * PACKET {
        let read = stream.read(&mut [&mut samples], PATIENCE).unwrap();
        assert_eq!((read.samples, read.gap), (samples.len(), None));
        assert!(!read.abrupt_end);
        let first = *first.get_or_insert(ticks(&read));
        assert_eq!(ticks(&read), first + count);
        for (offset, sample) in samples.iter().enumerate() {
            let time = (ticks(&read) + offset as u64) as u32;
            zeros += u64::from(time_in(*sample) == 0 && time != 0);
            assert!([0, time].contains(&time_in(*sample)), "sample {offset}");
        }
        count += read.samples as u64;
    }
    assert_eq!(zeros, LOST * PACKET);
    assert!(stream.take_status(Duration::ZERO).is_some());
}

#[test]
fn a_finite_stream_with_zeros_has_its_length() {
    let radio = ramp(FAULT);
    let stream = crate::common::stream(&radio, RxOptions::default().with_gaps(GapPolicy::Zeros));
    let length = 300 * PACKET + 7;
    stream.start(StreamStart::now().with_samples(length)).unwrap();
    let (mut samples, mut count) = (vec![[0_i16; 2]; 10_000], 0);
    loop {
        let read = stream.read(&mut [&mut samples], PATIENCE).unwrap();
        count += read.samples as u64;
        if read.end_of_burst {
            break;
        }
        assert_eq!(read.samples, samples.len());
    }
    assert_eq!(count, length);
    assert!(!stream.is_active());
}

#[test]
fn drop_leaves_only_the_times() {
    let radio = ramp(FAULT);
    let stream = started(&radio, RxOptions::default().with_gaps(GapPolicy::Drop));
    let mut samples = vec![[0_i16; 2]; 4096];
    let (mut next, mut jumps) = (None, Vec::new());
    while jumps.len() < LOST as usize {
        let read = stream.read(&mut [&mut samples], PATIENCE).unwrap();
        assert_eq!(read.gap, None);
        check_ramp(&samples[..read.samples], ticks(&read));
        let jump = ticks(&read) - next.unwrap_or(ticks(&read));
        jumps.extend((jump > 0).then_some(jump));
        next = Some(ticks(&read) + read.samples as u64);
    }
    assert_eq!(jumps, [PACKET; LOST as usize]);
}

#[test]
fn two_channels_have_the_same_moments() {
    let radio = ramp(FAULT);
    let options = reports().with_samples_per_packet(PACKET as u32);
    let stream = radio.rx_stream(&[0, 1], options).unwrap();
    stream.start(StreamStart::now()).unwrap();
    let (mut a, mut b) = (vec![[0_i16; 2]; 3000], vec![[0_i16; 2]; 3000]);
    let (mut next, mut gaps) = (None, 0);
    while gaps < 3 {
        let read = stream.read(&mut [&mut a, &mut b], PATIENCE).unwrap();
        if let Some(gap) = read.gap {
            // The channels are not in step on the wire: packets of both that follow each other may
            // be lost, which is one gap.
            assert_eq!(Some(gap.resume.ticks()), next.map(|next: u64| next + gap.samples));
            assert_eq!(gap.samples % PACKET, 0);
            gaps += gap.samples / PACKET;
            next = Some(gap.resume.ticks());
        } else {
            assert!(next.is_none_or(|next| next == ticks(&read)));
            check_ramp(&a[..read.samples], ticks(&read));
            check_ramp(&b[..read.samples], ticks(&read));
            next = Some(ticks(&read) + read.samples as u64);
        }
    }
}

/// Draws mixes of losses, lengths and time-outs of reads, channels and changes of the rate. What a
/// program that knows no policy is told accounts for each tick of the stream, and for each gap that
/// the stream knows of.
#[test]
fn by_default_no_gap_is_silent_whatever_a_program_reads() {
    let mut draw = Draw(0x9e37_79b9_7f4a_7c15);
    let mut told = 0;
    for case in 0..24 {
        let (skip, every, count) = (draw.below(20), 1 + draw.below(30), 1 + draw.below(9));
        let radio =
            ramp(&format!(",fault=lose to_host data skip={skip} every={every} count={count}"));
        let channels = [&[0][..], &[1], &[0, 1]][case % 3];
        let options = RxOptions::default().with_samples_per_packet(PACKET as u32);
        let stream = radio.rx_stream(channels, options).unwrap();
        let interrupts = case % 4 == 3;
        stream.start(StreamStart::now()).unwrap();
        let mut memory = vec![vec![[0_i16; 2]; 4 * PACKET as usize]; channels.len()];
        let (mut due, mut interrupted, mut gaps, mut total) = (None::<u64>, false, Vec::new(), 0);
        while total < (skip + every * (count + 2)) * PACKET {
            let length = [1, PACKET, 1 + draw.below(4 * PACKET)][draw.below(3) as usize] as usize;
            let timeout = [Duration::ZERO, PATIENCE][draw.below(2) as usize];
            let mut outs: Vec<_> = memory.iter_mut().map(|one| &mut one[..length]).collect();
            let read = match draw.below(3) {
                0 => stream.read_some(&mut outs, timeout),
                _ => stream.read(&mut outs, timeout),
            };
            let abrupt = read.as_ref().is_ok_and(|read| read.abrupt_end);
            match read {
                Ok(read) => {
                    assert_eq!(read.gap, None);
                    if read.samples > 0 {
                        let time = ticks(&read);
                        assert!(due.is_none_or(|due| due == time), "{case}: {due:?} {read:?}");
                        memory.iter().for_each(|one| check_ramp(&one[..read.samples], time));
                        (due, interrupted) = (Some(time + read.samples as u64), false);
                        total += read.samples as u64;
                    }
                }
                Err(ClientError::Gap(gap)) => {
                    let begins = due.map(|due| due + gap.samples);
                    assert!(begins.is_none_or(|at| at == gap.resume.ticks()), "{case}: {gap}");
                    due = (!interrupted).then(|| gap.resume.ticks());
                    gaps.push(gap);
                }
                Err(error) => panic!("{case}: {error}"),
            }
            // Often between the read before a gap and the one that tells of it.
            if interrupts && draw.below(if abrupt { 2 } else { 20 }) == 0 {
                // The clock is set anew to what it is: the stream goes on behind an interruption.
                radio.set_tick_rate(radio.tick_rate().unwrap()).unwrap();
                // A gap that was known before it is still told.
                (due, interrupted) = (None, true);
            }
        }
        // A gap that is known comes before anything else.
        if let Err(ClientError::Gap(gap)) = stream.read::<[i16; 2]>(
            &mut channels.iter().map(|_| &mut [][..]).collect::<Vec<_>>(),
            Duration::ZERO,
        ) {
            gaps.push(gap);
        }
        let known = std::iter::from_fn(|| stream.take_status(Duration::ZERO));
        let known = known.filter_map(|status| match status.kind {
            StatusKind::Gap(gap) => Some(gap),
            _ => None,
        });
        assert_eq!(gaps, known.collect::<Vec<_>>(), "{case}");
        told += gaps.len();
        if let ([channel], false) = (channels, interrupts) {
            let lost = radio.rx(*channel).ledger().unwrap().lost_total();
            assert_eq!(gaps.iter().map(|gap| gap.samples).sum::<u64>(), lost, "{case}");
        }
    }
    assert!(told > 24, "{told}");
}
