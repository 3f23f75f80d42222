#!/bin/sh
# Runs every fuzz target for a short time on stable Rust (libFuzzer, no cargo-fuzz, no sanitizer).
#
#   fuzz/run.sh [SECONDS] [TARGET...]      default: 10 seconds for each target
#   FUZZ_RUNS=10000000 FUZZ_LENGTH=512 fuzz/run.sh 0 receive    so many inputs, of so many bytes at most
#
# A target for each processor runs at a time. Prints one line per target. Ends with 1 behind the first crash and says
# where the input that crashed lies; replay it with  fuzz/run.sh repro TARGET FILE.
#
# A target is a file src/bin/NAME.rs, and its seeds are the files in corpus/NAME/ (optional). The
# seeds are only read: what libFuzzer finds goes to a temporary folder. Needs g++ for libFuzzer.
set -eu
cd "$(dirname "$0")"

# Needed: coverage by inline counters, a table of program counters for libFuzzer to name them.
flags='--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4'
flags="$flags -Cllvm-args=-sanitizer-coverage-inline-8bit-counters"
flags="$flags -Cllvm-args=-sanitizer-coverage-pc-table"
flags="$flags -Cllvm-args=-sanitizer-coverage-trace-compares"
host=$(rustc -vV | sed -n 's/^host: //p')
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$PWD/target}"
bin="$CARGO_TARGET_DIR/$host/release"

# One target, for all of its time: called by xargs below.
if [ "${1:-}" = one ]; then
    work="$2" seconds="$3" target="$4"
    mkdir -p "$work/$target" "artifacts/$target"
    seeds=""
    [ ! -d "corpus/$target" ] || seeds="corpus/$target"
    log="$work/$target.log"
    # shellcheck disable=SC2086
    if TMPDIR="$work" "$bin/$target" -max_total_time="$seconds" -runs="${FUZZ_RUNS:--1}" -timeout=10 \
        -max_len="${FUZZ_LENGTH:-4096}" -print_final_stats=1 -artifact_prefix="artifacts/$target/" \
        "$work/$target" $seeds >"$log" 2>&1; then
        runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
        cov=$(sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "$log" | tail -1)
        seed=$(sed -n 's/^INFO: Seed: //p' "$log")
        [ -n "$cov" ] || { echo "fuzz $target: no coverage, built without the flags?"; exit 255; }
        took=$(sed -n 's/^Done .* in \([0-9]*\) second.*/\1/p' "$log")
        echo "fuzz $target: ok, $runs runs in $took s, coverage $cov, seed $seed"
        exit 0
    fi
    sed -n '/panicked at/,+1p; /^SUMMARY/p' "$log"
    input=$(sed -n 's/.*Test unit written to //p' "$log" | tail -1)
    echo "fuzz $target: CRASH, input: fuzz/${input:-none written}"
    # 255: xargs begins no other target.
    exit 255
fi

command -v g++ >/dev/null || { echo "fuzz: g++ is missing (Debian package g++)" >&2; exit 1; }
# --target keeps the flags away from build scripts.
RUSTFLAGS="$flags" cargo build --quiet --release --target "$host"

if [ "${1:-}" = repro ]; then
    exec "$bin/$2" "$3"
fi

seconds="${1:-${FUZZ_SECONDS:-10}}"
[ $# -eq 0 ] || shift
[ $# -gt 0 ] || set -- $(cd src/bin && ls ./*.rs | sed 's|^\./||; s|\.rs$||')

# Some targets write files for each input: in memory, where that can be had.
work=$(mktemp -d -p /dev/shm 2>/dev/null || mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
# Each processor has a target; xargs ends with 124 behind a crash.
printf '%s\n' "$@" | xargs -P "$(nproc)" -I TARGET ./run.sh one "$work" "$seconds" TARGET || exit 1
