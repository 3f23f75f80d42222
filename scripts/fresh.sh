#!/usr/bin/env bash
# Runs the README's two commands in a Debian with nothing but Rust, make and git: scripts/fresh.sh [COMMAND...]
#
# debootstrap makes the root file system (FRESH_SUITE, bookworm, from FRESH_MIRROR) in FRESH_ROOT, a new folder under /var/tmp
# unless it is given; it is removed at the end. The clone in it is of the last commit. Needs root, and a network for the
# packages and crates. Prints how long each command took.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/debian-root.sh
[ "$(id -u)" -eq 0 ] || { echo "fresh: debootstrap and chroot need root: sudo make fresh" >&2; exit 1; }
suite=${FRESH_SUITE:-bookworm}
mirror=${FRESH_MIRROR:-http://deb.debian.org/debian}
root=${FRESH_ROOT:-$(mktemp -d /var/tmp/millstream-fresh.XXXXXX)}
[ $# -gt 0 ] || set -- 'make demo' 'make test'

if [ -z "${FRESH_INSIDE:-}" ]; then
  export FRESH_INSIDE=1 FRESH_ROOT=$root
  clean_up_at_end
  apart "$0" "$@"
  exit
fi

make_root "$suite" "$mirror" --include=ca-certificates,git,make
mount_root
mkdir -p "$root/opt/rust"
mount --bind "$(rustc --print sysroot)" "$root/opt/rust"
mount -o remount,bind,ro "$root/opt/rust"
git clone --quiet . "$root/root/millstream"

path=/opt/rust/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
enter $path update-ca-certificates >/dev/null 2>&1 || true
for command; do
  echo "fresh: $command"
  started=$SECONDS
  enter $path sh -ec "cd /root/millstream && $command" || { echo "fresh: $command: exit status $?" >&2; exit 1; }
  times+="fresh: $command: exit status 0 after $((SECONDS - started)) s
"
done
printf '%s' "$times"
