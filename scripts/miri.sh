#!/usr/bin/env bash
# Runs tests under Miri, which finds undefined behaviour in unsafe code: aliasing, bounds, data races.
#
# A step takes about a thousand times as long there, so tests with many steps are made shorter or left out: each says
# why where it stands (`cfg!(miri)`, `cfg_attr(miri, ignore = "…")`). Miri cannot map memory twice, so a ring copies
# what is written to its other half there (crates/ring/src/map/miri.rs). Of `flow` it runs what is named below:
# most other tests calculate much without unsafe code, or need files and processes.
#
# scripts/miri.sh [ROOM…]   ring, wire or flow; all without
set -euo pipefail
cd "$(dirname "$0")/.."

# A fixed compiler, so that the result depends on our code alone. Miri of October 2026 refuses how rustix 1.1 calls futex(2).
nightly=${MIRI_TOOLCHAIN:-nightly-2026-05-20}

fail() {
    echo "miri: $1" >&2
    exit 1
}
command -v rustup >/dev/null || fail "rustup is missing: install it from https://rustup.rs"
rustup toolchain list | grep -q "^$nightly" ||
    fail "the compiler $nightly is missing: rustup toolchain install $nightly --profile minimal -c miri -c rust-src"
for part in miri rust-src; do
    rustup "+$nightly" component list --installed 2>/dev/null | grep -q "^$part" ||
        fail "$nightly has no $part: rustup +$nightly component add miri rust-src"
done

# The clock and /proc are the machine's. rustix makes a pointer of a number for futex(2).
export MIRIFLAGS="-Zmiri-disable-isolation -Zmiri-permissive-provenance ${MIRIFLAGS-}"
# Miri's own build of everything, apart from the compiler's.
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/miri"
export PROPTEST_CASES="${PROPTEST_CASES:-8}"
# A backtrace takes minutes there, and some tests panic on purpose.
export RUST_BACKTRACE=0

miri() {
    echo "== miri: $*"
    cargo "+$nightly" miri test "$@"
}

# The simulation of the runtime: threads, rings, trains and the exchange; and the tags.
flow_tests=(runtime::sim::tests::nothing tag::)

for crate in "${@:-ring wire flow}"; do
    for one in $crate; do
        case $one in
        # The governor counts, without unsafe code.
        ring) miri -p millstream-ring --lib --test ring -- --skip governor:: ;;
        wire) miri -p millstream-wire --lib --test wire ;;
        flow) MILLSTREAM_SEEDS="${MILLSTREAM_SEEDS:-3}" miri -p millstream-flow --lib -- "${flow_tests[@]}" ;;
        *) fail "unknown crate \`$one\`; expected ring, wire or flow" ;;
        esac
    done
done
