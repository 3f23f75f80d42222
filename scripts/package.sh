#!/usr/bin/env bash
# Makes what a release consists of: scripts/package.sh [PART...]
#
#   x86_64, aarch64   the static programs with manual pages and completions: an archive, and a Debian package of each
#   soapysdr          the SoapySDR module as a Debian package, for this machine and its version of SoapySDR
#   wheels            the wheels of the Python package, for x86-64 and ARM64
#
# All of them unless some are named. Beside them the source archive, bills of materials (CycloneDX) and checksums. All of it
# lies in target/dist (target/package is cargo's). Folders and times of the build are kept out of it, so that two builds of a
# commit can give the same bytes: docs/guides/install.md says for which files this was tried.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- x86_64 aarch64 soapysdr wheels
out=$PWD/target/dist
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
commit=$(git rev-parse --short=12 HEAD)
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH MILLSTREAM_COMMIT=$commit
[ -z "$(git status --porcelain --untracked-files=no)" ] ||
  echo "package: files differ from commit $commit: this is no release" >&2
rm -rf "$out"
mkdir -p "$out"
work=$(mktemp -d)
bom=millstream-bom
trap 'rm -rf "$work"; find . -path ./target -prune -o -name "$bom.json" -exec rm -f {} +' EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM
umask 022

archive() { # archive FILE FOLDER NAME: a tar file of FOLDER/NAME
  tar --sort=name --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX --mtime="@$SOURCE_DATE_EPOCH" -C "$2" -c "$3" |
    gzip -n9 >"$1"
}

debian() { # debian PACKAGE ARCHITECTURE FOLDER BOM: the package of what lies in FOLDER; standard input: more of its description
  local doc=$3/usr/share/doc/$1
  mkdir -p "$3/DEBIAN" "$doc" "$3/usr/share/lintian/overrides"
  install -m 644 package/copyright "$doc/copyright"
  install -m 644 "$out/$4-$version.cdx.json" "$doc/$4.cdx.json"
  [ ! -e "package/$1.lintian-overrides" ] || install -m 644 "package/$1.lintian-overrides" "$3/usr/share/lintian/overrides/$1"
  gzip -n9 <CHANGELOG.md >"$doc/NEWS.gz"
  printf '%s (%s) unstable; urgency=medium\n\n  * See NEWS.gz.\n\n -- The Millstream authors <maintainers@millstream.example>  %s\n' \
    "$1" "$version" "$(date -u -R -d "@$SOURCE_DATE_EPOCH")" | gzip -n9 >"$doc/changelog.gz"
  find "$3" -type d -empty ! -name DEBIAN -delete
  # Of the contents alone: what a file system needs for folders differs.
  local size
  size=$(find "$3" -type f ! -path "$3/DEBIAN/*" -printf '%s\n' | awk '{ sum += int(($1 + 1023) / 1024) } END { print sum }')
  { printf '%s\n' "Package: $1" "Version: $version" "Architecture: $2" "Section: hamradio" "Priority: optional" \
    "Maintainer: The Millstream authors <maintainers@millstream.example>" "Installed-Size: $size" \
    "Homepage: https://github.com/millstream/millstream"; cat; } >"$3/DEBIAN/control"
  (cd "$3" && find . -type f ! -path './DEBIAN/*' -printf '%P\0' | LC_ALL=C sort -z | xargs -0 md5sum >DEBIAN/md5sums)
  # The clone may be one that only its owner can read.
  chmod -R u=rwX,go=rX "$3"
  find "$3" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
  dpkg-deb --root-owner-group -Zxz --build "$3" "$out/$1_${version}_$2.deb" >/dev/null
}

