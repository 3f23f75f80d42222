//! Rings that share memory behave like rings that do not.
#![cfg(not(loom))]

use millstream_ring::{Pool, Reader, RingOptions, Writer, ring};
use std::any::TypeId;

fn pool(rings: usize) -> Pool {
    let pool = Pool::new(TypeId::of::<u32>(), rings, 1, false).unwrap();
    // SAFETY: no other thread uses it.
    unsafe { pool.enter() };
    pool
}

fn of(pool: &Pool) -> (Writer<u32>, Reader<u32>) {
    let options = RingOptions { pool: Some(pool.clone()), ..RingOptions::items(1) };
    let (writer, mut readers) = ring::<u32>(&options).unwrap();
    (writer, readers.pop().unwrap())
}

fn read(reader: &mut Reader<u32>, items: usize) {
    assert!(reader.slice().len() >= items);
    reader.consume(items);
}

fn write(writer: &mut Writer<u32>, items: &[u32]) {
    writer.slice_mut()[..items.len()].copy_from_slice(items);
    writer.produce(items.len());
}

#[test]
fn a_chain_of_rings_alternates_between_two_buffers() {
    let pool = pool(5);
    let mut rings: Vec<_> = (0..5).map(|_| of(&pool)).collect();
    let mut seen = std::collections::BTreeSet::new();
    for lap in 0..10 {
        write(&mut rings[0].0, &[lap, lap + 1]);
        for stage in 1..5 {
            let items = rings[stage - 1].1.slice().to_vec();
            let room = rings[stage].0.slice_mut();
            seen.insert(room.as_ptr().addr());
            room[..2].copy_from_slice(&items);
            rings[stage - 1].1.consume(2);
            rings[stage].0.produce(2);
        }
        assert_eq!(rings[4].1.slice(), [lap, lap + 1]);
        rings[4].1.consume(2);
    }
    assert_eq!(seen.len(), 2);
}

#[test]
fn a_ring_that_keeps_items_keeps_its_buffer() {
    let pool = pool(3);
    let ((mut a, mut a_reader), (mut b, mut b_reader)) = (of(&pool), of(&pool));
    write(&mut a, &[1, 2, 3]);
    read(&mut a_reader, 1);
    for n in 0..crate::steps(5000) as u32 {
        write(&mut b, &[n]);
        read(&mut b_reader, 1);
        write(&mut a, &[n]);
        read(&mut a_reader, 1);
        assert_eq!(a_reader.slice().len(), 2);
        assert_eq!(a_reader.slice()[1], n);
    }
}

#[test]
fn a_settled_ring_goes_on_where_it_was_and_on_other_threads() {
    for held in [0, 1, 700] {
        let pool = pool(2);
        let (mut writer, mut reader) = of(&pool);
        for lap in 0..3 {
            write(&mut writer, &[lap; 600]);
            read(&mut reader, 600);
        }
        write(&mut writer, &[6; 200]);
        write(&mut writer, &vec![7; held]);
        read(&mut reader, if held == 0 { 200 } else { 199 });
        let expected = [vec![6; usize::from(held > 0)], vec![7; held]].concat();
        // SAFETY: no other thread uses it.
        unsafe { reader.loan().unwrap().reclaim() };
        assert!(writer.loan().unwrap().pool().is_none(), "both ends know");
        let count = crate::steps(100_000) as u32;
        let thread = std::thread::spawn(move || {
            for n in 0..count {
                while writer.slice_mut().is_empty() {
                    std::thread::yield_now();
                }
                write(&mut writer, &[n]);
            }
        });
        let (mut next, mut skip) = (0, expected);
        while next < count {
            let items = reader.slice().to_vec();
            for item in &items {
                if skip.is_empty() {
                    assert_eq!(*item, next);
                    next += 1;
                } else {
                    assert_eq!(*item, skip.remove(0));
                }
            }
            reader.consume(items.len());
        }
        thread.join().unwrap();
    }
}

#[test]
fn what_is_produced_of_an_old_slice_has_memory_too() {
    let pool = pool(2);
    let ((mut a, mut a_reader), (mut b, mut b_reader)) = (of(&pool), of(&pool));
    for lap in 0..crate::steps(5000) as u32 {
        assert!(a.slice_mut().len() > 3);
        a_reader.consume(0);
        write(&mut b, &[lap; 5]);
        // Without another poll: old items, with any values.
        a.produce(2);
        write(&mut a, &[lap]);
        assert_eq!((a_reader.slice().len(), a_reader.slice()[2]), (3, lap));
        assert_eq!(b_reader.slice(), [lap; 5], "nobody writes into the other's buffer");
        a_reader.consume(3);
        b_reader.consume(5);
    }
}

