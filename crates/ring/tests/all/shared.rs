//! The cursors of a shared ring behave like a queue, for any initial words.
#![cfg(not(loom))]

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use millstream_ring::shared::{SharedConsumer, SharedProducer};
use proptest::prelude::*;

proptest! {
    #[test]
    fn a_shared_ring_is_a_bounded_queue(
        power in 0u32..6,
        start in prop_oneof![Just(0), Just(u32::MAX - 3), any::<u32>()],
        steps in prop::collection::vec((any::<bool>(), 0u32..80), 1..200),
    ) {
        let entries = 1 << power;
        let [produced, consumed] = [0, 0].map(|_| Arc::new(AtomicU32::new(start)));
        let mut producer =
            SharedProducer::new(Arc::clone(&produced), Arc::clone(&consumed), entries);
        let mut consumer = SharedConsumer::new(produced, consumed, entries);
        let (mut slots, mut queue, mut next) = (vec![0; entries as usize], VecDeque::new(), 0);
        for (write, count) in steps {
            if write {
                let room = producer.room(count);
                // The copy may be old, but never grants too much, nor too little when more is
                // wanted.
                let free = entries - queue.len() as u32;
                prop_assert!(room <= free && room >= count.min(free));
                let count = count.min(room);
                for ahead in 0..count {
                    slots[producer.index(ahead)] = next;
                    queue.push_back(next);
                    next += 1;
                }
                producer.advance(count);
            } else {
                let available = consumer.available(count);
                prop_assert!(available <= queue.len() as u32);
                prop_assert!(available >= count.min(queue.len() as u32));
                let count = count.min(available);
                for ahead in 0..count {
                    prop_assert_eq!(Some(slots[consumer.index(ahead)]), queue.pop_front());
                }
                consumer.advance(count);
            }
            prop_assert_eq!(producer.pending(), queue.len() as u32);
            prop_assert_eq!(consumer.pending(), queue.len() as u32);
        }
    }
}
