#!/usr/bin/env bash
# What needs another kernel or other boot parameters than this machine has, in guests that QEMU emulates:
# scripts/test-guests.sh [STOCK [RT]]
#
# STOCK and RT are Debian kernels as `lab guest --kernel` takes them, without and with PREEMPT_RT. The output of each guest
# stays in guests/ of cargo's target folder.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
stock=${1:-linux-image-amd64} rt=${2:-linux-image-rt-amd64}
target=$(scripts/target.sh)
program=${MILLSTREAM_LAB:-$target/release/millstream-lab}
logs=$target/guests
mkdir -p "$logs"
[ "$(uname -m)" = x86_64 ] || { echo "skipped: the kernels are for x86-64, and this is $(uname -m)"; exit 0; }
passed=0 failed=0

# check WHAT PATTERN ARGUMENT...: whether the output of `lab guest ARGUMENT...` has a line like PATTERN, and its status is 0.
# No line may be like $never. The doctor's own status is 1 where it finds something.
never=
check() {
  local what=$1 pattern=$2 log status=0 found=0
  shift 2
  log="$logs/${what//[^a-z0-9]/-}.log"
  "$program" lab guest "$@" >"$log" 2>&1 || status=$?
  grep -Eq -- "$pattern" "$log" && found=1
  [ -z "$never" ] || ! grep -Eq -- "$never" "$log" || found=0
  if [ "$found" -eq 1 ] && { [ $status -eq 0 ] || [[ $* = *" host doctor "* && $status -eq 1 ]]; }; then
    passed=$((passed + 1))
    echo "ok      $what"
  else
    failed=$((failed + 1))
    echo "FAILED  $what: exit status $status, see $log"
    tail -n 15 "$log" | sed 's/^/        /'
  fi
}

# with PROGRAM...: lets a guest have these programs and their libraries (array `files`).
with() {
  local program library
  files=()
  for program in "$@"; do
    files+=(--file "$(command -v "$program")")
    while read -r library; do
      files+=(--file "$library")
    done < <(ldd "$(command -v "$program")" | grep -o '/[^ ]*')
  done
}

card=(--module e1000e --netdev user,id=n --device "e1000e,netdev=n")
free=(--append isolcpus=1 --append nohz_full=1 --append rcu_nocbs=1)
doctor=(-- host doctor --evidence --cpus 1)
for kernel in stock rt; do
  check "isolation, $kernel: a CPU with all work is found" "minor +isolation .*no isolcpus=1" \
    --kernel "${!kernel}" "${doctor[@]}" isolation
  check "isolation, $kernel: a CPU kept free at boot is found" "good +isolation .*CPU 1" \
    --kernel "${!kernel}" "${free[@]}" "${doctor[@]}" isolation
done
never="threads of the network" check "priorities: interrupts that are no threads are not judged" "over eth0" \
  --kernel "$stock" "${card[@]}" -- host doctor packet-priorities --class fifo:50 --cpus 0-1
check "priorities: threads of interrupts that are not above the stream are found" \
  "matters +packet-priorities .*3 of 3 threads of the network are not above fifo:50" \
  --kernel "$rt" "${card[@]}" -- host doctor packet-priorities --class fifo:50 --cpus 0-1
check "priorities: a shield raises the threads of interrupts and restores them" \
  "good +packet-priorities .*3 threads of the network are above fifo:50" \
  --kernel "$rt" "${card[@]}" --unchanged -- host shield 1 --interface eth0 --napi soft --interrupt-class fifo:60 \
  --class fifo:50 --measure 0 -- /init host doctor packet-priorities --class fifo:50 --cpus 0-1
check "priorities: a kernel without such threads says so" "no interrupt of eth0 is a thread" \
  --kernel "$stock" "${card[@]}" --console -- host shield 1 --interface eth0 --napi soft --interrupt-class fifo:60 \
  --measure 0 -- /init host net links
# The threads of a card's interrupts, placed in each way that the shield has. At the end all must be as before, but for a
# thread that was with the stream: it follows its restored interrupt only when that comes again.
with sh ip ping
while read -r what irqs napi priority options <&3; do
  read -ra options <<<"$options"
  unchanged=(--append irqaffinity=0)
  [ "$irqs" = 1 ] || unchanged+=(--unchanged)
  check "placement: ${what//-/ }" "placement: as asked, 3 threads of interrupts" --kernel "$rt" "${card[@]}" "${files[@]}" \
    --file "$PWD/scripts/guests/placements.sh" "${unchanged[@]}" -- host shield 1 --measure 0 --interface eth0 --class fifo:50 \
    --interrupt-class "fifo:$priority" "${options[@]}" \
    -- "$(command -v sh)" "$PWD/scripts/guests/placements.sh" "$irqs" "$napi" "$priority"