/// A writer's slice that lives on, in a block that has given its port away: no other ring gets its
/// memory, whatever the reader does.
#[test]
fn a_slice_that_is_never_put_down_keeps_its_memory() {
    let pool = pool(3);
    let (writer, mut reader) = of(&pool);
    let writer = Box::into_raw(Box::new(writer));
    // SAFETY: nothing else points there, and it is dropped at the end.
    let kept = unsafe { &mut *writer }.slice_mut();
    kept.fill(1);
    // The ring is empty, so a reader that polls it could give the memory back.
    reader.consume(0);
    let ((mut other, mut other_reader), (mut third, mut third_reader)) = (of(&pool), of(&pool));
    for lap in 2..9 {
        write(&mut other, &[lap; 100]);
        write(&mut third, &[lap; 100]);
        assert!(kept.iter().all(|item| *item == 1));
        kept.fill(1);
        assert_eq!(
            (other_reader.slice(), third_reader.slice()),
            ([lap; 100].as_slice(), [lap; 100].as_slice())
        );
        read(&mut other_reader, 100);
        read(&mut third_reader, 100);
    }
    // SAFETY: no other thread uses the pool.
    unsafe { reader.loan().unwrap().reclaim() };
    kept.fill(2);
    assert!(reader.slice().is_empty());
    // SAFETY: `kept` is not used any more.
    drop(unsafe { Box::from_raw(writer) });
}

/// The same for a reader's slice, when the ring gets permanent memory.
#[test]
fn a_slice_of_items_outlives_the_settling_of_its_ring() {
    let pool = pool(2);
    let ((mut writer, reader), (mut other, _other_reader)) = (of(&pool), of(&pool));
    write(&mut writer, &[5; 10]);
    let reader = Box::into_raw(Box::new(reader));
    // SAFETY: nothing else points there, and it is dropped at the end.
    let leaked = unsafe { &*reader };
    let kept: &'static [u32] = leaked.slice();
    // SAFETY: no other thread uses the pool.
    unsafe { leaked.loan().unwrap().reclaim() };
    other.slice_mut().fill(9);
    writer.slice_mut().fill(8);
    assert_eq!(kept, [5; 10]);
    // SAFETY: `kept` is not used any more.
    drop(unsafe { Box::from_raw(reader) });
}

#[test]
fn nobody_uses_a_pool_that_was_left() {
    let pool = pool(1);
    let (mut writer, _reader) = of(&pool);
    write(&mut writer, &[1]);
    // SAFETY: no thread is using it.
    unsafe { pool.leave() };
    let outcome =
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| writer.slice_mut().len()));
    assert!(outcome.is_err());
}

#[test]
fn another_thread_is_refused() {
    let (mut writer, _reader) = of(&pool(1));
    let outcome = std::thread::spawn(move || writer.slice_mut().len()).join();
    let panic = outcome.unwrap_err();
    assert_eq!(
        panic.downcast_ref::<&str>(),
        Some(&"a port was used outside of its block's thread")
    );
}

#[test]
fn rings_of_other_items_or_with_several_readers_have_their_own_memory() {
    let pool = pool(1);
    let options = RingOptions { pool: Some(pool), ..RingOptions::items(1) };
    assert!(ring::<f32>(&options).unwrap().0.loan().is_none());
    assert!(ring::<u32>(&options.clone().readers(2)).unwrap().0.loan().is_none());
    assert!(ring::<u32>(&options).unwrap().0.loan().is_some());
}

#[test]
fn a_batch_is_the_most_that_a_slice_shows() {
    let options = RingOptions { batch_items: 10, ..RingOptions::items(100) };
    let (mut writer, mut readers) = ring::<u32>(&options).unwrap();
    let mut reader = readers.pop().unwrap();
    for _ in 0..2 {
        assert_eq!(writer.slice_mut().len(), 10);
        writer.produce(10);
    }
    writer.close();
    assert_eq!((reader.slice().len(), reader.is_ended()), (10, false), "there is more");
    reader.want(15);
    assert_eq!(reader.slice().len(), 15, "what is wanted is shown");
    reader.consume(10);
    assert_eq!((reader.slice().len(), reader.is_ended()), (10, true));
}
