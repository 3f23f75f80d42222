//! The ring behaves like a queue, for any item size and any sequence of operations.
#![cfg(not(loom))]

use bytemuck::Zeroable;
use millstream_ring::{Item, Reader, RingOptions, Writer, ring};
use proptest::prelude::*;
use std::collections::VecDeque;
use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};

#[derive(Clone, Debug)]
enum Step {
    Write(usize),
    Read(usize, usize),
    CloseReader(usize),
    CloseWriter,
    /// Takes a reader's cursor out and puts it back.
    AsideReader(usize),
    AsideWriter,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        20 => (0usize..6000).prop_map(Step::Write),
        20 => (0usize..3, 0usize..6000).prop_map(|(reader, items)| Step::Read(reader, items)),
        1 => (0usize..3).prop_map(Step::CloseReader),
        1 => Just(Step::CloseWriter),
        2 => (0usize..3).prop_map(Step::AsideReader),
        2 => Just(Step::AsideWriter),
    ]
}

/// Steps of a case. Fewer under Miri, and fewer cases: a step takes some thousand times as long.
const STEPS: usize = if cfg!(miri) { 15 } else { 80 };

fn cases() -> ProptestConfig {
    let cases = if cfg!(miri) { 2 } else { ProptestConfig::default().cases };
    ProptestConfig { failure_persistence: None, cases, ..Default::default() }
}

/// Checks that no memory belongs to the writer and a reader at once. Two items are the same if they
/// are a capacity apart.
fn check_apart<T: Item>(writer: &mut Writer<T>, taps: &[Tap<T>]) {
    let (bytes, half) = (size_of::<T>(), writer.capacity() * size_of::<T>());
    let half = half.next_multiple_of(rustix::param::page_size());
    let room = writer.slice_mut();
    let (room_start, room_bytes) = (room.as_ptr().addr(), room.len() * bytes);
    // All mappings of a ring begin at one address; only distances count.
    for tap in taps {
        let items = tap.reader.slice();
        let (start, length) = (items.as_ptr().addr(), items.len() * bytes);
        if room_bytes == 0 || length == 0 {
            continue;
        }
        let ahead = (start as i128 - room_start as i128).rem_euclid(half as i128) as usize;
        assert!(ahead >= room_bytes && ahead + length <= half, "one has what the other has");
    }
}

/// A reader, and the queue with its expected items.
struct Tap<T> {
    reader: Reader<T>,
    expected: VecDeque<T>,
    open: bool,
}

fn write<T: Item>(
    writer: &mut Writer<T>,
    taps: &mut [Tap<T>],
    items: usize,
    next: &mut impl FnMut() -> T,
) {
    let held = taps.iter().filter(|tap| tap.open).map(|tap| tap.expected.len()).max();
    let capacity = writer.capacity();
    let room = writer.slice_mut();
    assert_eq!(room.len(), capacity - held.unwrap_or(0), "room is what the slowest left");
    let items = items.min(room.len());
    for slot in &mut room[..items] {
        *slot = next();
        for tap in taps.iter_mut().filter(|tap| tap.open) {
            tap.expected.push_back(*slot);
        }
    }
    writer.produce(items);
}

/// A closed end grants nothing, whatever is called on it.
fn write_after_the_close<T: Item>(writer: &mut Writer<T>, items: usize) {
    assert!(writer.slice_mut().is_empty(), "a closed writer has no room");
    writer.produce(0);
    let produced = catch_unwind(AssertUnwindSafe(|| writer.produce(items)));
    assert_eq!(produced.is_ok(), items == 0, "it hands nothing over");
}

