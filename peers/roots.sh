#!/usr/bin/env bash
# Runs a command with the UHD of another Debian, which lies in a root file system of its own: peers/roots.sh SUITE [COMMAND...]
#
#   peers/roots.sh trixie                                prints its version of UHD, such as 4.8
#   peers/roots.sh trixie peers/uhd_rx_samples.py        runs a peer there: its UHD, its Python, our program
#
# The packages come by apt, are unpacked and not installed, and stay in $XDG_CACHE_HOME/millstream/roots (or ~/.cache/...).
# The command sees the same /dev, /proc, /sys and /tmp, the project and the network. Root is not needed where an ordinary
# user may make namespaces. Ends 77, and says why, where the packages cannot be had or cannot run.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/unpacked.sh
suite=${1:?roots.sh: name a suite of Debian, such as trixie}
shift
folder=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/millstream/roots/$suite
root=$folder/root
MILLSTREAM=$(realpath -m "${MILLSTREAM:-$(scripts/target.sh)/release/millstream}")
MILLSTREAM_SOAPY=$(realpath -m "${MILLSTREAM_SOAPY:-$(scripts/target.sh)/release}")
export MILLSTREAM MILLSTREAM_SOAPY
skip() { echo "skipped: the UHD of Debian $suite: $*"; exit 77; }

# What each Debian has; UHD's programs, its Python, its simulator of a device; SoapySDR; what peers call.
packages=(base-files bash coreutils dash findutils grep libc-bin sed util-linux mount
  uhd-host python3-uhd python3-numpy python3-gevent python3-msgpack python3-netaddr python3-pyroute2 python3-pyudev python3-six
  python3-systemd soapysdr-tools python3-soapysdr uhd-soapysdr iproute2)
# GNU Radio is four times as large as the rest.
[ "$suite" != trixie ] || packages+=(gnuradio)
command -v apt-get >/dev/null || skip "no apt-get, which brings its packages"
unpacked "$folder" "$suite" "$(dpkg --print-architecture)" "${packages[@]}" || skip "$(head -n 1 "$folder/log")"

# What configuring the packages would have done, as far as UHD's programs need it: names of alternatives, users.
for library in "$root"/usr/lib/*/{blas,lapack}/lib*.so.3; do
  [ -e "$library" ] && ln -sfr "$library" "${library%/*/*}/"
done
# UHD would load SoapyUHD in every program, and find each radio twice: peers name its folder in UHD_MODULE_PATH.
for module in "$root"/usr/lib/*/uhd/modules/libsoapySupport.so; do
  [ ! -e "$module" ] || { mkdir -p "$root/usr/lib/soapyuhd" && mv "$module" "$root/usr/lib/soapyuhd/"; }
done
echo 'root:x:0:0:root:/root:/bin/bash' >"$root/etc/passwd"

as_root=()
[ "$(id -u)" -eq 0 ] || as_root=(--map-root-user)
# What runs a command there, in mounts of its own.
# shellcheck disable=SC2016 # the inner shell expands it
enter=(unshare "${as_root[@]}" --mount --propagation private bash -c '
    root=$1 project=$2
    shift 2
    for folder in /dev /proc /sys /tmp "$project" "${MILLSTREAM%/*}" "$MILLSTREAM_SOAPY"; do
      [ -d "$folder" ] || continue
      mkdir -p "$root$folder"
      mount --rbind "$folder" "$root$folder" || exit
    done
    settings=()
    while read -r name; do settings+=("$name=${!name}"); done < <(compgen -e MILLSTREAM)
    # Its own folder of programs only: what is installed here beside Debian is not there.
    exec chroot "$root" env -i HOME=/root LANG=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin "${settings[@]}" \
      sh -c '\''cd "$0" && exec "$@"'\'' "$project" "$@"' bash "$root" "$PWD")
said=$("${enter[@]}" true 2>&1) || skip "no namespaces and mounts here: ${said##*$'\n'}"
if [ -x "$MILLSTREAM" ]; then
  said=$("${enter[@]}" "$MILLSTREAM" --version 2>&1) || skip "$MILLSTREAM does not run there: ${said##*$'\n'}"
fi
if [ $# -eq 0 ]; then
  version=$("${enter[@]}" uhd_config_info --version) || skip "uhd_config_info does not run there"
  echo "$version" | sed -E 's/^UHD ([0-9]+\.[0-9]+).*/\1/'
  exit
fi
exec "${enter[@]}" "$@"
