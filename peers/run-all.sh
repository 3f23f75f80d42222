#!/usr/bin/env bash
# Runs every peer: an independent program against ours. A peer ends 0 (agrees), 77 (not installed: skipped,
# with its reason) or anything else (disagrees). Nothing is run again. Ends with one line of counts and the seconds of each peer.
set -uo pipefail
cd "$(dirname "$0")/.."
ask() { timeout --kill-after=10 300 "$1"; }
passed=0 failed=0 skipped=0 times=
for peer in peers/*_*.py peers/*_*.sh; do
  [ -x "$peer" ] || continue
  echo "== $peer"
  SECONDS=0
  ask "$peer"
  outcome=$?
  case $outcome in
    0) passed=$((passed + 1)) ;;
    77) skipped=$((skipped + 1)) ;;
    *) failed=$((failed + 1)); echo "== $peer FAILED" ;;
  esac
  times+=" $(basename "$peer") $SECONDS"
done
echo "seconds:$times"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
