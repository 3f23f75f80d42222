#!/usr/bin/env bash
# Runs a command that compiles for another target: scripts/cross.sh TARGET COMMAND [ARGUMENT...]
#
#   scripts/cross.sh aarch64-unknown-linux-musl cargo build --release -p millstream-cli
#
# CROSS_RUSTFLAGS adds options of rustc.
#
# Rust's own libraries, its linker and the C library musl come by rustup. The C code of the dependencies (SQLite) is compiled by
# Zig's C compiler from PyPI, which has the headers of every target. Test programs for aarch64 run under QEMU's user-mode
# emulation (Debian package qemu-user).
set -euo pipefail
cd "$(dirname "$0")/.."
target=${1:?cross.sh: name a target, such as aarch64-unknown-linux-musl}
shift
[ $# -gt 0 ] || { echo "cross.sh: name a command behind the target, such as cargo build" >&2; exit 2; }
tools=$PWD/target/tools
. scripts/zig.sh

case $target in
  aarch64-unknown-linux-musl) zig_target=aarch64-linux-musl ;;
  x86_64-unknown-linux-musl) zig_target=x86_64-linux-musl ;;
  *)
    echo "cross.sh: unknown target $target: use aarch64-unknown-linux-musl or x86_64-unknown-linux-musl" >&2
    exit 2
    ;;
esac

if [ ! -d "$(rustc --print sysroot)/lib/rustlib/$target" ]; then
  command -v rustup >/dev/null || { echo "cross.sh: Rust has no libraries for $target: install them, as with rustup" >&2; exit 1; }
  rustup target add "$target"
fi

need_zig || exit 1

# wrapper NAME SUBCOMMAND...: makes a program that calls Zig, and sets `name` to its path. Rust's names of targets are not Zig's, so the option is dropped.
wrapper() {
  name=$tools/$target-$1
  shift
  printf '%s\n' '#!/bin/sh' \
    'for one; do shift; case $one in --target=*) ;; *) set -- "$@" "$one" ;; esac; done' \
    "exec '$zig' -m ziglang $* \"\$@\"" >"$name.new"
  chmod +x "$name.new"
  mv "$name.new" "$name"
}
under=${target//-/_}
upper=${under^^}
wrapper cc cc -target $zig_target
export "CC_$under=$name"
wrapper ar ar
export "AR_$under=$name"
export "CARGO_TARGET_${upper}_LINKER=rust-lld"
export "CARGO_TARGET_${upper}_RUSTFLAGS=-C link-self-contained=yes -C target-feature=+crt-static${CROSS_RUSTFLAGS:-}"
export CARGO_BUILD_TARGET=$target
case $target in
  aarch64-*) export "CARGO_TARGET_${upper}_RUNNER=qemu-aarch64" ;;
esac
exec "$@"
