#!/usr/bin/env bash
# Runs every peer: an independent program against ours. A peer ends 0 (agrees), 77 (not installed: skipped,
# with its reason) or anything else (disagrees). Nothing is run again. Ends with what the disagreeing ones said last, the
# seconds of each peer and one line of counts.
set -uo pipefail
cd "$(dirname "$0")/.."
# Peers that could take longer do less then.
export MILLSTREAM_PEER_LIMIT_S=300
ask() { timeout --kill-after=10 $MILLSTREAM_PEER_LIMIT_S "$1"; }
passed=0 failed=() skipped=0 times=
said=$(mktemp -d)
trap 'rm -rf "$said"' EXIT
for peer in peers/*_*.py peers/*_*.sh; do
  [ -x "$peer" ] || continue
  echo "== $peer"
  SECONDS=0
  ask "$peer" 2>&1 | tee "$said/${peer##*/}"
  outcome=${PIPESTATUS[0]}
  case $outcome in
    0) passed=$((passed + 1)) ;;
    77) skipped=$((skipped + 1)) ;;
    *) failed+=("$peer"); echo "== $peer FAILED, exit status $outcome" ;;
  esac
  times+=" $(basename "$peer") $SECONDS"
done
for peer in "${failed[@]}"; do
  echo "== $peer FAILED; its last lines:"
  tail -n 30 "$said/${peer##*/}"
done
echo "seconds:$times"
echo "$passed passed, ${#failed[@]} failed, $skipped skipped"
[ ${#failed[@]} -eq 0 ]
