//! Gaps by each policy: counts and times are exact.

use std::time::Duration;

use millstream_client::{GapPolicy, RxOptions, RxReadEvent, StatusKind};

use crate::common::{PACKET, PATIENCE, check_ramp, ramp, started, time_in};

/// Loses five packets, each alone.
const FAULT: &str = ",fault=lose to_host data skip=20 every=50 count=5";
const LOST: u64 = 5;

#[test]
fn a_gap_is_counted_exactly_and_the_stream_goes_on() {
    let radio = ramp(FAULT);
    let reader = started(&radio, RxOptions::default());
    let mut samples = vec![[0_i16; 2]; 4096];
    let (mut next, mut gaps) = (None, Vec::new());
    while gaps.len() < LOST as usize {
        let read = reader.read(&mut [&mut samples], PATIENCE).unwrap();
        match read.event {
            RxReadEvent::None => {
                assert!(next.is_none_or(|next| next == read.time_ticks), "contiguous");
                check_ramp(&samples[..read.samples], read.time_ticks);
                assert!(read.abrupt_end || read.samples == samples.len(), "{read:?}");
                assert_eq!(read.time_ns, read.time_ticks as i64 * 1000);
                next = Some(read.time_ticks + read.samples as u64);
            }
            RxReadEvent::Gap(gap) => {
                assert_eq!((gap.samples, gap.cause), (PACKET, "sequence"));
                assert_eq!(Some(gap.resume_ticks), next.map(|next| next + gap.samples));
                assert_eq!(gap.resume_ns, gap.resume_ticks as i64 * 1000);
                assert_eq!((read.time_ticks, read.time_ns), (gap.resume_ticks, gap.resume_ns));
                next = Some(gap.resume_ticks);
                gaps.push(gap);
            }
            other => panic!("{other:?}"),
        }
    }
    for gap in &gaps {
        let status = reader.take_status(Duration::ZERO).unwrap();
        assert_eq!(status.kind, StatusKind::Gap(*gap));
        assert_eq!(status.time_ns, Some(gap.resume_ns));
    }
    assert_eq!(reader.take_status(Duration::ZERO), None);
    assert_eq!(radio.last_gap(0), gaps.last().copied());
    let ledger = radio.rx_ledger(0).unwrap();
    ledger.balance().unwrap();
    assert_eq!(ledger.lost_total(), LOST * PACKET);
}

/// Reads of one packet are always full, and end where gaps begin.
#[test]
fn a_full_read_before_a_gap_says_so() {
    for channels in [&[0][..], &[0, 1], &[1]] {
        let radio = ramp(FAULT);
        let options = RxOptions::default().with_samples_per_packet(PACKET as u32);
        let reader = radio.reader(channels, options).unwrap();
        reader.start(Default::default()).unwrap();
        let mut memory = vec![vec![[0_i16; 2]; PACKET as usize]; channels.len()];
        let (mut before, mut gaps) = (None::<millstream_client::RxRead>, 0);
        while gaps < LOST {
            let mut outs: Vec<_> = memory.iter_mut().map(|one| &mut one[..]).collect();
            let read = reader.read(&mut outs, PATIENCE).unwrap();
            let due = before.map(|read| read.time_ticks + read.samples as u64);
            match read.event {
                RxReadEvent::None => {
                    assert_eq!(read.samples, PACKET as usize);
                    assert!(due.is_none_or(|due| due == read.time_ticks), "{read:?}");
                    assert!(before.is_none_or(|before| !before.abrupt_end), "{before:?}");
                }
                RxReadEvent::Gap(gap) => {
                    assert_eq!(Some(gap.resume_ticks), due.map(|due| due + gap.samples));
                    assert!(before.unwrap().abrupt_end, "{before:?} {gap:?}");
                    gaps += 1;
                }
                other => panic!("{other:?}"),
            }
            before = Some(read);
        }
    }
}

/// A read whose time is over cannot know more than what is there.
#[test]
fn a_read_without_time_does_not_wait_for_the_next_packet() {
    let radio = ramp(",fault=lose to_host data skip=3");
    let reader = started(&radio, RxOptions::default());
    let mut samples = vec![[0_i16; 2]; 3 * PACKET as usize];
    let mut count = 0;
    while count < samples.len() {
        let read = reader.read(&mut [&mut samples[count..]], Duration::ZERO).unwrap();
        assert!(!read.abrupt_end && matches!(read.event, RxReadEvent::None | RxReadEvent::Timeout));
        count += read.samples;
    }
}

