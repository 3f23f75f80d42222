//! The times of samples on their way to packets.

use crate::common::{Channel, signal};
use millstream_atsc::blocks::{
    AtscDeinterleaver, AtscDemod, AtscDerandomizer, AtscEqualizer, AtscViterbi,
};
use millstream_atsc::rx::RxConfig;
use millstream_atsc::segment::{CodeBlock, Segment, SegmentKind};
use millstream_flow::{Block, Item, Key, Mock, Tag, TagTime, TagValue, keys};
use std::sync::Arc;
use std::time::Duration;

#[test]
fn a_packet_has_the_time_at_which_its_last_byte_came() {
    let rate_hz = 6.25e6;
    let samples = signal(14, 0.3, Channel::default());
    let monitor: Arc<_> = Arc::default();
    let (began, late) = (7.25, 2000.0);
    let mut demod = Mock::new(
        AtscDemod::new(RxConfig { sample_rate_hz: rate_hz }, Arc::clone(&monitor)).unwrap(),
    );
    let at = |seconds: f64| TagTime::from(Duration::from_secs_f64(seconds));
    demod.tag("in", 0, keys::RX_RATE_HZ, rate_hz);
    demod.tag("in", 0, keys::RX_TIME, at(began));
    // As if the clock had been set meanwhile: the times follow.
    let turn = samples.len() as u64 / 2;
    demod.tag("in", turn, keys::RX_TIME, at(late));
    demod.feed("in", &samples);
    demod.end("in");
    demod.run().unwrap();
    let segments: Vec<Segment> = demod.take("out");
    let tags = demod.take_tags("out");
    let syncs = segments.iter().filter(|one| matches!(one.kind(), SegmentKind::FieldSync(_)));
    assert_eq!((tags.len(), tags.len() >= 6), (syncs.count(), true), "{tags:?}");
    // The transmitter begins with a field sync: field n ends its sync at n fields and a segment.
    let segment_s = 832.0 / (4.5e6 * 684.0 / 286.0);
    for tag in &tags {
        let index = tag.offset as usize;
        assert!(matches!(segments[index].kind(), SegmentKind::FieldSync(_)), "{tag:?}");
        let TagValue::Time(time) = tag.value else { panic!("{tag:?}") };
        let half = turn as f64 / rate_hz;
        let time = time.as_secs_f64();
        let since = if time > late { time - late + half } else { time - began };
        let after = (since - segment_s).rem_euclid(313.0 * segment_s);
        assert!((0.0..0.003).contains(&after), "{after} s after a sync: {tag:?}");
    }

    let mut equalizer = Mock::new(AtscEqualizer::new(Arc::clone(&monitor)));
    let mut viterbi = Mock::new(AtscViterbi::new());
    let mut deinterleaver = Mock::new(AtscDeinterleaver::new());
    let mut derandomizer = Mock::new(AtscDerandomizer::new(monitor));
    let tags: (Vec<Segment>, _) = through(&mut equalizer, &segments, &tags);
    let kinds = tags.1.iter().map(|tag| tags.0[tag.offset as usize].kind());
    assert!(kinds.into_iter().all(|kind| matches!(kind, SegmentKind::FieldSync(_))));
    let tags: (Vec<CodeBlock>, _) = through(&mut viterbi, &tags.0, &tags.1);
    // The first block behind a field sync, or the one before, which a few symbols complete.
    assert!(tags.1.iter().all(|tag| [311, 0].contains(&tags.0[tag.offset as usize].index)));
    let tags: (Vec<CodeBlock>, _) = through(&mut deinterleaver, &tags.0, &tags.1);
    let places: Vec<_> = tags.1.iter().map(|tag| tags.0[tag.offset as usize].index).collect();
    // A codeword is complete 51 blocks after the first one with its bytes.
    let expected = (312 - 52 - 1..=312 - 52 + 1).collect::<Vec<u16>>();
    assert!(places[1..].iter().all(|place| expected.contains(place)), "{places:?}");
    let bytes: (Vec<u8>, _) = through(&mut derandomizer, &tags.0, &tags.1);
    assert_eq!(bytes.0.len(), 188 * tags.0.len());
    let all = tags.1.iter().map(|tag| 188 * tag.offset).collect::<Vec<_>>();
    let times = bytes.1.iter().filter(|tag| tag.key == keys::RX_TIME);
    assert_eq!(times.map(|tag| tag.offset).collect::<Vec<_>>(), all);
}

/// Demodulates `samples` with tags; returns the tags that come out.
fn tags_of(samples: &[millstream_atsc::Sample], tags: &[(u64, Key, TagValue)]) -> Vec<Tag> {
    let config = RxConfig { sample_rate_hz: 6.25e6 };
    let mut demod = Mock::new(AtscDemod::new(config, Arc::default()).unwrap());
    for (offset, key, value) in tags {
        demod.tag("in", *offset, *key, *value);
    }
    demod.feed("in", samples);
    demod.end("in");
    demod.run().unwrap();
    let _: Vec<Segment> = demod.take("out");
    demod.take_tags("out")
}

#[test]
fn a_field_sync_before_a_gap_has_the_time_before_it() {
    let samples = signal(15, 0.15, Channel::default());
    let at = |seconds: f64| TagValue::Time(TagTime::from(Duration::from_secs_f64(seconds)));
    let began = (0, keys::RX_TIME, at(7.0));
    let whole = tags_of(&samples, &[began]);
    let TagValue::Time(third) = whole[2].value else { panic!("{whole:?}") };
    // Few samples before those with which the sync came: it comes at the gap.
    let taken = ((third.as_secs_f64() - 7.0) * 6.25e6) as usize;
    let (gap, missing) = (taken - 50, 2000);
    let rest = [&samples[..gap], &samples[gap + missing..]].concat();
    let loss = (gap as u64, keys::LOSS_ITEMS, TagValue::Count(missing as u64));
    let jump = (gap as u64, keys::RX_TIME, at(2000.0));
    let tags = tags_of(&rest, &[began, loss, jump]);
    let times = tags.iter().filter_map(|tag| match tag.value {
        TagValue::Time(time) => Some(time.as_secs_f64()),
        _ => None,
    });
    let before = times.filter(|time| *time < 1000.0).collect::<Vec<_>>();
    assert_eq!(before.len(), 3, "{before:?}");
    assert!((before[2] - third.as_secs_f64()).abs() < 1e-4, "{before:?}");
}

#[test]
fn tags_before_the_lock_do_not_pile_up() {
    let samples = signal(16, 0.1, Channel::default());
    let tags: Vec<_> = (0..200).map(|n| (n, keys::LOSS_CAUSE, TagValue::Count(n))).collect();
    let out = tags_of(&samples, &tags);
    let kept: Vec<_> = out.iter().map(|tag| tag.value).collect();
    assert_eq!(kept, (200 - 64..200).map(TagValue::Count).collect::<Vec<_>>(), "the last ones");
}

/// Gives items and tags to a block; returns those that it makes.
fn through<B: Block, A: Item, C: Item>(
    mock: &mut Mock<B>,
    items: &[A],
    tags: &[Tag],
) -> (Vec<C>, Vec<Tag>) {
    tags.iter().for_each(|tag| mock.tag("in", tag.offset, tag.key, tag.value));
    mock.feed("in", items);
    mock.end("in");
    mock.run().unwrap();
    (mock.take("out"), mock.take_tags("out"))
}
