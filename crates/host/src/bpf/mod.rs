//! eBPF without clang: an assembler, the bpf(2) calls that load programs, and the kernel's own
//! description of its types.

mod asm;
mod btf;
mod records;
mod sys;

pub use asm::{AluOp, Asm, BpfHelper, If, Insn, Label, Reg, Size};
pub use btf::{Btf, BtfError, KERNEL_TYPES, KernelPoint};
pub use records::RecordRing;
pub use sys::{
    LoadOptions, MapKind, ProgramPlace, attach, attach_tracepoint, create_map, delete, detach,
    freeze, load, program_by_id, program_info, test_run, update,
};

/// Returns the number of processors with rows of their own: a power of two that covers every
/// possible one, but at most 256 (beyond that some share rows, and may miss a count).
#[must_use]
pub fn cpus() -> u32 {
    // SAFETY: sysconf has no preconditions.
    let configured = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_CONF) };
    (configured.clamp(1, 256) as u32).next_power_of_two()
}
