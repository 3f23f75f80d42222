#!/usr/bin/env bash
# Compiles everything with the oldest Rust that Cargo.toml promises (rust-version). Ends 77, and says why, where that Rust is
# not installed.
set -euo pipefail
cd "$(dirname "$0")/.."
version=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
[ -n "$version" ] || { echo "msrv: Cargo.toml has no rust-version" >&2; exit 1; }
# Asked for by its name alone, rustup may install it.
if ! rustup toolchain list 2>/dev/null | grep -q "^$version"; then
  echo "skipped: no Rust $version here: rustup toolchain install $version --profile minimal"
  exit 77
fi
CARGO_TARGET_DIR=target/msrv cargo "+$version" check --workspace --all-targets --locked