done 3<<'END'
interrupts-away-from-the-stream,-soft 0 - 60 --napi soft
interrupts-and-NAPI-threads-with-the-stream 1 1 60 --napi with --napi-class fifo:60
interrupts-and-NAPI-threads-away 0 0 60 --napi away --napi-class fifo:60
interrupts-with-the-stream,-below-it 1 1 40 --napi with --napi-class fifo:40
END
check "timerlat: the kernel's tracer beside our threads, and restored" "our thread .* (before|after) the kernel's" \
  --kernel "$rt" --unchanged -- latency timer --timerlat --duration 2s
never="interrupt to thread" check "timerlat: a kernel without the tracer" "CONFIG_TIMERLAT_TRACER" \
  --kernel "$stock" "${files[@]}" --console -- host shield 1 --measure 0 \
  -- "$(command -v sh)" -c '! /init latency timer --timerlat'
# An ordinary user (nobody) whose limit was raised, which a container's root often may not do.
with sh chroot
nobody="$(command -v chroot) --userspec=65534:65534 / /init latency timer --cpus 1 --count 20 --class"
check "priorities: an ordinary user has those up to its limit, and is told the limit" \
  "priorities up to 20 \\(RLIMIT_RTPRIO\\)" --kernel "$stock" "${files[@]}" --console -- host shield 1 --measure 0 \
  -- "$(command -v sh)" -c "set -e; ulimit -r 20; $nobody fifo:20; ! $nobody fifo:21"
# What a driver can do is found by opening the link: kernels before 6.3 do not report it.
for kernel in stock rt; do
  for card in "virtio-net-pci virtio_net native.copy" "e1000e e1000e generic" "rtl8139 8139cp generic"; do
    read -r device driver mode <<<"$card"
    check "xdp, $kernel: $driver gives ${mode/./ }" "xdp:eth0: ${mode} \\(probed\\), driver $driver" --kernel "${!kernel}" \
      --console --module virtio_pci --module "$driver" --netdev user,id=n --device "$device,netdev=n" \
      -- host net host --link xdp:eth0,address=10.0.2.15/24 --duration 0.3
  done
done
# Two cores with two hardware threads each: the neighbours of a pipe are to share one, and without threads none does.
here=$PWD/scripts/guests
plan=(--file "$here/pipes.toml" --file "$here/pipes.json" -- graph plan "$here/pipes.toml" --profile "$here/pipes.json")
check "smt: the threads of a core are found" "CPU 0 on a core with the stream's CPU 1" \
  --kernel "$stock" --vcpus 4 --threads 2 -- host doctor smt-rivals --cpus 1
check "smt: the neighbours of a pipe share a core" "a_one -> a_two: .*across SMT siblings of one core" \
  --kernel "$stock" --vcpus 4 --threads 2 "${plan[@]}"
never="SMT siblings" check "smt: four cores without threads have no siblings" "a_one -> a_two: .*across" \
  --kernel "$stock" --vcpus 4 "${plan[@]}"
# Programs that others wrote for XDP, under kernels that load them.
place() { readlink -f "$(PATH=$PATH:/usr/sbin type -P "$1")"; }
if bench=$(place xdp-bench) && ip=$(place ip) && ethtool=$(place ethtool); then
  shell=$(place bash) with=(--with "$bench" --with "$ip" --with "$ethtool")
  for tool in bash cat grep mkdir sed sleep tail; do with+=(--with "$(place "$tool")"); done
  for kernel in stock rt; do
    check "xdp-bench, $kernel: it passes on and takes what the link receives and sends" \
      "all agree: xdp-bench drop: sent 200" --kernel "${!kernel}" --module veth --append ipv6.disable=1 \
      --file "$here/xdp-bench.sh" "${with[@]}" -- host shield 1 --measure 0 -- "$shell" "$here/xdp-bench.sh"
  done
else
  echo "skipped xdp-bench: it, ip or ethtool is not installed (apt install xdp-tools iproute2 ethtool)"
fi
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
