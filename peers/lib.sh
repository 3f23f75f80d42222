# Shared by the shell peers: serves an emulated radio on a free loopback address and ends it on exit.
#
#   . "$(dirname "$0")/lib.sh"
#   need uhd_find_devices uhd-host
#   start_radio --rx-antenna ramp       # sets RADIO_ADDR, RADIO_PID
#   …
#   stop_radio                          # fails when the radio did not end cleanly

ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
MILLSTREAM="${MILLSTREAM:-$("$ROOT/scripts/target.sh")/release/millstream}"
WORK="$(mktemp -d)"
RADIO_PID=

finish() {
  if [ -n "$RADIO_PID" ]; then kill -9 "$RADIO_PID" 2>/dev/null || true; fi
  rm -rf "$WORK"
}
trap finish EXIT

# need PROGRAM PACKAGE: skips this peer when the program is not there.
need() {
  if ! command -v "$1" >/dev/null; then
    echo "skipped: no $1 (Debian package $2)"
    exit 77
  fi
}

fail() {
  echo "FAILED: $*" >&2
  if [ -s "$WORK/radio.err" ]; then sed 's/^/radio: /' "$WORK/radio.err" >&2; fi
  exit 1
}

# start_radio OPTIONS…: a radio on a free 127.x address, ready to be found.
start_radio() {
  if [ ! -x "$MILLSTREAM" ]; then
    echo "skipped: no $MILLSTREAM (run make build)"
    exit 77
  fi
  RADIO_ADDR="$(/usr/bin/python3 "$ROOT/peers/common.py" free-address)" || fail "no free address"
  "$MILLSTREAM" sim radio --addr "$RADIO_ADDR" "$@" >"$WORK/radio.out" 2>"$WORK/radio.err" &
  RADIO_PID=$!
  for _ in $(seq 200); do
    grep -q '^ready' "$WORK/radio.err" && return
    kill -0 "$RADIO_PID" 2>/dev/null || fail "the radio ended before it was ready"
    sleep 0.1
  done
  fail "the radio was not ready within 20 s"
}

# stop_radio: SIGTERM, and the radio has to end with status 0 within 10 s.
stop_radio() {
  kill -TERM "$RADIO_PID"
  for _ in $(seq 100); do
    kill -0 "$RADIO_PID" 2>/dev/null || break
    sleep 0.1
  done
  kill -0 "$RADIO_PID" 2>/dev/null && fail "the radio did not end within 10 s of SIGTERM"
  local status=0
  wait "$RADIO_PID" || status=$?
  RADIO_PID=
  [ "$status" -eq 0 ] || fail "the radio ended with status $status"
}