#[test]
fn zeros_keep_the_count_of_samples() {
    let radio = ramp(FAULT);
    let reader = started(&radio, RxOptions::default().with_gaps(GapPolicy::Zeros));
    let mut samples = vec![[1_i16; 2]; 1234];
    let (mut first, mut count, mut zeros) = (None, 0, 0);
    while count < 300 * PACKET {
        let read = reader.read(&mut [&mut samples], PATIENCE).unwrap();
        assert_eq!((read.samples, read.event), (samples.len(), RxReadEvent::None));
        assert!(!read.abrupt_end);
        let first = *first.get_or_insert(read.time_ticks);
        assert_eq!(read.time_ticks, first + count);
        for (offset, sample) in samples.iter().enumerate() {
            let time = (read.time_ticks + offset as u64) as u32;
            zeros += u64::from(time_in(*sample) == 0 && time != 0);
            assert!([0, time].contains(&time_in(*sample)), "sample {offset}");
        }
        count += read.samples as u64;
    }
    assert_eq!(zeros, LOST * PACKET);
    assert!(reader.take_status(Duration::ZERO).is_some());
}

#[test]
fn a_finite_stream_with_zeros_has_its_length() {
    let radio = ramp(FAULT);
    let reader = crate::common::reader(&radio, RxOptions::default().with_gaps(GapPolicy::Zeros));
    let length = 300 * PACKET + 7;
    let start = millstream_client::StreamStart { samples: Some(length), time_ns: None };
    reader.start(start).unwrap();
    let (mut samples, mut count) = (vec![[0_i16; 2]; 10_000], 0);
    loop {
        let read = reader.read(&mut [&mut samples], PATIENCE).unwrap();
        count += read.samples as u64;
        if read.end_of_burst {
            break;
        }
        assert_eq!(read.samples, samples.len());
    }
    assert_eq!(count, length);
    assert!(!reader.is_active());
}

#[test]
fn drop_leaves_only_the_times() {
    let radio = ramp(FAULT);
    let reader = started(&radio, RxOptions::default().with_gaps(GapPolicy::Drop));
    let mut samples = vec![[0_i16; 2]; 4096];
    let (mut next, mut jumps) = (None, Vec::new());
    while jumps.len() < LOST as usize {
        let read = reader.read(&mut [&mut samples], PATIENCE).unwrap();
        assert_eq!(read.event, RxReadEvent::None);
        check_ramp(&samples[..read.samples], read.time_ticks);
        let jump = read.time_ticks - next.unwrap_or(read.time_ticks);
        jumps.extend((jump > 0).then_some(jump));
        next = Some(read.time_ticks + read.samples as u64);
    }
    assert_eq!(jumps, [PACKET; LOST as usize]);
}

#[test]
fn two_channels_have_the_same_moments() {
    let radio = ramp(FAULT);
    let options = RxOptions::default().with_samples_per_packet(PACKET as u32);
    let reader = radio.reader(&[0, 1], options).unwrap();
    reader.start(Default::default()).unwrap();
    let (mut a, mut b) = (vec![[0_i16; 2]; 3000], vec![[0_i16; 2]; 3000]);
    let (mut next, mut gaps) = (None, 0);
    while gaps < 3 {
        let read = reader.read(&mut [&mut a, &mut b], PATIENCE).unwrap();
        if let RxReadEvent::Gap(gap) = read.event {
            // The channels are not in step on the wire: packets of both that follow each other may
            // be lost, which is one gap.
            assert_eq!(Some(gap.resume_ticks), next.map(|next: u64| next + gap.samples));
            assert_eq!(gap.samples % PACKET, 0);
            gaps += gap.samples / PACKET;
        } else {
            assert!(next.is_none_or(|next| next == read.time_ticks));
            check_ramp(&a[..read.samples], read.time_ticks);
            check_ramp(&b[..read.samples], read.time_ticks);
        }
        next = Some(read.time_ticks + read.samples as u64);
    }
}
