#!/usr/bin/env bash
# Runs the tests of the crates with unsafe code shared by threads, and of the planner, which moves the blocks of graphs that
# run, under the address and the thread sanitizer.
#
# The flags are unstable, so the stable compiler is told to take them (RUSTC_BOOTSTRAP). The standard
# library stays as it was built: scripts/tsan.supp lists what the thread sanitizer cannot see in it.
set -euo pipefail
cd "$(dirname "$0")/.."
target=$(rustc -vV | sed -n 's/^host: //p')
crates=(-p millstream-ring -p millstream-flow -p millstream-planner)
# The sanitizers allocate; tuner and partitioner calculate much, without threads or unsafe code.
skipped=(--skip allocate --skip tune:: --skip place::)
export RUSTC_BOOTSTRAP=1
# The thread sanitizer has it name what the suppressions name: without it, the test harness is reported for races.
command -v addr2line >/dev/null || { echo "sanitize: addr2line is missing: apt-get install binutils" >&2; exit 1; }

sanitize() {
    echo "== $1 sanitizer"
    RUSTFLAGS="-Zsanitizer=$1 $2" CARGO_TARGET_DIR="target/sanitize-$1" \
        cargo test "${crates[@]}" --tests --target "$target" -- --test-threads=1 "${skipped[@]}"
}

# A sanitizer that finds nothing may be one that does not look: first it must find a race made for it.
proof=$(mktemp -d)
trap 'rm -rf "$proof"' EXIT
cat >"$proof/race.rs" <<'END'
static mut SHARED: u64 = 0;
fn main() {
    let other = std::thread::spawn(|| unsafe { SHARED += 1 });
    unsafe { SHARED += 1 };
    let _ = other.join();
}
END
rustc --edition 2021 -Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer -o "$proof/race" "$proof/race.rs"
if "$proof/race" >/dev/null 2>&1; then
    echo "sanitize: the thread sanitizer missed a plain race" >&2
    exit 1
fi

sanitize address ""
TSAN_OPTIONS="suppressions=$PWD/scripts/tsan.supp" \
    sanitize thread "-Cunsafe-allow-abi-mismatch=sanitizer"
