#!/usr/bin/env bash
# Runs every peer: an independent program against ours. A peer ends 0 (agrees), 77 (not installed: skipped,
# with its reason) or anything else (disagrees). Nothing is run again. Ends with what the disagreeing ones said last, the
# seconds of each peer and one line of counts.
#
# Peers that only calculate run beside the others, which wait more than they calculate, with the lowest priority. So do
# long ones that wait most of their time, in a network namespace of their own: their limits are far above what they take.
#
# Then the peers of UHD run again with the UHD of other Debians (peers/roots.sh), beside each other; their names end with its
# version, such as uhd_devices.py@4.8. Those that are left out take long and ask little of UHD's version.
set -uo pipefail
cd "$(dirname "$0")/.."
# Peers that could take longer do less then.
export MILLSTREAM_PEER_LIMIT_S=300
calculating=(gnuradio_atsc_rx.py gnuradio_atsc_tx.py gnuradio_captures.py statistics_scipy.py)
calculating+=(cachegrind_misses.py qemu_cpu_models.py)
waiting=(net_linux.py mpm_host.py uhd_matrix.py)
again=(uhd_find_probe.sh uhd_rx_timed.py uhd_tx_events.py uhd_python_tx.py)
again+=(uhd_remote.py uhd_benchmark_rate.py uhd_tuning.py uhd_devices.py uhd_matrix.py gnuradio_usrp_source.py gnuradio_usrp_sink.py)
again+=(mpm_host.py soapy_uhd.py soapy_python.py)
codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
suites=()
for suite in bookworm trixie sid; do [ "$suite" = "$codename" ] || suites+=("$suite"); done
passed=0 failed=() skipped=0 times= at=
said=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null; rm -rf "$said"' EXIT

# Runs one peer, by the words that follow; leaves what it said, its exit status and its seconds.
ask() {
  local start=$SECONDS name=${1##*/}$at outcome
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
for suite in "${suites[@]}"; do
  { nice -n 19 peers/roots.sh "$suite" >"$said/$suite" 2>&1; echo $? >"$said/$suite.end"; } &
done
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
# again_with SUITE VERSION: the peers of UHD, with that of a Debian, in a network of their own: a search finds their radios only.
# UHD 4.3 resolves no address where there is none but that of loopback.
again_with() {
  local apart=(unshare --net)
  [ "$(id -u)" -eq 0 ] || apart+=(--map-root-user)
  apart+=(sh -c 'ip link set lo up && ip addr add 10.77.77.77/32 dev lo && exec "$@"' sh)
  (
    trap 'kill $running; exit 1' TERM
    at=@$2
    for name in "${again[@]}"; do ask "peers/$name" "${apart[@]}" peers/roots.sh "$1"; done
  ) >/dev/null &
}
versions=()
for suite in "${suites[@]}"; do
  if version=$(tail -n 1 "$said/$suite") && [[ $version =~ ^[0-9]+\.[0-9]+$ ]]; then
    versions+=("$version")
    again_with "$suite" "$version"
  else
    echo "== peers/roots.sh $suite"
    cat "$said/$suite"
    [ "$(cat "$said/$suite.end")" = 77 ] && skipped=$((skipped + 1)) || failed+=("$suite")
  fi
done
wait
for version in "${versions[@]}"; do
  for name in "${again[@]}"; do
    echo "== peers/$name@$version"
    cat "$said/$name@$version"
    count "peers/$name@$version"
  done
done
for peer in "${failed[@]}"; do
  echo "== $peer FAILED; its last lines:"
  tail -n 30 "$said/${peer##*/}"
done
echo "seconds:$times"
echo "$passed passed, ${#failed[@]} failed, $skipped skipped"
[ ${#failed[@]} -eq 0 ]
