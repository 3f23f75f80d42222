#!/bin/sh
# Runs in a guest, inside `host shield 1 --class fifo:50` (scripts/test-guests.sh): whether the threads that handle a card's
# packets are where they were asked to be, and which of them ran on the stream's CPU while packets passed:
# placements.sh CPUS-OF-INTERRUPTS CPUS-OF-NAPI PRIORITY
#
# CPUS-OF-NAPI is - where there are no NAPI threads. The guest has a card, eth0, and two CPUs. The stream is ping on CPU 1;
# QEMU answers.
set -eu
irq_cpus=$1 napi_cpus=$2 wanted=$3 wrong='' napi=0 irqs=0 ran=0
event=/sys/kernel/tracing/events/sched/sched_switch
count=hist:keys=common_cpu,next_comm

ip addr add 10.0.2.15/24 dev eth0
# The kernel counts, so that no event is lost.
echo "$count" >>"$event/trigger"
ping -q -c 100 -i 0.01 -W 2 10.0.2.2 >/tmp/ping || wrong="packets were lost; "
echo "$count:pause" >>"$event/trigger"
ip addr del 10.0.2.15/24 dev eth0

for folder in /proc/[0-9]*; do
  { read -r name <"$folder/comm"; } 2>/dev/null || continue
  case $name in
    irq/*-eth0*)
      irqs=$((irqs + 1)) at=$irq_cpus number=${name#irq/}
      read -r affinity <"/proc/irq/${number%%-*}/smp_affinity_list"
      [ "$affinity" = "$irq_cpus" ] || wrong="${wrong}the interrupt of $name goes to CPUs $affinity; "
      # Its thread follows with the next interrupt, and that of the link's state (irq/N-eth0) has none.
      case $name in *-rx-* | *-tx-*) ;; *) at= ;; esac ;;
    napi/eth0-*) napi=$((napi + 1)) at=$napi_cpus ;;
    *) continue ;;
  esac
  while read -r key value; do
    [ "$key" != Cpus_allowed_list: ] || cpus=$value
  done <"$folder/status"
  read -r stat <"$folder/stat"
  # Behind the name: the state, field 3 of proc(5). Field 40 is the priority.
  set -- ${stat##*) }
  echo "at $name CPUs $cpus fifo:${38}"
  [ "$cpus ${38}" = "${at:-$cpus} $wanted" ] || wrong="$wrong$name is not on CPUs $at with fifo:$wanted; "
done
# { common_cpu:          1, next_comm: irq/25-eth0-rx-                    } hitcount:        100
while read -r _ _ cpu _ name _ _ turns; do
  [ "$cpu" = 1, ] || continue
  case $name in
    irq/*-eth0*) ran=$((ran + turns)) ;;
    napi/eth0-* | ksoftirqd/* | ping) ;;
    *) continue ;;
  esac
  echo "ran on CPU 1: $name $turns"
done <"$event/hist"
echo "!$count" >>"$event/trigger"

[ $irqs -gt 0 ] || wrong="${wrong}no interrupt of eth0 is a thread; "
case $napi_cpus in
  -) [ $napi -eq 0 ] || wrong="${wrong}there are NAPI threads; " ;;
  *) [ $napi -gt 0 ] || wrong="${wrong}there are no NAPI threads; " ;;
esac
# An answer is an interrupt.
case $irq_cpus in
  1) [ $ran -ge 100 ] || wrong="${wrong}the interrupts ran $ran times on CPU 1; " ;;
  *) [ $ran -eq 0 ] || wrong="${wrong}the interrupts ran $ran times on CPU 1; " ;;
esac
echo "placement: ${wrong:-as asked}, $irqs threads of interrupts, which ran $ran times on the stream's CPU"
[ -z "$wrong" ]
