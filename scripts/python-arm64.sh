#!/usr/bin/env bash
# Runs a program with a wheel for ARM64 under the user-mode emulation of QEMU: scripts/python-arm64.sh WHEEL PROGRAM
#
# Debian's Python of ARM64 comes by apt into target/python/arm64, with lists of its own: nothing is installed, and no root is
# needed. Ends 77, and says why, where that or QEMU is missing.
set -euo pipefail
cd "$(dirname "$0")/.."
wheel=${1:?python-arm64.sh: name a wheel}
program=${2:?python-arm64.sh: name a program of Python}
. scripts/environment.sh
skip() { echo "skipped: ${wheel##*/} was not run: $*"; exit 77; }
arm64=$PWD/$folder/arm64
reason() { grep . "$arm64/log" | tail -n 1; }
command -v qemu-aarch64 >/dev/null || skip "no qemu-aarch64 (Debian package qemu-user)"
command -v apt-get >/dev/null || skip "no apt-get, which brings Debian's Python of ARM64"

if [ ! -x "$arm64/root/usr/bin/python3" ]; then
  rm -rf "$arm64"
  mkdir -p "$arm64"/state/lists/partial "$arm64"/cache/archives/partial "$arm64/new" "$arm64/parts"
  : >"$arm64/state/status"
  echo "deb ${DEBIAN_MIRROR:-http://deb.debian.org/debian} bookworm main" >"$arm64/sources.list"
  cat >"$arm64/apt.conf" <<END
Dir::State "$arm64/state";
Dir::State::status "$arm64/state/status";
Dir::Cache "$arm64/cache";
Dir::Etc::sourcelist "$arm64/sources.list";
Dir::Etc::sourceparts "$arm64/parts";
APT::Architecture "arm64";
APT::Architectures { "arm64"; };
APT::Install-Recommends "false";
APT::Sandbox::User "root";
END
  export APT_CONFIG=$arm64/apt.conf
  { apt-get update -qq && apt-get install -y -qq --download-only python3-minimal libpython3-stdlib libstdc++6; } >"$arm64/log" 2>&1 ||
    skip "Debian's Python of ARM64 cannot be had: $(reason)"
  for package in "$arm64"/cache/archives/*.deb; do dpkg-deb -x "$package" "$arm64/new"; done
  rm -rf "$arm64/cache" "$arm64/state/lists"
  mv "$arm64/new" "$arm64/root"
fi

# The wheel, and numpy, which it asks for: pip of this machine unpacks both.
version=$(basename "$(readlink "$arm64/root/usr/bin/python3")")
rm -rf "$arm64/site"
environment tools "$maturin" || skip "pip cannot be had: $(tail -n 1 "$folder/log")"
"$folder/tools/bin/python" -m pip install --quiet --disable-pip-version-check --target "$arm64/site" --only-binary=:all: \
  --implementation cp --python-version "${version#python}" --abi abi3 --abi "cp${version//[!0-9]/}" \
  --platform manylinux_2_28_aarch64 --platform manylinux_2_17_aarch64 --platform manylinux2014_aarch64 "$wheel" >"$arm64/log" 2>&1 ||
  skip "the wheel or numpy for ARM64 cannot be had: $(reason)"
PYTHONPATH=$arm64/site PYTHONDONTWRITEBYTECODE=1 qemu-aarch64 -L "$arm64/root" "$arm64/root/usr/bin/$version" "$program"
