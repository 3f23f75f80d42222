#!/usr/bin/env bash
# Runs a command that compiles for another target: scripts/cross.sh TARGET COMMAND [ARGUMENT...]
#
#   scripts/cross.sh aarch64-unknown-linux-musl cargo build --release -p millstream-cli
#
# CROSS_RUSTFLAGS adds options of rustc. What is compiled holds nothing of this machine: no debug information, and paths that
# are the same everywhere. A target with -gnu is for shared libraries, and its linker is that of this machine or of maturin.
#
# Rust's own libraries, its linker and the C library musl come by rustup. C code of a dependency would be compiled by
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
  *-unknown-linux-gnu) zig_target= ;;
  *)
    echo "cross.sh: unknown target $target: use (aarch64|x86_64)-unknown-linux-(musl|gnu)" >&2
    exit 2
    ;;
esac

if [ ! -d "$(rustc --print sysroot)/lib/rustlib/$target" ]; then
  command -v rustup >/dev/null || { echo "cross.sh: Rust has no libraries for $target: install them, as with rustup" >&2; exit 1; }
  rustup target add "$target"
fi

under=${target//-/_}
upper=${under^^}
flags=
# wrapper NAME SUBCOMMAND...: makes a program that calls Zig, and sets `name` to its path. Rust's names of targets are not
# Zig's, so the option is dropped.
wrapper() {
  name=$tools/$target-$1
  shift
  printf '%s\n' '#!/bin/sh' \
    'for one; do shift; case $one in --target=*) ;; *) set -- "$@" "$one" ;; esac; done' \
    "exec '$zig' -m ziglang $* \"\$@\"" >"$name.new"
  chmod +x "$name.new"
  mv "$name.new" "$name"
}
if [ -n "$zig_target" ]; then
  need_zig || exit 1
  wrapper cc cc -target $zig_target
  export "CC_$under=$name"
  wrapper ar ar
  export "AR_$under=$name"
  export "CARGO_TARGET_${upper}_LINKER=rust-lld"
  flags="-C link-self-contained=yes -C target-feature=+crt-static"
fi
case $target in
  aarch64-*) export "CARGO_TARGET_${upper}_RUNNER=qemu-aarch64" ;;
esac
export CARGO_BUILD_TARGET=$target

# The last of the maps that fit a path counts.
maps=("${CARGO_HOME:-$HOME/.cargo}=/cargo" "$(rustc --print sysroot)=/rust" "$PWD=/millstream")
remap=$(printf ' --remap-path-prefix=%s' "${maps[@]}")
export "CARGO_TARGET_${upper}_RUSTFLAGS=$flags$remap ${CROSS_RUSTFLAGS:-}"
CFLAGS="-g0$(printf ' -ffile-prefix-map=%s' "${maps[@]}")"
export "CFLAGS_$under=$CFLAGS" "CXXFLAGS_$under=$CFLAGS"
export CARGO_PROFILE_RELEASE_DEBUG=false CARGO_PROFILE_RELEASE_STRIP=symbols CARGO_PROFILE_RELEASE_SPLIT_DEBUGINFO=off
export CARGO_INCREMENTAL=0
exec "$@"
