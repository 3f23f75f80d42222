//! The channel: its cells are `loom`'s, so any access that the cursors do not order is reported;
//! its items are counted by `loom`'s `Arc`, so an item that leaks or is dropped twice is reported
//! too.

use crate::explore;
use loom::sync::Arc;
use loom::thread;
use millstream_ring::spsc::channel;

#[test]
fn every_item_arrives_once_and_in_order_through_a_small_ring() {
    explore(|| {
        const ITEMS: usize = 3;
        let (mut sender, mut receiver) = channel::<Arc<usize>>(1);
        let writer = thread::spawn(move || {
            let mut batch: Vec<_> = (0..ITEMS).map(Arc::new).collect();
            while !batch.is_empty() {
                if sender.push_batch(&mut batch) == 0 {
                    thread::yield_now();
                }
            }
        });
        let mut seen = Vec::with_capacity(ITEMS);
        while !receiver.is_ended() {
            if receiver.pop_batch(&mut seen, ITEMS) == 0 {
                thread::yield_now();
            }
        }
        assert!(seen.iter().map(|item| **item).eq(0..ITEMS));
        writer.join().unwrap();
    });
}

#[test]
fn single_items_pass_while_the_ring_wraps() {
    explore(|| {
        let (mut sender, mut receiver) = channel::<Arc<usize>>(2);
        let writer = thread::spawn(move || {
            for number in 0..3 {
                let mut item = Arc::new(number);
                while let Err(back) = sender.push(item) {
                    item = back;
                    thread::yield_now();
                }
            }
        });
        for number in 0..3 {
            let item = loop {
                match receiver.pop() {
                    Some(item) => break item,
                    None => thread::yield_now(),
                }
            };
            assert_eq!(*item, number);
        }
        writer.join().unwrap();
        assert!(receiver.is_ended());
    });
}

#[test]
fn items_left_by_both_are_dropped_once_whoever_goes_last() {
    explore(|| {
        let item = Arc::new(());
        let (mut sender, mut receiver) = channel(2);
        let writer = thread::spawn({
            let item = item.clone();
            move || {
                for _ in 0..3 {
                    // The room and the presence of the receiver depend on the order.
                    let _ = sender.push(item.clone());
                }
            }
        });
        drop(receiver.pop());
        drop(receiver);
        writer.join().unwrap();
        assert_eq!(Arc::strong_count(&item), 1);
    });
}

#[test]
fn what_a_receiver_left_can_be_taken_back_and_nothing_is_lost() {
    explore(|| {
        let (mut sender, mut receiver) = channel(1);
        let reader = thread::spawn(move || receiver.pop());
        let mut kept = vec![1, 2];
        sender.push_batch(&mut kept);
        while !sender.is_abandoned() {
            thread::yield_now();
        }
        // Items beyond the room stay; an abandoned ring takes none.
        assert_eq!(sender.push_batch(&mut kept), 0);
        let mut back: Vec<_> = reader.join().unwrap().into_iter().collect();
        sender.reclaim(&mut back);
        back.append(&mut kept);
        assert_eq!(back, [1, 2]);
        assert_eq!(sender.reclaim(&mut back), 0, "only once");
    });
}
