# A Debian of its own in a folder, made by debootstrap. A script sources this file, calls clean_up_at_end, and runs in mount and
# process namespaces of its own: what these functions mount or leave running is gone with the script.

# clean_up: ends what apart or apart_as_user started, and removes the folder $root with the files that lie beside it.
clean_up() {
  if [ -n "${child:-}" ]; then
    kill -KILL "$child" 2>/dev/null || true
    wait "$child" 2>/dev/null || true
    child=
  fi
  [ -n "${root:-}" ] || return 0
  # What ran in the folder may write for a moment yet.
  rm -rf --one-file-system "$root" 2>/dev/null || { sleep 1; rm -rf --one-file-system "$root"; }
  rm -rf "$root.go" "$root.emulators" "$root.log" "$root.before" "$root.differ" "$root.counts"
}

# clean_up_at_end: calls clean_up however the script ends.
clean_up_at_end() {
  trap clean_up EXIT
  trap 'exit 129' HUP
  trap 'exit 130' INT
  trap 'exit 143' TERM
}

# began COMMAND...: begins a command as $child. It is a job of its own, so that it can be interrupted as in a terminal.
began() {
  set -m
  "$@" </dev/null &
  child=$!
  set +m
}

# ended: the exit status of $child. A signal ends the wait and not the child: clean_up does.
ended() {
  local status=0
  wait "$child" || status=$?
  child=
  return $status
}

# apart COMMAND...: runs a command in such namespaces.
apart() {
  began unshare --mount --pid --fork --kill-child --propagation private "$@"
  ended
}

# apart_as_user COMMAND...: the same in a user namespace, too, whose users are those of this machine. It has a table of its own of
# programs that are run by an emulator (since Linux 6.7): see emulate.
apart_as_user() {
  local go=$root.go hold own status=0
  own=$(readlink /proc/self/ns/user)
  mkfifo "$go" || return
  # For reading, too: the shell below may be gone, and this one must not wait for it.
  exec {hold}<>"$go"
  # shellcheck disable=SC2016 # the inner shell expands it
  began unshare --user bash -c \
    'read -r _ <"$0"; exec unshare --mount --pid --fork --kill-child --propagation private "$@"' "$go" "$@"
  while [ "$(readlink "/proc/$child/ns/user")" = "$own" ]; do sleep 0.05; done
  if { echo 0 0 65536 >"/proc/$child/uid_map" && echo 0 0 65536 >"/proc/$child/gid_map"; } 2>/dev/null; then
    echo >&"$hold"
    ended || status=$?
  else
    echo "${0##*/}: this machine gives root no user namespace with users: see sysctl user.max_user_namespaces" >&2
    kill -KILL "$child" 2>/dev/null || true
    ended 2>/dev/null || status=1
  fi
  exec {hold}>&-
  return $status
}

# emulate ARCHITECTURE: Debian's programs for arm64 or amd64 run under QEMU, in this user namespace.
emulate() {
  local table=$root.emulators name machine emulator
  case $1 in
    arm64) name=qemu-aarch64 machine='\xb7' ;;
    amd64) name=qemu-x86_64 machine='\x3e' ;;
    *) echo "${0##*/}: no emulator is known for $1: use amd64 or arm64" >&2; return 1 ;;
  esac
  # Since Debian 13 the package qemu-user has static programs, and no name of their own is left in newer ones.
  emulator=$(command -v "$name-static" || command -v "$name") && ! ldd "$emulator" >/dev/null 2>&1 ||
    { echo "${0##*/}: $name-static is missing: install the Debian package qemu-user-static" >&2; return 1; }
  mkdir -p "$table" || return
  mount -t binfmt_misc binfmt_misc "$table" 2>/dev/null && [ ! -e "$table/$name" ] ||
    { echo "${0##*/}: no table of emulators in a user namespace: Linux 6.7 or newer is needed" >&2; return 1; }
  # Little-endian ELF for that machine, with any system of its own; F: the emulator is opened now, outside of the new root.
  printf '%s' ":$name:M::"'\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00'"$machine"'\x00:' \
    '\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff:' "$emulator:OCF" >"$table/register"
}

# make_root SUITE MIRROR ARGUMENTS-OF-DEBOOTSTRAP...: fills the folder $root.
make_root() {
  local suite=$1 mirror=$2
  shift 2
  echo "${0##*/}: debootstrap $suite into $root"
  debootstrap --variant=minbase "$@" "$suite" "$root" "$mirror" >"$root.log" 2>&1 ||
    { tail -20 "$root.log" >&2; rm -f "$root.log"; echo "${0##*/}: debootstrap failed" >&2; return 1; }
  rm -f "$root.log"
  cp /etc/resolv.conf "$root/etc/resolv.conf" || return
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
