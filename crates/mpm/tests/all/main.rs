//! Tests with arbitrary bytes.

mod exercise;

use proptest::collection::vec;
use proptest::prelude::*;

fn frame() -> impl Strategy<Value = Vec<u8>> {
    let kind = prop_oneof![4 => 0..10u8, 1 => any::<u8>()];
    let stream = prop_oneof![Just(0u32), Just(1), Just(3), any::<u32>()];
    // Indexed headers, and the start of a response.
    let byte = prop_oneof![Just(0x83u8), Just(0x86), Just(0x88), 0..10u8, any::<u8>()];
    (kind, 0..48u8, stream, vec(byte, 0..60)).prop_map(|(kind, flags, stream, payload)| {
        let length = (payload.len() as u32).to_be_bytes();
        [&length[1..], &[kind, flags], &stream.to_be_bytes(), &payload].concat()
    })
}

proptest! {
    #[test]
    fn a_message_of_any_bytes_is_decoded_or_refused(bytes in vec(any::<u8>(), 0..200)) {
        exercise::message(&bytes);
    }

    #[test]
    fn a_connection_of_any_bytes_ends_or_goes_on(bytes in vec(any::<u8>(), 0..300)) {
        exercise::connection(&bytes);
    }

    #[test]
    fn a_connection_of_any_frames_ends_or_goes_on(frames in vec(frame(), 0..30)) {
        exercise::connection(&frames.concat());
    }
}
