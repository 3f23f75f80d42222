#!/usr/bin/env bash
# Compiles with the oldest Rust that is promised: the program and the library with rust-version of Cargo.toml (that of Debian
# 13), and the whole workspace, tests too, with the newest that a crate of it asks for. A Rust may be rustup's or Debian's own.
# Ends 77, and says why, where one of them is not installed.
set -euo pipefail
cd "$(dirname "$0")/.."
versions=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' Cargo.toml ./*/Cargo.toml crates/*/Cargo.toml | sort -uV)
[ -n "$versions" ] || { echo "msrv: Cargo.toml has no rust-version" >&2; exit 1; }
status=0

# compile VERSION ARGUMENT...: checks that these crates compile with it.
compile() {
  local version=$1 call=
  shift
  # Asked for by its name alone, rustup may install it.
  if rustup toolchain list 2>/dev/null | grep -q "^$version"; then
    call="cargo +$version"
  elif /usr/bin/rustc --version 2>/dev/null | grep -q "^rustc $version\\."; then
    call="env RUSTC=/usr/bin/rustc /usr/bin/cargo"
  else
    echo "skipped: no Rust $version here: rustup toolchain install $version --profile minimal"
    status=77
    return
  fi
  CARGO_TARGET_DIR=target/msrv $call check "$@" --locked
}
compile "$(head -n 1 <<<"$versions")" -p millstream-cli -p millstream
compile "$(tail -n 1 <<<"$versions")" --workspace --all-targets
exit $status
