# A Debian of its own in a folder, made by debootstrap. A script sources this file, and runs in mount and process namespaces of
# its own: what these functions mount or leave running is gone with the script.

# apart COMMAND...: runs a command in such namespaces, and then removes the folder $root.
apart() {
  local status=0
  unshare --mount --pid --fork --kill-child --propagation private "$@" || status=$?
  rm -rf --one-file-system "$root"
  return $status
}

# apart_as_user COMMAND...: the same in a user namespace, too, whose users are those of this machine. It has a table of its own of
# programs that are run by an emulator (since Linux 6.7): see emulate.
apart_as_user() {
  local go child status=0
  go=$(mktemp -u)
  mkfifo "$go"
  # shellcheck disable=SC2016 # the inner shell expands it
  unshare --user bash -c 'read -r _ <"$0"; exec unshare --mount --pid --fork --kill-child --propagation private "$@"' "$go" "$@" &
  child=$!
  until [ "$(readlink "/proc/$child/ns/user")" != "$(readlink /proc/self/ns/user)" ]; do sleep 0.05; done
  echo 0 0 65536 >"/proc/$child/uid_map"
  echo 0 0 65536 >"/proc/$child/gid_map"
  echo >"$go"
  wait "$child" || status=$?
  rm -f "$go"
  rm -rf --one-file-system "$root"
  return $status
}

# emulate: programs for ARM64 run under QEMU, in this user namespace.
emulate() {
  local table
  table=$(mktemp -d)
  mount -t binfmt_misc binfmt_misc "$table" 2>/dev/null && [ ! -e "$table/qemu-aarch64" ] ||
    { echo "${0##*/}: no table of emulators in a user namespace: Linux 6.7 or newer is needed" >&2; return 1; }
  # Little-endian ELF for machine 183, with any system of its own; F: the emulator is opened now, outside of the new root.
  printf '%s' ':qemu-aarch64:M::\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00:' \
    '\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff:' \
    "$(command -v qemu-aarch64-static):OCF" >"$table/register"
}

# make_root SUITE MIRROR ARGUMENTS-OF-DEBOOTSTRAP...: fills the folder $root.
make_root() {
  local suite=$1 mirror=$2
  shift 2
  echo "${0##*/}: debootstrap $suite into $root"
  debootstrap --variant=minbase "$@" "$suite" "$root" "$mirror" >"$root.log" 2>&1 ||
    { tail -20 "$root.log" >&2; rm -f "$root.log"; echo "${0##*/}: debootstrap failed" >&2; return 1; }
  rm -f "$root.log"
  cp /etc/resolv.conf "$root/etc/resolv.conf"
  # How this machine reaches its packages: proxies, certificates.
  mkdir -p "$root/etc/apt/apt.conf.d" "$root/usr/local/share/ca-certificates"
  cp -r /etc/apt/apt.conf.d/. "$root/etc/apt/apt.conf.d/"
  rm -f "$root"/etc/apt/apt.conf.d/20packagekit "$root"/etc/apt/apt.conf.d/docker-* "$root"/etc/apt/apt.conf.d/*appstream*
  cp -r /usr/local/share/ca-certificates/. "$root/usr/local/share/ca-certificates/" 2>/dev/null || true
  # As on a real machine: others may pass through the root folder, and it is where something is mounted.
  chmod 755 "$root"
}

# mount_root: the file systems that programs expect.
mount_root() {
  mount --bind "$root" "$root"
  mount -t proc proc "$root/proc"
  mount --rbind /sys "$root/sys"
  mount --rbind /dev "$root/dev"
  mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
}

# enter PATH COMMAND...: runs a command there, with an environment of its own.
enter() {
  local path=$1
  shift
  chroot "$root" /usr/bin/env -i HOME=/root LANG=C.UTF-8 TERM="${TERM:-dumb}" DEBIAN_FRONTEND=noninteractive PATH="$path" "$@"
}

# second_stage PATH: ends what `make_root --foreign` began, in a user namespace. There debootstrap cannot make a device to see
# whether it could, and needs none: a program that makes a file in its place satisfies it.
second_stage() {
  mkdir -p "$root/debootstrap/bin"
  printf '#!/bin/sh\nexec touch "$1"\n' >"$root/debootstrap/bin/mknod"
  chmod +x "$root/debootstrap/bin/mknod"
  enter "/debootstrap/bin:$1" /debootstrap/debootstrap --second-stage >"$root.log" 2>&1 ||
    { tail -20 "$root.log" >&2; rm -f "$root.log"; echo "${0##*/}: debootstrap failed" >&2; return 1; }
  rm -f "$root.log"
}
