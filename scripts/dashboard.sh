#!/usr/bin/env bash
# The dashboard in Debian's Chromium, with the release program; none of these is part of a test run:
#
#   scripts/dashboard.sh soak [SECONDS [CLIENTS]]   memory of server and page over a long time (3600), with more clients (0)
#   scripts/dashboard.sh cost [SECONDS]             processor time, delays and 2 x 250 MS/s, with the goals (4 minutes)
#   scripts/dashboard.sh pictures [FOLDER]          takes docs/pictures/dashboard-{dark,light}.png again, on a quiet machine
#
# Where Chromium or Playwright is missing, it ends 77 and says why. MILLSTREAM names another program.
set -euo pipefail
cd "$(dirname "$0")/.."

skip() { echo "skipped: the dashboard in a browser: $*"; exit 77; }
what=${1:-}
if [ "$what" != soak ] && [ "$what" != cost ] && [ "$what" != pictures ]; then
    sed -n '2,8s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
shift

. scripts/environment.sh
command -v chromium >/dev/null || skip "no Chromium (Debian package chromium)"
environment page 'playwright>=1.40' 'pytest>=7' || skip "Playwright cannot be had from PyPI: $(tail -n 1 $folder/log)"
MILLSTREAM=${MILLSTREAM:-$(scripts/target.sh)/release/millstream}
export MILLSTREAM
[ -x "$MILLSTREAM" ] || { echo "dashboard: no $MILLSTREAM: run make build" >&2; exit 1; }
$folder/page/bin/python "crates/web/tests/page/$what.py" "$@"
