#!/bin/sh
# Checks that Rust is there and new enough: scripts/rust.sh [program]. For the program `millstream` alone that is the Rust of
# Debian 13, otherwise what the crate that asks for most needs: cargo itself says so only after it has loaded all crates.
# As root it installs Debian's own Rust where none is there and that one is new enough.
set -eu
cd "$(dirname "$0")/.."
manifests=Cargo.toml
[ "${1:-}" = program ] || manifests="Cargo.toml */Cargo.toml crates/*/Cargo.toml"
# shellcheck disable=SC2086 # a list of files
oldest=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' $manifests | sort -V | tail -n 1)
enough() { [ "$(printf '%s\n' "$oldest" "$1" | sort -V | head -n 1)" = "$oldest" ]; }
there() { command -v "${CARGO:-cargo}" >/dev/null; }

get="install $oldest or newer from https://rustup.rs, or with Debian's package rustup: rustup toolchain install stable"
if ! there && command -v apt-cache >/dev/null; then
  root=$([ "$(id -u)" -ne 0 ] || echo yes)
  [ -z "$root" ] || apt-get update -qq || true
  if enough "$(apt-cache policy cargo | sed -n 's/^ *Candidate: \([0-9.]*\).*/\1/p')"; then
    get="sudo apt-get install cargo"
    [ -z "$root" ] || DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends cargo >/dev/null || true
  fi
fi
there || { echo "Rust is missing: $get" >&2; exit 1; }
has=$(${RUSTC:-rustc} --version 2>/dev/null | cut -d ' ' -f 2)
# Without a version of its own, cargo tells.
[ -n "$has" ] || exit 0
enough "${has%%-*}" || { echo "Rust $has is too old: $get" >&2; exit 1; }
