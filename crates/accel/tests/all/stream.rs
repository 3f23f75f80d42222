//! The stream of a device is the CPU's, with its tags.

use super::{assert_near, filter, noise};
use millstream_accel::{Kernel, OffloadBlock, OffloadSettings, OnHost, ResultItem, StandIn};
use millstream_dsp::Sample;
use millstream_flow::{Block, Key, Mock, Tag, keys};
use proptest::prelude::*;
use std::time::{Duration, Instant};

fn kernels() -> impl Strategy<Value = Kernel> {
    prop_oneof![
        (1usize..300, 1usize..7).prop_map(|(taps, decimation)| filter(taps, decimation)),
        (1usize..5, 1usize..5, 1usize..200).prop_map(|(hop, times, taps)| Kernel::Channelizer {
            channels: (hop * times).max(2),
            hop: if hop * times < 2 { 2 } else { hop },
            taps: noise(3, taps).iter().map(|x| x.re).collect(),
        }),
    ]
}

/// Feeds in pieces with pauses, and returns results and tags.
fn through<O: ResultItem, B: Block>(
    block: B,
    pieces: &[usize],
    samples: &[Sample],
    tags: &[(u64, Key)],
) -> (Vec<O>, Vec<Tag>) {
    let mut mock = Mock::new(block);
    for (offset, key) in tags {
        mock.tag("in", *offset, *key, *offset);
    }
    let (mut rest, mut out) = (samples, Vec::new());
    for piece in pieces.iter().cycle() {
        let (now, later) = rest.split_at((*piece).min(rest.len()));
        mock.feed("in", now);
        mock.run().unwrap();
        out.extend(mock.take::<O>("out"));
        rest = later;
        if rest.is_empty() {
            break;
        }
    }
    mock.end("in");
    while !mock.is_finished() {
        mock.run().unwrap();
        out.extend(mock.take::<O>("out"));
        std::thread::sleep(Duration::from_micros(100));
    }
    (out, mock.take_tags("out"))
}

const MARK: Key = Key::new("mark");

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn results_and_tags_are_those_of_the_cpu(
        kernel in kernels(),
        batch in 1usize..700,
        slots in 1usize..5,
        count in 0usize..3000,
        pieces in prop::collection::vec(1usize..900, 1..5),
        tags in prop::collection::btree_map(0u64..3000, prop::bool::ANY, 0..12),
    ) {
        let samples = noise(1, count);
        let key = |gap| if gap { keys::LOSS_ITEMS } else { MARK };
        let tags: Vec<_> = tags.into_iter().filter(|(at, _)| *at < count as u64).collect();
        let tags: Vec<_> = tags.into_iter().map(|(at, gap)| (at, key(gap))).collect();
        let settings = OffloadSettings { slots, ..OffloadSettings::for_batches(batch, &kernel) };
        let device = StandIn { latency: Duration::from_micros(50), ..StandIn::default() };
        let block = OffloadBlock::<Sample>::new(kernel.clone(), &device, settings).unwrap();
        let (found, found_tags) = through::<Sample, _>(block, &pieces, &samples, &tags);
        let plain = OnHost::<Sample>::new(kernel.clone());
        let (expected, mut expected_tags) = through::<Sample, _>(plain, &pieces, &samples, &tags);
        assert_near(&found, &expected);
        // The CPU's form forwards tags of a last frame that has no results.
        expected_tags.retain(|tag| tag.offset < found.len() as u64);
        assert_eq!(found_tags, expected_tags);
    }
}

#[test]
fn what_is_in_front_of_a_gap_does_not_wait_for_what_is_behind() {
    let kernel = filter(5, 1);
    let settings = OffloadSettings {
        wait_max: Duration::from_secs(3600),
        ..OffloadSettings::for_batches(1000, &kernel)
    };
    let device = StandIn { latency: Duration::ZERO, ..StandIn::default() };
    let mut mock = Mock::new(OffloadBlock::<Sample>::new(kernel, &device, settings).unwrap());
    mock.tag("in", 10, keys::LOSS_ITEMS, 5u64);
    // What is in front of the gap is taken before the gap is seen.
    mock.feed("in", &noise(1, 10));
    mock.run().unwrap();
    mock.feed("in", &noise(1, 2));
    let (mut made, begun) = (0, Instant::now());
    while made < 10 {
        assert!(begun.elapsed() < Duration::from_secs(100), "{made} results");
        mock.run().unwrap();
        made += mock.take::<Sample>("out").len();
        std::thread::sleep(Duration::from_micros(100));
    }
    std::thread::sleep(Duration::from_millis(5));
    mock.run().unwrap();
    assert_eq!((made, mock.take::<Sample>("out").len()), (10, 0));
}

#[test]
fn a_batch_that_is_not_full_goes_after_a_while() {
    let kernel = filter(5, 2);
    let device = StandIn { latency: Duration::ZERO, ..StandIn::default() };
    let settings = OffloadSettings::for_batches(1000, &kernel);
    let mut mock = Mock::new(OffloadBlock::<Sample>::new(kernel, &device, settings).unwrap());
    mock.feed("in", &noise(1, 101));
    let (mut made, begun) = (0, Instant::now());
    while made < 50 {
        assert!(begun.elapsed() < Duration::from_secs(100), "{made} results");
        mock.run().unwrap();
        made += mock.take::<Sample>("out").len();
        std::thread::sleep(Duration::from_micros(500));
    }
}

#[test]
fn powers_are_in_decibels() {
    let kernel = Kernel::PowerSpectrum { window: vec![1.0; 16], average: 3 };
    let device = StandIn::default();
    let settings = OffloadSettings::for_batches(100, &kernel);
    let block = OffloadBlock::<f32>::new(kernel, &device, settings).unwrap();
    let ones = vec![Sample::new(1.0, 0.0); 16 * 3 * 5 + 7];
    let (found, _) = through::<f32, _>(block, &[50], &ones, &[]);
    assert_eq!(found.len(), 16 * 5);
    for spectrum in found.chunks(16) {
        assert!(spectrum[8].abs() < 1e-4 && spectrum[0] < -100.0, "{spectrum:?}");
    }
}
