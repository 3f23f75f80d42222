//! Our XDP program, and the memory that it shares with us.

mod maps;
mod program;

pub use maps::ProgramCounts;
pub(super) use maps::{
    QUEUES_MAX, RULES_BYTES, Rules, counters_bytes, read_counts, read_unwatched,
};
#[cfg(test)]
pub(super) use millstream_host::bpf::test_run;
pub(super) use millstream_host::bpf::{
    LoadOptions, MapKind, ProgramPlace, attach, cpus, create_map, detach, freeze, load,
    program_by_id, program_info, update,
};
pub(super) use program::{Descriptors, assemble};
