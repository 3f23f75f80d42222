#!/usr/bin/env bash
# Makes sure that Debian packages are there: scripts/need.sh [--optional] PACKAGE...
# As root it installs what is missing. Otherwise it says what to install; a missing optional package is no failure.
set -euo pipefail
optional=false
if [ "${1:-}" = --optional ]; then optional=true; shift; fi

# Elsewhere than on Debian the packages have other names; what is missing then shows by itself.
command -v dpkg-query >/dev/null || exit 0

missing=()
for package in "$@"; do
  [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0

if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
  echo "need: installing ${missing[*]}" >&2
  { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"; } \
    >/dev/null && exit 0
  echo "need: apt-get could not install: ${missing[*]}" >&2
else
  echo "need: missing Debian packages: ${missing[*]}  (install them with: sudo apt-get install ${missing[*]})" >&2
fi
$optional
