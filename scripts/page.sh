#!/usr/bin/env bash
# The tests of the dashboard's page in Debian's Chromium (crates/web/tests/page): scripts/page.sh [ARGUMENT OF PYTEST...]
#
# They use an environment under target/python with Playwright from PyPI, and the browser of Debian. Where one of them is
# missing, it ends 77 and says why, and nothing was tested. MILLSTREAM names another program than cargo's debug/millstream.
set -euo pipefail
cd "$(dirname "$0")/.."

skip() { echo "skipped: the page in a browser: $*"; exit 77; }

. scripts/environment.sh
command -v chromium >/dev/null || skip "no Chromium (Debian package chromium)"
environment page 'playwright>=1.40' 'pytest>=7' || skip "Playwright cannot be had from PyPI: $(tail -n 1 $folder/log)"
if [ -z "${MILLSTREAM:-}" ]; then
  cargo build --quiet -p millstream-cli
  MILLSTREAM=$(scripts/target.sh)/debug/millstream
  export MILLSTREAM
fi
$folder/page/bin/python -m pytest -p no:cacheprovider -o "markers=slow: takes minutes" crates/web/tests/page "$@"
