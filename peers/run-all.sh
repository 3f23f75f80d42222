#!/usr/bin/env bash
# Runs every peer: an independent program against ours. A peer ends 0 (agrees), 77 (not installed: skipped,
# with its reason) or anything else (disagrees), and then gets a second try, which is told: both sides are timed by a shared machine.
# Ends with one line of counts and the seconds of each peer.
set -uo pipefail
cd "$(dirname "$0")/.."
ask() { timeout --kill-after=10 300 "$1"; }
passed=0 failed=0 skipped=0 times= unsteady=
for peer in peers/*_*.py peers/*_*.sh; do
  [ -x "$peer" ] || continue
  echo "== $peer"
  SECONDS=0
  ask "$peer"
  outcome=$?
  if [ $outcome -ne 0 ] && [ $outcome -ne 77 ]; then
    echo "== $peer once more"
    ask "$peer"
    outcome=$?
    unsteady+=" $(basename "$peer")"
  fi
  case $outcome in
    0) passed=$((passed + 1)) ;;
    77) skipped=$((skipped + 1)) ;;
    *) failed=$((failed + 1)); echo "== $peer FAILED" ;;
  esac
  times+=" $(basename "$peer") $SECONDS"
done
echo "seconds:$times"
[ -z "$unsteady" ] || echo "ran twice:$unsteady"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
