#!/usr/bin/env bash
# Runs every test of our own and ends with one line of counts.
set -uo pipefail
cd "$(dirname "$0")/.."
log=$(mktemp)
trap 'rm -f "$log"' EXIT
status=0

cargo test --workspace --no-fail-fast "$@" 2>&1 | tee "$log" || status=1
echo "== loom models (lock-free types under every interleaving)"
RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=target/loom \
  cargo test -p millstream-ring --release --test loom 2>&1 | tee -a "$log" || status=1

awk '/^test result:/ { passed += $4; failed += $6; skipped += $8 }
     END { printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped }' "$log"
exit $status
