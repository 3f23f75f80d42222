//! The machine: topology, affinity, scheduling, environment record.
