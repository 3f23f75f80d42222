#!/usr/bin/env bash
# Packets between the link `xdp` and Debian's xdp-bench, in a guest: scripts/test-guests.sh runs this there, as root, with
# the module veth and without IPv6, whose own packets would be counted, too.
#
#   1. kernel, va = vb [xdp-bench redirect to pa], pa = pb [link xdp receives, and echoes]
#   2. kernel, pa = pb [link xdp receives, and echoes], pa [xdp-bench drop takes the echoes]
#
# Every station counts: what xdp-bench's program did is in the driver's counters. These counts must agree. The summary of
# xdp-bench itself adds up rates, so it may differ by a twentieth. xdp-bench swaps the Ethernet addresses, so pb has the
# address of va.
set -uo pipefail
count=${1:-200} kernel=$(</proc/sys/kernel/osrelease)
ours=02:00:00:00:00:0a
fail() { echo "xdp-bench: $*"; exit 1; }

# The link is in a namespace of its own: otherwise the kernel would deliver the datagrams itself.
mkdir -p /run/netns
ip netns add far
ip link add va type veth peer name vb
ip link add pa type veth peer name pb netns far
ip link set va address $ours
for name in va vb pa; do ip link set "$name" up; done
ip -n far link set pb address $ours up
ip -n far address add 10.9.0.2/24 dev pb
# xdp-bench takes answers to ARP away.
ip -n far neighbour replace 10.9.0.1 lladdr "$(</sys/class/net/pa/address)" dev pb

# begin FILE PATTERN COMMAND...: starts a program that writes such a line to FILE when it is ready.
begin() {
  local file=$1 pattern=$2
  shift 2
  "$@" >"$file" 2>&1 &
  last=$!
  for _ in {1..100}; do
    sleep 0.2
    grep -Eq "$pattern" "$file" && return
    kill -0 $last 2>/dev/null || break
  done
  case $1 in
    xdp-bench) fail "\`$*\` cannot be loaded by the kernel $kernel: $(tail -n 3 "$file")" ;;
    *) fail "\`$*\` does not start: $(cat "$file")" ;;
  esac
}

number() { sed -n "s/$1/\1/p" "$2" | tail -n 1; }

# exchange FROM ON COUNTER ARGUMENT...: sends datagrams from an interface, while xdp-bench runs with these arguments; the
# driver counts on the interface ON what its program does.
exchange() {
  local from=$1 on=$2 counter=$3 number bench host
  shift 3
  ip address add 10.9.0.1/24 dev "$from"
  ip neighbour replace 10.9.0.2 lladdr $ours dev "$from"
  begin /tmp/host ready ip netns exec far /init host net host --link xdp:pb --echo-port 7
  host=$last
  begin /tmp/bench '^(Dropping|Redirecting)' xdp-bench "$@"
  bench=$last
  # It counts from its first look on, and up to its last: once a second.
  sleep 2
  # The socket stays open: the kernel would answer the echoes with ICMP otherwise.
  exec 3<>/dev/udp/10.9.0.2/7
  for ((number = 0; number < count; number++)); do
    printf '%032d' "$number" >&3 || fail "the kernel cannot send"
    ((number % 10)) || sleep 0.05
  done
  sleep 3
  exec 3>&-
  kill -INT "$bench"
  wait "$bench"
  kill -TERM "$host"
  wait "$host"
  ip address flush dev "$from"
  cat /tmp/host
  grep -v Summary /tmp/bench
  received=$(number '^10\.9\.0\.2:7: \([0-9]*\) datagrams.*' /tmp/host)
  echoed=$(number '^ *tx_frames *\([0-9]*\)$' /tmp/host)
  counted=$(ethtool -S "$on" | sed -n "s/^ *rx_queue_[0-9]*_$counter: //p")
  said=$(number '^ *Packets received *: *\([0-9]*\).*' /tmp/bench)
  line="xdp-bench $1: sent $count, its program ${counted:-?} (summary ${said:-?}), link xdp received ${received:-?} and echoed ${echoed:-?}"
  ((${said:-0} >= count * 19 / 20 && ${said:-0} <= count * 21 / 20)) || fail "its summary is wrong: $line"
  [ "$counted $received $echoed" = "$count $count $count" ] || fail "the counts differ: $line"
  echo "all agree: $line"
}

exchange va vb xdp_redirect redirect vb pa -i 1 -s
exchange pa pa xdp_drops drop pa -i 1
