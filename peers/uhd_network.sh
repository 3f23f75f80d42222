#!/usr/bin/env bash
# Two network namespaces joined by a veth pair, with standard and with jumbo frames: uhd_find_devices and millstream find
# have to find the emulated radio by broadcast, and rx_samples_to_file and millstream rx have to get every sample.
# Exit status: 0 they do, 1 they do not, 77 skipped (no root, or a program is not there).
set -uo pipefail
. "$(dirname "$0")/lib.sh"
need uhd_find_devices uhd-host
need ip iproute2
[ "$(id -u)" -eq 0 ] || { echo "skipped: network namespaces need root"; exit 77; }
[ -x "$MILLSTREAM" ] || { echo "skipped: no $MILLSTREAM (run make build)"; exit 77; }
EXAMPLES=/usr/libexec/uhd/examples
[ -d "$EXAMPLES" ] || EXAMPLES=/usr/lib/uhd/examples
DEVICE=ms-device-$$ HOST=ms-host-$$

cleanup() {
  [ -n "$RADIO_PID" ] && kill -9 "$RADIO_PID" 2>/dev/null
  ip netns del "$DEVICE" 2>/dev/null
  ip netns del "$HOST" 2>/dev/null
  rm -rf "$WORK"
}
trap cleanup EXIT

in_host() { ip netns exec "$HOST" "$@"; }

# Containers and chroots often forbid it.
if ! { ip netns add "$DEVICE" && ip netns add "$HOST" && ip netns exec "$HOST" true; } 2>"$WORK/netns"; then
  echo "skipped: network namespaces cannot be made here ($(head -1 "$WORK/netns"))"
  exit 77
fi
ip link add msdev netns "$DEVICE" type veth peer name mshost netns "$HOST" || fail "cannot make a veth pair"
ip -n "$DEVICE" addr add 10.77.0.1/24 brd + dev msdev
ip -n "$HOST" addr add 10.77.0.2/24 brd + dev mshost
ip -n "$DEVICE" link set lo up
ip -n "$HOST" link set lo up

ramp_is_whole() {
  /usr/bin/python3 - "$1" "$2" <<'PY'
import array, sys
got = array.array("I", open(sys.argv[1], "rb").read())
whole = len(got) == int(sys.argv[2]) and all(x == (got[0] + k) & 0xFFFFFFFF for k, x in enumerate(got))
sys.exit(0 if whole else 1)
PY
}

for mtu in 1500 9000; do
  ip -n "$DEVICE" link set msdev mtu $mtu up
  ip -n "$HOST" link set mshost mtu $mtu up
  # Not by the function: its subshell would be the process that is stopped.
  ip netns exec "$DEVICE" "$MILLSTREAM" sim radio --addr 10.77.0.1 --rx-antenna ramp --rx-buffer-samples 4194304 \
    >"$WORK/radio.out" 2>"$WORK/radio.err" &
  RADIO_PID=$!
  for _ in $(seq 100); do grep -q '^ready' "$WORK/radio.err" && break; sleep 0.1; done

  in_host uhd_find_devices >"$WORK/find" 2>&1 || fail "uhd_find_devices: $(cat "$WORK/find")"
  grep -q 'mgmt_addr: 10.77.0.1' "$WORK/find" || fail "uhd_find_devices: $(cat "$WORK/find")"
  in_host "$MILLSTREAM" find >"$WORK/find" 2>&1 || fail "millstream find: $(cat "$WORK/find")"
  grep -q '^10.77.0.1 ' "$WORK/find" || fail "millstream find: $(cat "$WORK/find")"

  in_host "$MILLSTREAM" rx --args addr=10.77.0.1 --rate 5e6 --nsamps 5000000 --force --out "$WORK/ours.sc16" \
    >"$WORK/rx" 2>&1 || fail "millstream rx: $(cat "$WORK/rx")"
  ramp_is_whole "$WORK/ours.sc16" 5000000 || fail "millstream rx, MTU $mtu: the ramp has a gap: $(cat "$WORK/rx")"
  in_host "$EXAMPLES/rx_samples_to_file" --args addr=10.77.0.1 --rate 5e6 --nsamps 5000000 --type short \
    --file "$WORK/uhd.sc16" >"$WORK/rx" 2>&1 || fail "rx_samples_to_file: $(cat "$WORK/rx")"
  ramp_is_whole "$WORK/uhd.sc16" 5000000 || fail "rx_samples_to_file, MTU $mtu: the ramp has a gap: $(cat "$WORK/rx")"

  stop_radio
  echo "agreed: MTU $mtu, found by broadcast by both, 5000000 samples exact by both"
done
