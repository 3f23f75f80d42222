//! The emulated IOMMU (Intel VT-d) that VFIO needs in front of a device.

/// The chipset's option for interrupts that the IOMMU remaps.
pub const CHIPSET: &str = "kernel-irqchip=split";
/// Options of the guest's kernel. At its start it counts timer interrupts as a check, and in
/// software emulation on a busy machine they come too late.
pub const KERNEL_WORDS: [&str; 2] = ["intel_iommu=on", "no_timer_check"];
/// The modules of the guest.
pub const MODULES: [&str; 2] = ["vfio-pci", "vfio_iommu_type1"];
/// QEMU's arguments, before those of the devices behind it. Its addresses are as wide as those of a
/// process, so that DPDK can use the same ones.
pub const ARGUMENTS: [&str; 2] = ["-device", "intel-iommu,intremap=on,aw-bits=48"];
