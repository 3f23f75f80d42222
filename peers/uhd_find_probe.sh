#!/usr/bin/env bash
# Stock uhd_find_devices and uhd_usrp_probe have to find and open an emulated radio.
# Exit status: 0 they do, 1 they do not, 77 skipped because a program is not there.
set -uo pipefail
. "$(dirname "$0")/lib.sh"
need uhd_find_devices uhd-host
need uhd_usrp_probe uhd-host
start_radio --rx-antenna ramp

timeout 30 uhd_find_devices --args "addr=$RADIO_ADDR" >"$WORK/find" 2>&1 \
  || fail "uhd_find_devices: $(cat "$WORK/find")"
for line in 'product: e320' 'type: e3xx' "mgmt_addr: $RADIO_ADDR" 'claimed: False'; do
  grep -q "$line" "$WORK/find" || fail "uhd_find_devices does not show \"$line\": $(cat "$WORK/find")"
done

timeout 60 uhd_usrp_probe --args "addr=$RADIO_ADDR" >"$WORK/probe" 2>&1 \
  || fail "uhd_usrp_probe: $(cat "$WORK/probe")"
for line in 'CODEC loopback test passed' 'MPM Version: [0-9]' 'RFNoC capable: Yes' '\* 0/Radio#0' \
  '0/SEP#0:0==>0/Radio#0:0' '0/Radio#0:1==>0/SEP#1:0' 'RX Frontend: 1' 'TX Frontend: 1'; do
  grep -q "$line" "$WORK/probe" || fail "uhd_usrp_probe does not show \"$line\": $(cat "$WORK/probe")"
done

stop_radio
echo "agreed: uhd_find_devices and uhd_usrp_probe ($(grep -o 'UHD_[0-9.]*' "$WORK/probe" | head -1))"
