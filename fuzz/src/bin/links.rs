//! Fuzzes link strings: each is accepted or refused, and an accepted one has the same meaning when
//! it is written again.
#![no_main]

use millstream_link::Spec;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(spec) = Spec::parse(text) else { return };
    let again = Spec::parse(&spec.to_string()).expect("it was understood before");
    assert_eq!(again, spec);
    let (first, second) = (millstream_net::check(text), millstream_net::check(&spec.to_string()));
    assert_eq!(first.is_ok(), second.is_ok());
});
