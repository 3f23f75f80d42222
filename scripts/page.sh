#!/usr/bin/env bash
# The tests of the dashboard's page in Debian's Chromium (crates/web/tests/page): scripts/page.sh [ARGUMENT OF PYTEST...]
#
# They use an environment under target/python with Playwright from PyPI, and the browser of Debian. Where one of them is
# missing, it ends 77 and says why, and nothing was tested. MILLSTREAM names another program than target/debug/millstream.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=target/python

skip() { echo "skipped: the page in a browser: $*"; exit 77; }

python=
for one in /usr/bin/python3 python3; do
  if "$one" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then python=$one; break; fi
done
[ -n "$python" ] || skip "no Python 3.11 or newer (Debian package python3)"
command -v chromium >/dev/null || skip "no Chromium (Debian package chromium)"
packages=('playwright>=1.40' 'pytest>=7')
if [ "$(cat $folder/page/packages 2>/dev/null)" != "${packages[*]}" ]; then
  mkdir -p $folder
  { "$python" -m venv $folder/page && $folder/page/bin/python -m pip install --quiet --disable-pip-version-check "${packages[@]}"; } \
    >$folder/page-log 2>&1 || skip "Playwright cannot be had from PyPI: $(tail -n 1 $folder/page-log)"
  echo "${packages[*]}" >$folder/page/packages
fi
[ -n "${MILLSTREAM:-}" ] || cargo build --quiet -p millstream-cli
$folder/page/bin/python -m pytest -p no:cacheprovider -o "markers=slow: takes minutes" crates/web/tests/page "$@"
