#!/usr/bin/env bash
# Runs every test of our own and ends with one line of counts. A test that fails once has failed: nothing is run again.
#
# Tests that wait for the kernel, another process or a browser more than they calculate run in lanes beside the others: a
# processor that waits is lost time. What a lane printed is shown when it has ended.
#
# Tests that are known to be unsteady stand in scripts/unsteady.txt, each with a date and a reason. They run apart, are shown,
# and do not decide.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
logs=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null; rm -rf "$logs"' EXIT
trap 'exit 130' INT TERM
status=0
# Nobody builds there again: what incremental builds keep would only cost time.
[ -z "${CI:-}" ] || export CARGO_INCREMENTAL=0

stage() { printf '== %s (%d s so far)\n' "$1" "$SECONDS"; }

# DPDK's environment has tests of its own where the library is there (its ports: make test-dpdk).
features=()
if pkg-config --exists libdpdk 2>/dev/null; then
  features=(--features millstream-dpdk/libdpdk)
else
  echo "skipped: DPDK's environment: no libdpdk here (Debian package libdpdk-dev)"
fi
mapfile -t unsteady < <(sed -n 's/^\([^# ][^ ]*\).*/\1/p' scripts/unsteady.txt)
skipped=()
for name in "${unsteady[@]}"; do skipped+=(--skip "$name"); done
run() { cargo test --workspace --no-fail-fast "${features[@]}" "$@" -- "${skipped[@]}" 2>&1; }

stage "build"
# All in one go: a later build of fewer crates would have other features, and compile much once more.
cargo build --workspace --all-targets "${features[@]}" || exit 1
cargo test --workspace --no-run "${features[@]}" 2>&1 | tee "$logs/build" || exit 1
MILLSTREAM=$(scripts/target.sh)/debug/millstream
export MILLSTREAM MILLSTREAM_BUILT=yes
declare -A lane=()
while read -r program; do
  case $program in
    conformance) lane[links]+=" $program" ;;
    radio | client | fault_matrix) lane[radios]+=" $program" ;;
    *) lane[rest]+=" $program" ;;
  esac
done < <(sed -n 's|^ *Executable tests/.*/deps/\(.*\)-[0-9a-f]*)$|\1|p' "$logs/build" | sort -u)
# Tests of a lane, and further arguments of cargo test.
programs() {
  local names=() name
  for name in ${lane[$1]}; do names+=(--test "$name"); done
  run "${names[@]}" "${@:2}"
}
# 77: what it needs cannot be had here.
may_skip() { "$@" 2>&1 || [ $? -eq 77 ]; }
clients() {
  local failed=0
  stage "Python"
  may_skip scripts/python.sh test || failed=1
  stage "the page in a browser"
  may_skip scripts/page.sh -m "not slow" || failed=1
  return $failed
}
loom() {
  RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=target/loom cargo test -p millstream-ring --release --test loom 2>&1
}

stage "tests"
programs links >"$logs/links" &
beside=([$!]=links)
programs radios >"$logs/radios" &
beside+=([$!]=radios)
clients >"$logs/clients" &
beside+=([$!]=clients)
# Many of these wait, too: for a time-out, or for another process.
RUST_TEST_THREADS=${RUST_TEST_THREADS:-$((2 * $(nproc)))} programs rest --lib --bins --examples | tee "$logs/rest" || status=1
run --doc | tee "$logs/doc" || status=1
stage "loom models (lock-free types under every interleaving)"
loom | tee "$logs/loom" || status=1
for process in "${!beside[@]}"; do
  wait "$process" || status=1
  stage "what ran beside them: ${beside[$process]}"
  cat "$logs/${beside[$process]}"
done
if [ ${#unsteady[@]} -gt 0 ]; then
  stage "known to be unsteady (scripts/unsteady.txt); shown, not counted"
  cargo test --workspace --no-fail-fast "${features[@]}" -- --exact "${unsteady[@]}" 2>&1 | grep '^test '
fi

stage "end"
sed -n 's/^test \(.*\) \.\.\. FAILED$/failed: \1/p' "$logs"/*
awk '/^test result:/ { passed += $4; failed += $6; skipped += $8 }
     END { printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped }' "$logs"/*
exit $status
