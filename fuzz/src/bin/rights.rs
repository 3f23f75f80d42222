//! Fuzzes the messages between a broker and its clients, in both directions: an accepted message
//! means exactly its bytes.
#![no_main]

use millstream_link::rights::message::{BrokerReply, BrokerRequest};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Ok(request) = BrokerRequest::decode(bytes) {
        assert_eq!(request.encode(), bytes);
    }
    if let Ok(reply) = BrokerReply::decode(bytes) {
        assert_eq!(reply.encode(), bytes);
    }
});
