//! Numbers that no parameter expects: each is refused by name, or makes a block of ordinary size.

use super::registry::{cases, registry};
use millstream_flow::registry::ParameterKind;

/// Memory that a block may take, bytes.
const MOST: u64 = 1 << 30;

/// Returns the size of this process's memory, also of what was never touched.
fn mapped_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = text.split(' ').next().unwrap().parse().unwrap();
    pages * 4096
}

#[test]
fn no_number_of_any_type_sizes_memory_without_a_limit() {
    let registry = registry();
    for (name, values) in cases() {
        let known = registry.get(&name).unwrap();
        for parameter in known.parameters() {
            let wild = match parameter.kind {
                ParameterKind::Integer => [i64::MAX, 1 << 40, 1 << 31, 70_000, 0, -1]
                    .map(|number| number.to_string())
                    .to_vec(),
                ParameterKind::Number => {
                    ["1e300", "1e12", "1e-300", "1e-9", "0.0", "-1.0"].map(str::to_owned).to_vec()
                }
                _ => continue,
            };
            let own = |line: &&str| !line.starts_with(&format!("{} = ", parameter.name));
            let others: Vec<&str> = values.lines().filter(own).collect();
            for number in wild {
                let before = mapped_bytes();
                let set = format!("{}\n{} = {number}", others.join("\n"), parameter.name);
                let made = registry.make(&name, &set);
                let taken = mapped_bytes().saturating_sub(before);
                assert!(taken < MOST, "{name}, {} = {number}: {taken} bytes", parameter.name);
                drop(made);
            }
        }
    }
    let own = "interpolation = 4000000000\ndecimation = 1\ntaps = [1, 2]";
    let error = registry.make("rational_resampler", own).err().unwrap().to_string();
    assert!(error.contains("expected 1 to 65536"), "{error}");
}
