#!/usr/bin/env bash
# Makes what a release consists of: scripts/package.sh [TARGET...]
#
# For each target (aarch64-unknown-linux-musl and x86_64-unknown-linux-musl unless some are named): a static program, with
# manual pages and completions, as an archive and as a Debian package. Beside them the source archive, a bill of materials
# (CycloneDX) and checksums. All of it lies in target/package. Folders and times of the build are kept out of it.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- x86_64-unknown-linux-musl aarch64-unknown-linux-musl
out=$PWD/target/package
cargo_home=${CARGO_HOME:-$HOME/.cargo}
sysroot=$(rustc --print sysroot)
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
commit=$(git rev-parse --short=12 HEAD)
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH MILLSTREAM_COMMIT=$commit
[ -z "$(git status --porcelain --untracked-files=no)" ] ||
  echo "package: files differ from commit $commit: this is no release" >&2
rm -rf "$out"
mkdir -p "$out"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
umask 022

# Nothing of this machine: without debug information, and with paths that are the same everywhere.
export CARGO_PROFILE_RELEASE_DEBUG=false CARGO_PROFILE_RELEASE_STRIP=symbols CARGO_PROFILE_RELEASE_SPLIT_DEBUGINFO=off
export CARGO_INCREMENTAL=0
maps=("$PWD=/millstream" "$cargo_home=/cargo" "$sysroot=/rust")
CROSS_RUSTFLAGS=$(printf ' --remap-path-prefix=%s' "${maps[@]}")
CFLAGS=$(printf ' -ffile-prefix-map=%s' "${maps[@]}")" -g0"
export CROSS_RUSTFLAGS CFLAGS

archive() { # archive FILE FOLDER NAME: a tar file of FOLDER/NAME
  tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" -C "$2" -c "$3" | gzip -n9 >"$1"
}

debian() { # debian ARCHITECTURE: the package of the program in $tree
  local root=$work/debian-$1 doc
  doc=$root/usr/share/doc/millstream
  mkdir -p "$root/DEBIAN" "$doc" "$root/usr/lib/sysctl.d" "$root/lib/systemd/system" "$root/etc/default"
  mkdir -p "$root/usr/share/lintian/overrides" "$root/usr/share/man" "$root/usr/share/millstream"
  mkdir -p "$root/usr/share/bash-completion/completions" "$root/usr/share/zsh/vendor-completions"
  mkdir -p "$root/usr/share/fish/vendor_completions.d"
  install -D -m 755 "$tree/bin/millstream" "$root/usr/bin/millstream"
  cp -r "$tree/share/man/man1" "$root/usr/share/man/"
  gzip -n9 "$root"/usr/share/man/man1/*
  cp "$work/pages/completions/millstream.bash" "$root/usr/share/bash-completion/completions/millstream"
  cp "$work/pages/completions/_millstream" "$root/usr/share/zsh/vendor-completions/"
  cp "$work/pages/completions/millstream.fish" "$root/usr/share/fish/vendor_completions.d/"
  cp -r graphs plans "$root/usr/share/millstream/"
  install -m 644 package/millstream-grant.service package/millstream-radio.service "$root/lib/systemd/system/"
  install -m 644 package/default "$root/etc/default/millstream"
  install -m 644 package/sysctl.conf "$root/usr/lib/sysctl.d/60-millstream.conf"
  install -m 644 package/lintian-overrides "$root/usr/share/lintian/overrides/millstream"
  install -m 644 package/copyright "$doc/copyright"
  install -m 644 "$out/millstream-$version.cdx.json" "$doc/millstream.cdx.json"
  gzip -n9 <CHANGELOG.md >"$doc/NEWS.gz"
  printf 'millstream (%s) unstable; urgency=medium\n\n  * See NEWS.gz.\n\n -- The Millstream authors <maintainers@millstream.example>  %s\n' \
    "$version" "$(date -u -R -d "@$SOURCE_DATE_EPOCH")" | gzip -n9 >"$doc/changelog.gz"
  install -m 755 package/prerm package/postrm "$root/DEBIAN/"
  echo /etc/default/millstream >"$root/DEBIAN/conffiles"
  cat >"$root/DEBIAN/control" <<END
Package: millstream
Version: $version
Architecture: $1
Maintainer: The Millstream authors <maintainers@millstream.example>
Installed-Size: $(du -sk --apparent-size "$root" | cut -f1)
Section: hamradio
Priority: optional
Recommends: iproute2, ethtool
Suggests: soapysdr-tools, uhd-host, qemu-system-x86
Homepage: https://github.com/millstream/millstream
Description: radio samples from the network to a decoded result
 Millstream receives samples from networked radios (USRP, CHDR and RFNoC) over
 kernel UDP, AF_PACKET or AF_XDP, processes them in flowgraphs, and gives a
 cause for every lost sample. It contains an emulated radio that stock UHD
 programs accept, a receiver for ATSC television, and measurements of latency.
END
  (cd "$root" && find . -type f ! -path './DEBIAN/*' -printf '%P\0' | LC_ALL=C sort -z | xargs -0 md5sum >DEBIAN/md5sums)
  find "$root" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
  dpkg-deb --root-owner-group -Zxz --build "$root" "$out/millstream_${version}_$1.deb" >/dev/null
}

echo "package: manual pages and completions"
CARGO_PROFILE_RELEASE_STRIP=none cargo run --quiet -p millstream-cli --example pages -- "$work/pages"

echo "package: bill of materials and source"
export PATH="$PWD/target/tools/bin:$PATH"
for tool in cargo-cyclonedx; do
  command -v "$tool" >/dev/null || cargo install --quiet --locked --debug --root target/tools "$tool"
done
cargo cyclonedx --quiet --format json --override-filename millstream-bom \
  --manifest-path crates/cli/Cargo.toml
mv crates/cli/millstream-bom.json "$out/millstream-$version.cdx.json"
find . -path ./target -prune -o -name millstream-bom.json -exec rm {} +
git archive --format=tar --prefix="millstream-$version/" HEAD | gzip -n9 >"$out/millstream-$version.tar.gz"

for target; do
  echo "package: $target"
  scripts/cross.sh "$target" cargo build --release --locked -p millstream-cli
  machine=${target%%-*}
  name=millstream-$version-$machine-linux
  tree=$work/$name
  mkdir -p "$tree/bin" "$tree/share/man/man1"
  install -m 755 "target/$target/release/millstream" "$tree/bin/"
  cp "$work"/pages/man/*.1 "$tree/share/man/man1/"
  cp -r "$work/pages/completions" graphs plans "$tree/share/"
  cp README.md CHANGELOG.md LICENSE-MIT LICENSE-APACHE "$out/millstream-$version.cdx.json" "$tree/"
  archive "$out/$name.tar.gz" "$work" "$name"
  case $machine in
    x86_64) debian amd64 ;;
    aarch64) debian arm64 ;;
  esac
done
(cd "$out" && sha256sum -- * >SHA256SUMS && cat SHA256SUMS)
