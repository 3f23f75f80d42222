#!/usr/bin/env bash
# Compiles the tests of the portable crates for ARM64, and runs them under the user-mode emulation of QEMU.
# Ends with what tests say that they skipped, and one line of counts.
#
# Not run: what needs a kernel of ARM64 (links other than kernel UDP, scheduling classes, kernel traces) and what waits for
# a radio in real time, which emulation is too slow for. `lab kernels` boots whole guests.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
log=$(mktemp)
trap 'rm -f "$log"' EXIT
target=aarch64-unknown-linux-musl
crates=(wire ring dsp cpu draw stats flow blocks atsc measure planner)
packages=("${crates[@]/#/-pmillstream-}")

# What user-mode emulation does not do as a kernel does.
later="a thread of the emulator ends after that of the program"
declare -A cannot=(
  [ethtool_tells_the_same]="the emulator passes no requests on to drivers of network cards"
  [a_thread_has_its_class_or_is_told_why_not]="the emulator does not tell the class of a thread with its flags"
  [a_hundred_random_moves_under_load]=$later
  [there_is_never_a_thread_more_than_the_larger_plan_has]=$later
  [dropping_a_graph_after_a_move_ends_it]=$later
)
skipped=()
for name in "${!cannot[@]}"; do skipped+=(--skip "$name"); done

# run ARGUMENT...: runs tests. What they print goes to the log alone, or it would bury their names.
run() {
  scripts/cross.sh $target cargo test --no-fail-fast --lib "$@" -- "${skipped[@]}" --show-output 2>&1 | tee -a "$log" |
    awk '/^successes:$/ { hidden = 1 } /^(failures:$|test result)/ { hidden = 0 } !hidden'
}
status=0
run --tests "${packages[@]}" || status=1
# Of the crate radio the conversions of samples, which have forms for NEON.
run -p millstream-radio convert:: || status=1
echo "skipped: crates net, link, emulator, client, host, guest, lab, cli, and radio but for its conversions: they need an ARM64 kernel or real time"

for name in "${!cannot[@]}"; do echo "skipped: $name: ${cannot[$name]}"; done
sed -n 's/^skipped: /skipped in a test: /p' "$log"
sed -n 's/^test \(.*\) \.\.\. FAILED$/failed: \1/p' "$log"
awk -v skipped="${#cannot[@]}" '/^test .* \.\.\. ignored/ { sub(/^.*ignored,? ?/, ""); reasons[$0]++ }
  /^test result/ { gsub(/;/, ""); passed += $4; failed += $6; skipped += $8 }
  END { for (reason in reasons) print "skipped:", reasons[reason], "tests:", reason
    print passed + 0, "passed,", failed + 0, "failed,", skipped + 0, "skipped, on emulated ARM64" }' "$log"
exit "$status"
