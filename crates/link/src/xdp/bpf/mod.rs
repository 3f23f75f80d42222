//! eBPF without clang: an assembler, our one program, and the bpf(2) calls that load it.

mod asm;
mod maps;
mod program;
mod sys;

pub use maps::ProgramCounts;
pub(super) use maps::{
    QUEUES_MAX, RULES_BYTES, Rules, counters_bytes, cpus, read_counts, read_unwatched,
};
pub(super) use program::{Descriptors, assemble};
#[cfg(test)]
pub(super) use sys::test_run;
pub(super) use sys::{
    LoadOptions, MapKind, attach, create_map, detach, freeze, load, program_by_id, program_info,
    update,
};
