//! The emulated IOMMU (Intel VT-d) that VFIO wants in front of a device.

/// What the chipset needs for interrupts that the IOMMU remaps.
pub const CHIPSET: &str = "kernel-irqchip=split";
/// What the guest's kernel is told. It counts timer interrupts at its start to see whether they
/// come, which in software emulation on a busy machine they do too late.
pub const KERNEL_WORDS: [&str; 2] = ["intel_iommu=on", "no_timer_check"];
/// Modules of the guest.
pub const MODULES: [&str; 2] = ["vfio-pci", "vfio_iommu_type1"];
/// QEMU's arguments, in front of those of the devices that it is for. Its addresses are as wide as
/// those of a process, so that DPDK can use the same ones.
pub const ARGUMENTS: [&str; 2] = ["-device", "intel-iommu,intremap=on,aw-bits=48"];
