//! Bytes that pass a buffer by, and what its ends grant meanwhile.
#![cfg(not(loom))]

use millstream_ring::cursor::cursors;

#[test]
fn ends_that_are_set_aside_grant_nothing_until_they_catch_up() {
    let (mut producer, mut consumers) = cursors(100, 1);
    let consumer = &mut consumers[0];
    producer.advance(40);
    consumer.advance(consumer.available());
    // Room that was granted before goes as well.
    assert_eq!((producer.room(), producer.granted()), (100, 100));
    producer.set_aside();
    consumer.set_aside();
    let view = producer.view();
    assert!(view.is_drained());
    for _ in 0..3 {
        // SAFETY: both ends are this thread's, and set aside; nothing is in the buffer.
        unsafe { view.pass(1000) };
        assert_eq!((producer.granted(), producer.room()), (0, 0));
        assert_eq!((consumer.granted(), consumer.available()), (0, 0));
        assert!(!consumer.is_ended());
    }
    producer.catch_up();
    consumer.catch_up();
    assert_eq!((producer.position(), consumer.position()), (3040, 3040));
    assert_eq!((producer.room(), consumer.available()), (100, 0));
    producer.advance(7);
    producer.close();
    assert_eq!((consumer.available(), consumer.is_ended()), (7, true));
}
