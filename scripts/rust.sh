#!/bin/sh
# Checks that Rust is there and as new as Cargo.toml asks for: cargo itself says so only after it has loaded all crates.
set -eu
cd "$(dirname "$0")/.."
oldest=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' Cargo.toml)
get="install $oldest or newer from https://rustup.rs, or with Debian's package rustup: rustup toolchain install stable"
command -v "${CARGO:-cargo}" >/dev/null || { echo "Rust is missing: $get" >&2; exit 1; }
has=$(${RUSTC:-rustc} --version 2>/dev/null | cut -d ' ' -f 2)
# Without a version of its own, cargo tells.
[ -n "$has" ] || exit 0
[ "$(printf '%s\n' "$oldest" "${has%%-*}" | sort -V | head -n 1)" = "$oldest" ] ||
  { echo "Rust $has is too old: $get" >&2; exit 1; }
