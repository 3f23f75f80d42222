#!/usr/bin/env bash
# Lints and tests the crate gpu with its features: kernels on the devices that Vulkan finds, and texts for CUDA on this
# processor, and through NVRTC where the loader finds it (LD_LIBRARY_PATH). Messages of Vulkan's validation layer,
# where it is installed, are failures.
set -euo pipefail
cd "$(dirname "$0")/.."
log=target/test-gpu.log

cargo clippy -p millstream-gpu --features wgpu,cuda --all-targets -- -D warnings

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
  echo "test-gpu: there is no device that Vulkan finds: no kernel was tested (see above)"
fi
