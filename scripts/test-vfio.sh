#!/usr/bin/env bash
# A network card behind vfio-pci and an IOMMU, in a guest that QEMU emulates: scripts/test-vfio.sh [MODEL...] (vmxnet3).
# KERNEL is a Debian kernel package or its name. The log of each model stays in vfio/ of cargo's target folder.
set -euo pipefail
cd "$(dirname "$0")/.."
skip() { echo "skipped: $*"; exit 0; }

command -v qemu-system-x86_64 >/dev/null || skip "there is no QEMU (apt install qemu-system-x86)"
pkg-config --exists libdpdk 2>/dev/null || skip "there is no DPDK (apt install libdpdk-dev dpdk pkg-config)"
kernel=${KERNEL:-$(apt-cache depends linux-image-amd64 2>/dev/null | sed -n 's/^ *Depends: //p' | head -1)}
[ -n "$kernel" ] || skip "no kernel package is known here: give one, KERNEL=FILE.deb"

cargo build --release -p millstream-lab-cli --features dpdk
target=$(scripts/target.sh)
mkdir -p "$target/vfio"
status=0
for model in "${@:-vmxnet3}"; do
  log=$target/vfio/$model.log
  echo "== $model under $kernel; the log goes to $log"
  "$target/release/millstream-lab" lab guest --kernel "$kernel" --cards "$model" --memory 1024 --timeout 10min -- \
    lab card --card 0000:00:04.0 --cable /dev/ttyS2:card0 --dma-tester 0000:00:06.0 --unsafe-uio 2>&1 | tee "$log" || status=1
done
exit $status
