#!/usr/bin/env bash
# Formats, clippy and tests of the driver for seify, and flowgraphs of FutureSDR on it: scripts/seify.sh
# Ends 77, and says why, where their crates are neither here nor to be had.
set -euo pipefail
cd "$(dirname "$0")/../seify"
if ! reason=$(${CARGO:-cargo} fetch 2>&1); then
  echo "skipped: the driver for seify: its crates cannot be had: ${reason##*$'\n'}"
  exit 77
fi
# FutureSDR uses unstable features of Rust, so the stable compiler is told to take them. One it does not name: in the Rust
# of its crate futuredsp they are stable already.
export RUSTC_BOOTSTRAP=1
options=(--workspace -Zprofile-rustflags
  --config 'profile.dev.package.futuredsp.rustflags=["-Zcrate-attr=feature(float_algebraic)"]')
${CARGO:-cargo} fmt --check --all
${CARGO:-cargo} test "${options[@]}"
${CARGO:-cargo} clippy "${options[@]}" --all-targets -- -D warnings
