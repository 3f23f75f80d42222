#!/usr/bin/env bash
# Runs the README's two commands in a Debian with nothing but Rust, make and git: scripts/fresh.sh [COMMAND...]
#
# debootstrap makes the root file system (FRESH_SUITE, bookworm, from FRESH_MIRROR) in FRESH_ROOT, a new folder under /var/tmp
# unless it is given; it is removed at the end. The clone in it is of the last commit. Needs root, and a network for the
# packages and crates. Prints how long each command took.
set -euo pipefail
cd "$(dirname "$0")/.."
[ "$(id -u)" -eq 0 ] || { echo "fresh: debootstrap and chroot need root: sudo make fresh" >&2; exit 1; }
suite=${FRESH_SUITE:-bookworm}
mirror=${FRESH_MIRROR:-http://deb.debian.org/debian}
root=${FRESH_ROOT:-$(mktemp -d /var/tmp/millstream-fresh.XXXXXX)}
[ $# -gt 0 ] || set -- 'make demo' 'make test'

# In mount and process namespaces of its own: what is mounted or left running is gone with the script.
if [ -z "${FRESH_INSIDE:-}" ]; then
  status=0
  FRESH_INSIDE=1 FRESH_ROOT=$root unshare --mount --pid --fork --kill-child --propagation private "$0" "$@" || status=$?
  rm -rf --one-file-system "$root"
  exit $status
fi

echo "fresh: debootstrap $suite into $root"
debootstrap --variant=minbase --include=ca-certificates,git,make "$suite" "$root" "$mirror" >"$root.log" 2>&1 ||
  { tail -20 "$root.log" >&2; rm -f "$root.log"; echo "fresh: debootstrap failed" >&2; exit 1; }
rm -f "$root.log"
cp /etc/resolv.conf "$root/etc/resolv.conf"
# How this machine reaches its packages: proxies, certificates.
cp -r /etc/apt/apt.conf.d/. "$root/etc/apt/apt.conf.d/"
rm -f "$root"/etc/apt/apt.conf.d/20packagekit "$root"/etc/apt/apt.conf.d/docker-*
mkdir -p "$root/usr/local/share/ca-certificates"
cp -r /usr/local/share/ca-certificates/. "$root/usr/local/share/ca-certificates/" 2>/dev/null || true

# As on a real machine: others may pass through the root folder, and it is where something is mounted.
chmod 755 "$root"
mount --bind "$root" "$root"
mkdir -p "$root/opt/rust"
mount --bind "$(rustc --print sysroot)" "$root/opt/rust"
mount -o remount,bind,ro "$root/opt/rust"
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
mount --rbind /dev "$root/dev"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
git clone --quiet . "$root/root/millstream"

enter() {
  chroot "$root" /usr/bin/env -i HOME=/root TERM="${TERM:-dumb}" \
    PATH=/opt/rust/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"
}
enter update-ca-certificates >/dev/null 2>&1 || true
for command; do
  echo "fresh: $command"
  started=$SECONDS
  enter sh -ec "cd /root/millstream && $command" || { echo "fresh: $command: exit status $?" >&2; exit 1; }
  times+="fresh: $command: exit status 0 after $((SECONDS - started)) s
"
done
printf '%s' "$times"
