#!/usr/bin/env bash
# Runs a program with a wheel for ARM64 under the user-mode emulation of QEMU: scripts/python-arm64.sh WHEEL PROGRAM
#
# Debian's Python of ARM64 comes by apt into target/python/arm64: nothing is installed, and no root is needed. Ends 77, and
# says why, where that or QEMU is missing.
set -euo pipefail
cd "$(dirname "$0")/.."
wheel=${1:?python-arm64.sh: name a wheel}
program=${2:?python-arm64.sh: name a program of Python}
. scripts/environment.sh
. scripts/unpacked.sh
skip() { echo "skipped: ${wheel##*/} was not run: $*"; exit 77; }
arm64=$PWD/$folder/arm64
reason() { grep . "$arm64/log" | tail -n 1; }
command -v qemu-aarch64 >/dev/null || skip "no qemu-aarch64 (Debian package qemu-user)"
command -v apt-get >/dev/null || skip "no apt-get, which brings Debian's Python of ARM64"

unpacked "$arm64" bookworm arm64 python3-minimal libpython3-stdlib libstdc++6 ||
  skip "Debian's Python of ARM64 cannot be had: $(head -n 1 "$arm64/log")"

# The wheel, and numpy, which it asks for: pip of this machine unpacks both.
version=$(basename "$(readlink "$arm64/root/usr/bin/python3")")
rm -rf "$arm64/site"
environment tools "$maturin" || skip "pip cannot be had: $(tail -n 1 "$folder/log")"
"$folder/tools/bin/python" -m pip install --quiet --disable-pip-version-check --target "$arm64/site" --only-binary=:all: \
  --implementation cp --python-version "${version#python}" --abi abi3 --abi "cp${version//[!0-9]/}" \
  --platform manylinux_2_28_aarch64 --platform manylinux_2_17_aarch64 --platform manylinux2014_aarch64 "$wheel" >"$arm64/log" 2>&1 ||
  skip "the wheel or numpy for ARM64 cannot be had: $(reason)"
PYTHONPATH=$arm64/site PYTHONDONTWRITEBYTECODE=1 qemu-aarch64 -L "$arm64/root" "$arm64/root/usr/bin/$version" "$program"