fn check<T: Item + Debug + PartialEq>(steps: &[Step], mut next: impl FnMut() -> T) {
    let options = RingOptions::items(100).readers(3);
    let (mut writer, readers) = ring::<T>(&options).unwrap();
    let taps = readers.into_iter();
    let mut taps: Vec<Tap<T>> =
        taps.map(|reader| Tap { reader, expected: VecDeque::new(), open: true }).collect();
    let mut writing = true;
    for step in steps {
        match step {
            Step::Write(items) if writing => write(&mut writer, &mut taps, *items, &mut next),
            Step::Write(items) => write_after_the_close(&mut writer, *items),
            Step::Read(index, items) => {
                let tap = &mut taps[*index];
                assert_eq!(tap.reader.slice(), tap.expected.make_contiguous());
                assert_eq!(tap.reader.is_ended(), !tap.open || !writing);
                let items = (*items).min(tap.expected.len());
                tap.reader.consume(items);
                tap.expected.drain(..items);
            }
            Step::CloseReader(index) => {
                taps[*index].reader.close();
                taps[*index].open = false;
                taps[*index].expected.clear();
            }
            Step::CloseWriter => {
                writer.close();
                writing = false;
            }
            Step::AsideReader(index) => {
                let reader = &mut taps[*index].reader;
                let cursor = reader.bypass().unwrap();
                assert!(reader.slice().is_empty() && reader.bypass().is_none());
                reader.consume(0);
                reader.resume(cursor);
            }
            Step::AsideWriter => {
                let cursor = writer.bypass().unwrap();
                assert!(writer.slice_mut().is_empty() && writer.bypass().is_none());
                writer.produce(0);
                writer.resume(cursor);
            }
        }
        check_apart(&mut writer, &taps);
        assert_eq!(writer.is_abandoned(), taps.iter().all(|tap| !tap.open));
    }
}

/// A user's struct, of a size that does not divide a page.
#[derive(Clone, Copy, Debug, PartialEq, Zeroable)]
#[repr(C)]
struct Segment {
    number: u32,
    symbols: [f32; 7],
    flag: bool,
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn bytes(steps in prop::collection::vec(step(), 1..STEPS)) {
        let mut n = 0u8;
        check(&steps, || { n = n.wrapping_add(1); n });
    }

    #[test]
    fn items_of_three_bytes(steps in prop::collection::vec(step(), 1..STEPS)) {
        let mut n = 0u8;
        check(&steps, || { n = n.wrapping_add(1); [n, !n, n ^ 0x55] });
    }

    #[test]
    fn a_struct(steps in prop::collection::vec(step(), 1..STEPS)) {
        let mut n = 0u32;
        check(&steps, || {
            n += 1;
            Segment { number: n, symbols: [n as f32; 7], flag: n % 3 == 0 }
        });
    }
}

#[test]
fn types_that_cannot_live_in_a_ring_are_refused() {
    #[derive(Clone, Copy, Zeroable)]
    #[repr(align(8192))]
    struct Wide(#[allow(dead_code, reason = "only its alignment matters")] u8);
    let error = ring::<()>(&RingOptions::items(1)).unwrap_err().to_string();
    assert_eq!(
        error,
        "items of type () cannot be in a ring, because they have no size or need more than page \
         alignment"
    );
    if rustix::param::page_size() < align_of::<Wide>() {
        assert!(ring::<Wide>(&RingOptions::items(1)).is_err());
    }
}

#[test]
#[should_panic(expected = "produced more than the room reported")]
fn producing_more_than_the_room_is_refused() {
    let (mut writer, _readers) = ring::<u8>(&RingOptions::items(1)).unwrap();
    let room = writer.slice_mut().len();
    writer.produce(room + 1);
}

#[test]
#[should_panic(expected = "consumed more than was reported available")]
fn consuming_more_than_there_is_is_refused() {
    let (_writer, mut readers) = ring::<u8>(&RingOptions::items(1)).unwrap();
    readers[0].consume(1);
}

#[test]
fn without_readers_everything_is_room() {
    let (mut writer, readers) = ring::<u16>(&RingOptions::items(1).readers(0)).unwrap();
    assert!(readers.is_empty() && !writer.is_abandoned());
    for _ in 0..3 {
        assert_eq!(writer.slice_mut().len(), writer.capacity());
        writer.produce(writer.capacity());
    }
}
