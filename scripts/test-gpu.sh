#!/usr/bin/env bash
# Lints and tests the crate gpu with its features: kernels on the devices that Vulkan and CUDA find, and texts for CUDA on
# this processor, and through NVRTC where the loader finds it (LD_LIBRARY_PATH). Messages of Vulkan's validation layer,
# where it is installed, are failures.
set -euo pipefail
cd "$(dirname "$0")/.."
target=$(scripts/target.sh)
log=$target/test-gpu.log

cargo clippy -p millstream-gpu -p millstream-cli --features wgpu,cuda,millstream-cli/gpu,millstream-cli/cuda \
  --all-targets -- -D warnings

# A layer of Mesa that chooses among GPUs of a desktop, and complains where there is none.
export NODEVICE_SELECT=1
layer=/usr/share/vulkan/explicit_layer.d/VkLayer_khronos_validation.json
if [ -e "$layer" ]; then
  export VK_INSTANCE_LAYERS=VK_LAYER_KHRONOS_validation
else
  echo "test-gpu: Vulkan's validation layer is not installed (Debian: vulkan-validationlayers): its checks are left out"
fi
# The layer writes to the standard output, past the test harness.
cargo test -p millstream-gpu --features wgpu,cuda "$@" 2>&1 | tee "$log"
if grep -E "VUID-|Validation Error" "$log" >/dev/null; then
  echo "test-gpu: FAILED: Vulkan's validation layer reports errors (see above, and $log)" >&2
  exit 1
fi
if grep "SKIPPED" "$log" >/dev/null; then
  echo "test-gpu: there is no device that Vulkan or CUDA finds: no kernel was tested (see above)"
fi

# The same transport streams from the CPU and from the device, and the choice between them.
cargo build -p millstream-cli -p millstream-lab-cli --features millstream-cli/gpu,millstream-cli/cuda
command=$target/debug/millstream
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$command" run graphs/atsc-wide-signal.toml --set out="$work/wide.cf32" --set samples=3600000 >/dev/null
"$command" run graphs/atsc-wide.toml --set in="$work/wide.cf32" --set out="$work/cpu" --set domain=cpu >/dev/null
if "$command" run graphs/atsc-wide.toml --set in="$work/wide.cf32" --set out="$work/gpu" --set domain=gpu \
  --set check_every=10 --set stall_ms=60000 >"$work/log" 2>"$work/errors"; then
  grep -E "^bank > device" "$work/log"
  if grep -q "on the CPU because" "$work/log"; then
    echo "test-gpu: FAILED: the CPU calculated in place of the device" >&2
    exit 1
  fi
  for station in 0 1 2 3; do cmp "$work/cpu$station.ts" "$work/gpu$station.ts"; done
  echo "test-gpu: the transport streams of four stations are those of the CPU"
  "$command-lab" bench offload --taps 16,715 --batch 16384 --repeat 1 --measure 50ms
elif grep -q "cannot use a GPU" "$work/errors"; then
  grep "cannot use a GPU" "$work/errors"
else
  cat "$work/errors" >&2
  exit 1
fi
