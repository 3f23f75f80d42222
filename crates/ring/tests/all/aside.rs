//! Items that bypass a ring, and the grants of its ends meanwhile and afterwards.
#![cfg(not(loom))]

use millstream_ring::cursor::cursors;
use millstream_ring::{Reader, RingOptions, Writer, ring};

fn one() -> (Writer<u32>, Reader<u32>) {
    let (writer, mut readers) = ring::<u32>(&RingOptions::items(1)).unwrap();
    (writer, readers.pop().unwrap())
}

#[test]
fn what_passes_a_buffer_by_counts_and_grants_nothing() {
    let (mut producer, mut consumers) = cursors(100, 1);
    let consumer = &mut consumers[0];
    producer.advance(40);
    consumer.advance(consumer.available());
    // Room that was granted before is lost as well.
    assert_eq!((producer.room(), producer.granted()), (100, 100));
    for lap in 1..4 {
        producer.count_bypassed(consumer, 1000);
        assert_eq!((producer.granted(), consumer.granted()), (0, 0));
        assert_eq!((producer.position(), consumer.position()), (40 + lap * 1000, 40 + lap * 1000));
    }
    assert_eq!((producer.room(), consumer.available()), (100, 0));
    producer.advance(7);
    producer.close();
    assert_eq!((consumer.available(), consumer.is_ended()), (7, true));
}

#[test]
#[should_panic(expected = "only if it is empty and has these two ends")]
fn nothing_passes_a_buffer_that_holds_something() {
    let (mut producer, mut consumers) = cursors(100, 1);
    producer.advance(1);
    producer.count_bypassed(&mut consumers[0], 1);
}

#[test]
#[should_panic(expected = "only if it is empty and has these two ends")]
fn nothing_passes_between_ends_of_two_buffers() {
    let [(mut producer, _a), (_b, mut consumers)] = [0, 1].map(|_| cursors(100, 1));
    producer.count_bypassed(&mut consumers[0], 1);
}

#[test]
fn ends_without_their_cursors_grant_nothing() {
    let (mut writer, mut reader) = one();
    writer.slice_mut()[0] = 7;
    writer.produce(1);
    let (producer, consumer) = (writer.bypass().unwrap(), reader.bypass().unwrap());
    assert!(writer.bypass().is_none() && reader.bypass().is_none());
    assert_eq!((writer.slice_mut().len(), reader.slice().len(), reader.available()), (0, 0, 0));
    writer.produce(0);
    reader.consume(0);
    // Without effect while the cursors are handed out.
    writer.close();
    reader.close();
    assert!(!reader.is_ended() && !writer.is_abandoned());
    writer.resume(producer);
    reader.resume(consumer);
    assert_eq!(reader.slice(), [7]);
}

#[test]
fn a_cursor_of_another_ring_is_refused() {
    let ((mut a, mut a_reader), (mut b, mut b_reader)) = (one(), one());
    let (a_cursor, b_cursor) = (a.bypass().unwrap(), b.bypass().unwrap());
    a.resume(b_cursor);
    assert!(a.slice_mut().is_empty());
    assert!(b_reader.slice().is_empty() && b_reader.is_ended(), "it was dropped");
    a.resume(a_cursor);
    assert!(!a.slice_mut().is_empty());
    let cursor = b_reader.bypass().unwrap();
    let own = a_reader.bypass().unwrap();
    a_reader.resume(cursor);
    a_reader.resume(own);
    a.produce(1);
    assert_eq!(a_reader.slice().len(), 1);
}

/// The cursor moves outside of the ring, by the same amount at both ends: addresses depend on
/// positions, so both ends find the same address again.
#[test]
fn both_ends_go_on_at_one_place_however_much_has_passed() {
    let (mut writer, mut reader) = one();
    let capacity = writer.capacity() as u64;
    for passed in [1, capacity - 1, capacity, capacity + 1, 5 * capacity + 3, 1 << 40] {
        let (mut producer, mut consumer) = (writer.bypass().unwrap(), reader.bypass().unwrap());
        producer.count_bypassed(&mut consumer, passed);
        writer.resume(producer);
        reader.resume(consumer);
        for item in 0..10 {
            let room = writer.slice_mut();
            assert_eq!(room.len() as u64, capacity);
            room[..3].copy_from_slice(&[item, item + 1, item + 2]);
            writer.produce(3);
            assert_eq!(reader.slice(), [item, item + 1, item + 2]);
            reader.consume(3);
        }
    }
}
