//! Fuzzes the kernel's description of its types: any file is refused or answers, within bounds.
#![no_main]

use millstream_host::bpf::Btf;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Ok(types) = Btf::parse(bytes.to_vec()) else { return };
    let _ = (types.offset("a", "b.c"), types.enumeration("a"), types.function("a"));
    if let Ok(point) = types.tracepoint("a") {
        assert!(point.arguments < 1 << 16);
    }
});
