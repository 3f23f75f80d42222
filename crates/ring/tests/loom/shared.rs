//! The cursors of a ring whose words are shared with another owner.

use loom::sync::Arc;
use loom::sync::atomic::AtomicU32;
use loom::thread;
use millstream_ring::shared::{SharedConsumer, SharedProducer};

use crate::{Memory, explore};

/// Every entry is written before it is read and read before it is written again.
#[test]
fn entries_of_a_shared_ring_have_one_owner_at_a_time() {
    explore(|| {
        const ENTRIES: u32 = 2;
        const ALL: u64 = 3;
        let memory = Memory::new(ENTRIES.into());
        // Just before the words wrap.
        let [produced, consumed] = [0, 0].map(|_| Arc::new(AtomicU32::new(u32::MAX - 1)));
        let mut producer =
            SharedProducer::new(Arc::clone(&produced), Arc::clone(&consumed), ENTRIES);
        let mut consumer = SharedConsumer::new(produced, consumed, ENTRIES);
        let theirs = Arc::clone(&memory);
        let writer = thread::spawn(move || {
            let mut next = 0;
            while next < ALL {
                if producer.room(1) == 0 {
                    thread::yield_now();
                    continue;
                }
                theirs.write(producer.index(0) as u64, next);
                producer.advance(1);
                next += 1;
            }
        });
        let mut next = 0;
        while next < ALL {
            let count = consumer.available(1);
            for ahead in 0..count {
                assert_eq!(memory.read(consumer.index(ahead) as u64), next);
                next += 1;
            }
            consumer.advance(count);
            thread::yield_now();
        }
        writer.join().unwrap();
    });
}
