//! The last entries, read while more are written.

use crate::explore;
use loom::sync::Arc;
use loom::thread;
use millstream_ring::Recent;

#[test]
fn a_reader_sees_whole_entries_in_order() {
    explore(|| {
        let recent = Arc::new(Recent::<2>::new());
        let writer = thread::spawn({
            let recent = recent.clone();
            move || (1..4).for_each(|n| recent.push([n, !n]))
        });
        let seen = recent.since(0);
        assert!(seen.iter().all(|[n, other]| *n == !*other), "half of one, half of another");
        assert!(seen.windows(2).all(|pair| pair[0][0] + 1 == pair[1][0]), "in order");
        writer.join().unwrap();
        assert_eq!(recent.since(0), [[2, !2], [3, !3]]);
    });
}
