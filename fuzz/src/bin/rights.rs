//! Fuzzes what a broker hears from its clients, and they from it: what is accepted means what it
//! says, to the byte.
#![no_main]

use millstream_link::rights::message::{Reply, Request};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Ok(request) = Request::decode(bytes) {
        assert_eq!(request.encode(), bytes);
    }
    if let Ok(reply) = Reply::decode(bytes) {
        assert_eq!(reply.encode(), bytes);
    }
});
