#!/usr/bin/env bash
# Makes sure that the Debian packages of a make target are there, by the table scripts/programs.txt: scripts/need.sh TARGET
# As root it installs what is missing. Otherwise it says what to install; a missing optional package is no failure.
set -euo pipefail
here=$(dirname "$0")
target=${1:?need.sh: name a make target, such as test}

# Elsewhere than on Debian the packages have other names; what is missing then shows by itself.
command -v dpkg-query >/dev/null || exit 0

# listed MARK: packages of the target's rows with that mark behind it.
listed() {
  awk -v want="$target$1" '!/^#/ { for (i = 3; i <= NF; i++) if ($i == want) print $2 }' "$here/programs.txt" | sort -u
}
# What is installed, and what that stands for: another Debian may have a package under another name.
there=$(dpkg-query -W -f='${db:Status-Status}, ${Package}, ${Provides}\n' | sed -n 's/^installed, //p' | tr ',' '\n' |
  sed 's/^ *//; s/ .*//; /^$/d')
# Prints those of the packages that are not there.
missing() {
  [ $# -gt 0 ] || return 0
  printf '%s\n' "$@" | grep -vxF "$there" || true
}

# shellcheck disable=SC2046 # one word a package
required=$(missing $(listed ''))
# shellcheck disable=SC2046
optional=$(missing $(listed '?'))
[ -n "$required$optional" ] || exit 0

# install PACKAGE...: whether they are there then.
install() {
  if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
    echo "need: missing Debian packages: $*  (install them with: sudo apt-get install $*)" >&2
    return 1
  fi
  echo "need: installing $*" >&2
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null && return
  echo "need: apt-get could not install: $*" >&2
  return 1
}
if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
  apt-get update -qq || true
fi
# One package that cannot be had must not keep the other optional ones away.
# shellcheck disable=SC2086
[ -z "$optional" ] || install $optional || { [ "$(id -u)" -eq 0 ] && for one in $optional; do install "$one" || true; done; } || true
# shellcheck disable=SC2086
[ -z "$required" ] || install $required