command_files() { # command_files NAME TREE FOLDER: what every command of the archive TREE has in a package, into FOLDER
  local pages=$work/pages/$1
  install -D -m 755 "$2/bin/$1" "$3/usr/bin/$1"
  install -D -m 644 -t "$3/usr/share/man/man1" "$pages"/man/*.1
  gzip -n9 "$3"/usr/share/man/man1/*
  install -D -m 644 "$pages/completions/$1.bash" "$3/usr/share/bash-completion/completions/$1"
  install -D -m 644 -t "$3/usr/share/zsh/vendor-completions" "$pages/completions/_$1"
  install -D -m 644 -t "$3/usr/share/fish/vendor_completions.d" "$pages/completions/$1.fish"
}

program() { # program MACHINE ARCHITECTURE
  local target=$1-unknown-linux-musl name=millstream-$version-$1-linux
  local tree=$work/$name root
  scripts/static.sh "$target"
  mkdir -p "$tree/bin" "$tree/share/man/man1"
  install -m 755 -t "$tree/bin" "$(scripts/target.sh)/$target"/release/millstream{,-lab}
  cp "$work"/pages/millstream{,-lab}/man/*.1 "$tree/share/man/man1/"
  mkdir "$tree/share/completions"
  cp "$work"/pages/millstream{,-lab}/completions/* "$tree/share/completions/"
  cp -r graphs plans "$tree/share/"
  cp README.md CHANGELOG.md LICENSE-MIT LICENSE-APACHE "$out"/millstream{,-lab}-"$version.cdx.json" "$tree/"
  archive "$out/$name.tar.gz" "$work" "$name"

  root=$work/debian-lab-$2
  command_files millstream-lab "$tree" "$root"
  mkdir -p "$root/usr/share/millstream-lab"
  cp -r plans "$root/usr/share/millstream-lab/"
  debian millstream-lab "$2" "$root" millstream-lab <<'END'
Recommends: iproute2, ethtool
Suggests: millstream, uhd-host, gnuradio, qemu-system-x86
Description: measures rates and latencies of machines, links and radios
 The laboratory of Millstream measures the sample rates that a host sustains,
 the packets that links carry, and the latencies of timers, interrupts, packets
 and radios. It repeats measurements by plan, under load and under several
 kernels, and compares the results with confidence intervals.
END

  root=$work/debian-$2
  command_files millstream "$tree" "$root"
  mkdir -p "$root/usr/share/millstream"
  cp -r graphs "$root/usr/share/millstream/"
  install -D -m 644 -t "$root/lib/systemd/system" package/millstream-grant.service package/millstream-radio.service
  install -D -m 644 package/default "$root/etc/default/millstream"
  install -D -m 644 package/sysctl.conf "$root/usr/lib/sysctl.d/60-millstream.conf"
  install -D -m 755 -t "$root/DEBIAN" package/prerm package/postrm
  echo /etc/default/millstream >"$root/DEBIAN/conffiles"
  debian millstream "$2" "$root" millstream <<'END'
Recommends: iproute2, ethtool
Suggests: millstream-lab, soapysdr-tools, uhd-host
Description: radio samples from the network to a decoded result
 Millstream receives samples from networked radios (USRP, CHDR and RFNoC) over
 kernel UDP, AF_PACKET or AF_XDP, processes them in flowgraphs, and gives a
 cause for every lost sample. It contains an emulated radio that stock UHD
 programs accept, and a receiver for ATSC television.
END
}

soapysdr() {
  local machine architecture root=$work/soapysdr interface module built
  machine=$(uname -m) architecture=$(dpkg --print-architecture)
  interface=$(pkg-config --modversion SoapySDR)
  interface=${interface%.*}
  built=$(scripts/cross.sh "$machine-unknown-linux-gnu" soapy/build.sh release | tail -n 1)
  module=$root/usr/lib/$machine-linux-gnu/SoapySDR/modules$interface/${built##*/}
  install -D -m 644 "$built" "$module"
  strip --strip-unneeded "$module"
  # dpkg-shlibdeps wants the folder of a Debian source.
  mkdir -p "$work/shlibdeps/debian"
  : >"$work/shlibdeps/debian/control"
  local depends
  depends=$(cd "$work/shlibdeps" && dpkg-shlibdeps -O "$module" | sed -n 's/^shlibs:Depends=//p') && [ -n "$depends" ] ||
    { echo "package: dpkg-shlibdeps names no packages for the libraries of ${module##*/}: SoapySDR must be that of a Debian" \
      "package (libsoapysdr-dev); or name other PARTs than soapysdr" >&2; exit 1; }
  debian "soapysdr$interface-module-millstream" "$architecture" "$root" millstream-soapysdr <<END
Depends: $depends
Provides: soapysdr$interface-module
Suggests: millstream
Description: Millstream's radios for programs that use SoapySDR
 This module gives SoapySDR's programs (gqrx, GNU Radio, rtl_433) the networked
 radios (USRP, CHDR and RFNoC) that Millstream drives, with the time of each
 sample and the exact length of each gap. It contains an emulated radio.
END
}

echo "package: manual pages and completions"
scripts/cross.sh "$(uname -m)-unknown-linux-musl" cargo run --quiet --release --locked -p millstream-lab-cli --example pages -- \
  "$work/pages"

echo "package: bills of materials and source"
export PATH="$PWD/target/tools/bin:$PATH"
cyclonedx=0.5.9
[[ "$(cargo cyclonedx --version 2>/dev/null)" = *" $cyclonedx" ]] ||
  cargo install --quiet --locked --debug --force --root target/tools cargo-cyclonedx --version "=$cyclonedx"
cargo cyclonedx --quiet --format json --override-filename "$bom"
for one in millstream:crates/cli millstream-lab:crates/lab-cli millstream-soapysdr:soapy millstream-python:python; do
  # Crates of ours are named by the folder that they lie in.
  sed "s|file://$PWD|file:///millstream|g" "${one#*:}/$bom.json" >"$out/${one%%:*}-$version.cdx.json"
done
git -c tar.umask=0022 archive --format=tar --prefix="millstream-$version/" HEAD | gzip -n9 >"$out/millstream-$version.tar.gz"

for part; do
  echo "package: $part"
  case $part in
    x86_64) program x86_64 amd64 ;;
    aarch64) program aarch64 arm64 ;;
    soapysdr) soapysdr ;;
    wheels)
      WHEEL_BILL=$out/millstream-python-$version.cdx.json scripts/python.sh wheel
      cp target/wheels/*.whl "$out/"
      ;;
    *) echo "package: unknown part $part: use x86_64, aarch64, soapysdr or wheels" >&2; exit 2 ;;
  esac
done
(cd "$out" && find . -maxdepth 1 -type f -printf '%P\0' | LC_ALL=C sort -z | xargs -0 sha256sum -- >"$work/SHA256SUMS")
install -m 644 "$work/SHA256SUMS" "$out/"
cat "$out/SHA256SUMS"
