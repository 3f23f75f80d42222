#!/usr/bin/env bash
# Compiles both commands as static programs that run at any address (static-pie): scripts/static.sh TARGET
#
# They are then TARGET/release/millstream and millstream-lab in cargo's target folder. Rust links a static program for ARM64 for one fixed address, because its
# description of the target has no other way. So a wrapper of the linker takes musl's other start code, which relocates
# the program.
set -euo pipefail
cd "$(dirname "$0")/.."
target=${1:?static.sh: name a target, such as aarch64-unknown-linux-musl}
options=()
if [ "$target" = aarch64-unknown-linux-musl ]; then
  linker=$PWD/target/tools/static-pie/rust-lld
  mkdir -p "${linker%/*}"
  sysroot=$(rustc --print sysroot)
  real=$(find "$sysroot/lib/rustlib" -path '*/bin/rust-lld' -print -quit)
  [ -n "$real" ] ||
    { echo "static: the linker rust-lld is not below $sysroot/lib/rustlib: Rust from https://rustup.rs brings it" >&2; exit 1; }
  cat >"$linker.new" <<END
#!/bin/bash
given=()
for one; do
  case \$one in
    */crt1.o) given+=("\${one%crt1.o}rcrt1.o") ;;
    */crtbegin.o) given+=("\${one%crtbegin.o}crtbeginS.o") ;;
    */crtend.o) given+=("\${one%crtend.o}crtendS.o") ;;
    -no-pie) ;;
    *) given+=("\$one") ;;
  esac
done
exec '$real' "\${given[@]}" -pie --no-dynamic-linker -z text
END
  chmod +x "$linker.new"
  mv "$linker.new" "$linker"
  options=(-C "linker=$linker")
fi
for program in millstream-cli:millstream millstream-lab-cli:millstream-lab; do
  scripts/cross.sh "$target" cargo rustc --release --locked -p "${program%:*}" --bin "${program#*:}" -- "${options[@]}"
done
