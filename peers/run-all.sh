#!/usr/bin/env bash
# Runs every peer: an independent program against ours. A peer ends 0 (agrees), 77 (not installed: skipped,
# with its reason) or anything else (disagrees). Nothing is run again. Ends with what the disagreeing ones said last, the
# seconds of each peer and one line of counts.
#
# Peers that only calculate run beside the others, which wait more than they calculate, with the lowest priority. So do
# long ones that wait most of their time, in a network namespace of their own: their limits are far above what they take.
set -uo pipefail
cd "$(dirname "$0")/.."
# Peers that could take longer do less then.
export MILLSTREAM_PEER_LIMIT_S=300
calculating=(gnuradio_atsc_rx.py gnuradio_atsc_tx.py gnuradio_captures.py statistics_scipy.py)
calculating+=(cachegrind_misses.py qemu_cpu_models.py)
waiting=(net_linux.py mpm_host.py)
passed=0 failed=() skipped=0 times=
said=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null; rm -rf "$said"' EXIT

# Runs one peer, by the words that follow; leaves what it said, its exit status and its seconds.
ask() {
  local start=$SECONDS name=${1##*/} outcome
  "${@:2}" timeout --kill-after=10 "$MILLSTREAM_PEER_LIMIT_S" "$1" > >(tee "$said/$name") 2>&1 &
  running=$!
  wait $running
  outcome=$?
  echo "$outcome $((SECONDS - start))" >"$said/$name.end"
}
count() {
  local outcome seconds name=${1##*/}
  read -r outcome seconds <"$said/$name.end" || { outcome=lost seconds=0; }
  case $outcome in
    0) passed=$((passed + 1)) ;;
    77) skipped=$((skipped + 1)) ;;
    *) failed+=("$1"); echo "== $1 FAILED, exit status $outcome" ;;
  esac
  times+=" $name $seconds"
}

# Runs peers one after the other, beside the caller: beside SECONDS NICE PEER...
beside() {
  (
    trap 'kill $running; exit 1' TERM
    for name in "${@:3}"; do
      MILLSTREAM_PEER_LIMIT_S=$1 ask "peers/$name" nice -n "$2"
    done
  ) >/dev/null &
}
beside 900 19 "${calculating[@]}"
beside 300 0 "${waiting[@]}"
for peer in peers/*_*.py peers/*_*.sh; do
  [[ -x "$peer" && " ${calculating[*]} ${waiting[*]} " != *" ${peer##*/} "* ]] || continue
  echo "== $peer"
  ask "$peer"
  count "$peer"
done
wait
for name in "${calculating[@]}" "${waiting[@]}"; do
  echo "== peers/$name"
  cat "$said/$name"
  count "peers/$name"
done
for peer in "${failed[@]}"; do
  echo "== $peer FAILED; its last lines:"
  tail -n 30 "$said/${peer##*/}"
done
echo "seconds:$times"
echo "$passed passed, ${#failed[@]} failed, $skipped skipped"
[ ${#failed[@]} -eq 0 ]
