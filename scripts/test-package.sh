#!/usr/bin/env bash
# Tries the packages of `make package` as a user would: scripts/test-package.sh [amd64|arm64...]
#
# For each architecture, debootstrap makes a Debian 12 without Rust under /var/tmp, which is removed at the end. In it: apt
# installs the package; the demo decodes; `man` shows the pages; bash, zsh and fish complete; the emulated radio runs as its
# service would run it; apt purges it, and the names of all files and the contents of /etc are what they were before. The same
# with the SoapySDR module, if there is one. The processor that this machine has not runs under QEMU's user-mode emulation
# (Debian package qemu-user-static), with a slower clock, and needs Linux 6.7 or newer. Then lintian looks at all packages.
#
# Needs root and a network. TEST_SUITE and TEST_MIRROR name another Debian.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/debian-root.sh
[ "$(id -u)" -eq 0 ] || { echo "test-package: debootstrap and chroot need root: sudo make test-package" >&2; exit 1; }
suite=${TEST_SUITE:-bookworm}
mirror=${TEST_MIRROR:-http://deb.debian.org/debian}
packages=$PWD/target/dist
path=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
failed=0 passed=0

# check WHAT COMMAND...: whether it succeeds in the new Debian.
check() {
  local what=$1 status=0
  shift
  enter $path "$@" >"$root/said" 2>&1 || status=$?
  if [ $status -eq 0 ]; then
    passed=$((passed + 1))
    echo "ok      $architecture: $what"
  else
    failed=$((failed + 1))
    echo "FAILED  $architecture: $what: exit status $status"
    tail -n 20 "$root/said" | sed 's/^/        /'
  fi
}

# The names of all files and the checksums of those in /etc, but for what apt, dpkg, ldconfig and man note about any package.
files() {
  enter $path find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /tmp -o -path /packages -o -path /var/log -o \
    -path /var/cache/apt -o -path /var/cache/man -o -path /var/lib/apt -o -name '*-old' \) -prune -o ! -path /said -print | LC_ALL=C sort
  enter $path find /etc -xdev -type f ! -name ld.so.cache -exec sha256sum {} + | LC_ALL=C sort -k 2
}

# gone BEFORE: whether the files are the same as before.
gone() {
  if files | diff "$1" - >"$root.differ"; then
    passed=$((passed + 1))
    echo "ok      $architecture: purge leaves nothing ($(grep -c '^/' "$1") files, $(grep -vc '^/' "$1") checksums in /etc)"
  else
    failed=$((failed + 1))
    echo "FAILED  $architecture: purge leaves other files or contents of /etc (< before, > after)"
    head -n 20 "$root.differ" | sed 's/^/        /'
  fi
  rm -f "$root.differ"
}

try() {
  local scale=$1 program=$packages/millstream_${version}_$architecture.deb module laboratory
  mount_root
  mkdir -p "$root/packages"
  cp -r package/tests "$root/opt/"
  mount --bind "$packages" "$root/packages"
  enter $path sh -c 'update-ca-certificates; apt-get update' >"$root/said" 2>&1 || true
  enter $path apt-get install -y --no-install-recommends man-db bash-completion zsh fish >"$root/said" 2>&1 ||
    { tail -n 20 "$root/said" >&2; echo "test-package: no man-db and shells in the new Debian" >&2; return 1; }
  files >"$root.before"
  check "there is no Rust" sh -c '! command -v cargo && ! command -v rustc'
  check "apt install ./${program##*/}" apt-get install -y "/packages/${program##*/}"
  check "millstream --version: $(enter $path millstream --version)" sh -c 'millstream --version | grep -q "commit"'
  check "millstream demo" sh -c "cd /tmp && millstream demo $scale && [ \$(stat -c %s demo.ts) -gt 5000000 ]"
  sed -n '/ledger\|stream/s/^/        /p' "$root/said"
  check "man millstream" sh -c 'man -P cat millstream | grep -q "millstream-demo(1)"'
  check "man millstream-host-doctor" sh -c 'man -P cat millstream-host-doctor | grep -q -- --apply'
  check "bash completes" bash /opt/tests/complete.bash
  check "zsh completes" env HOME=/tmp zsh -f /opt/tests/complete.zsh
  check "fish completes" env HOME=/tmp fish /opt/tests/complete.fish
  check "the service of the radio runs with its options" bash /opt/tests/radio.bash
  sed -n '1,3s/^/        /p' "$root/said"
  check "apt purge" apt-get purge -y --auto-remove millstream
  gone "$root.before"

  laboratory=millstream-lab_${version}_$architecture.deb
  check "apt install ./$laboratory" apt-get install -y "/packages/$laboratory"
  check "millstream-lab latency timer" millstream-lab latency timer --cpus 0 --class other --count 10
  check "man millstream-lab" sh -c 'man -P cat millstream-lab | grep -q "millstream-lab-bench(1)"'
  check "apt purge" apt-get purge -y --auto-remove millstream-lab
  gone "$root.before"

  module=$(find "$packages" -name "soapysdr*_$architecture.deb")
  if [ -n "$module" ]; then
    module=${module##*/}
    check "apt install ./$module" apt-get install -y --no-install-recommends "/packages/$module" soapysdr-tools
    check "SoapySDRUtil --probe" sh -c 'SoapySDRUtil --probe="driver=millstream,radio=emulated" | grep "Peripheral summary"'
    check "apt purge" apt-get purge -y --auto-remove "${module%%_*}" soapysdr-tools
    gone "$root.before"
  fi
  rm -f "$root.before"
  echo "$passed $failed" >"$root.counts"
}

own=$(dpkg --print-architecture)
architecture=${TEST_INSIDE:-}
if [ -n "$architecture" ]; then
  root=$TEST_ROOT
  if [ "$architecture" = "$own" ]; then
    make_root "$suite" "$mirror" --arch="$architecture" --include=ca-certificates
    # Slower than real time, as the machine may be busy.
    try '--time-scale 0.25'
  else
    emulate "$architecture"
    second_stage $path
    # Emulated programs are slow, and other work may have most of the machine: the radio must send all the same.
    try '--duration 2.5s --time-scale 0.008'
  fi
  exit
fi

[ $# -gt 0 ] || set -- amd64 arm64
for architecture; do
  [ -e "$packages/millstream_${version}_$architecture.deb" ] ||
    { echo "test-package: no package for $architecture in target/dist: run make package first" >&2; exit 1; }
done
clean_up_at_end
for architecture; do
  root=$(mktemp -d "/var/tmp/millstream-$architecture.XXXXXX")
  export TEST_INSIDE=$architecture TEST_ROOT=$root
  # Left of `||` nothing stops by itself.
  if [ "$architecture" = "$own" ]; then
    apart "$0"
  else
    make_root "$suite" "$mirror" --foreign --arch="$architecture" --include=ca-certificates && apart_as_user "$0"
  fi || { failed=$((failed + 1)); echo "FAILED  $architecture: see above"; }
  if [ -e "$root.counts" ]; then
    read -r more less <"$root.counts"
    passed=$((passed + more)) failed=$((failed + less))
  fi
  clean_up
done
if lintian --allow-root --fail-on error "$packages"/*.deb; then
  passed=$((passed + 1))
  echo "ok      lintian finds no error in $(find "$packages" -name '*.deb' | wc -l) packages"
else
  failed=$((failed + 1))
  echo "FAILED  lintian: see above"
fi
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
