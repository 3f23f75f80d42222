//! Checks of a plan by itself.

use super::{Buffers, Plan, PlanError};
use millstream_cpu::CpuSet;

/// The largest ring, which holds seconds of the fastest streams.
pub(crate) const RING_BYTES_MAX: usize = 16 << 30;
/// The largest batch: a call that sees more has no cache for it.
pub(crate) const BATCH_BYTES_MAX: usize = 1 << 30;

impl Plan {
    /// Returns the partition of each of `blocks` blocks, if the plan mentions it; `position` gives
    /// the number of a block.
    ///
    /// # Errors
    /// [`PlanError`]: the plan mentions a block that `position` does not know, or one twice.
    pub fn partition_of_each(
        &self,
        blocks: usize,
        position: impl Fn(&str) -> Option<usize>,
    ) -> Result<Vec<Option<usize>>, PlanError> {
        let mut of_block: Vec<Option<usize>> = vec![None; blocks];
        for (index, partition) in self.partitions.iter().enumerate() {
            for block in &partition.blocks {
                let number = position(block).ok_or_else(|| PlanError::UnknownBlock {
                    partition: partition.name.clone(),
                    block: block.clone(),
                })?;
                if let Some(first) = of_block[number].replace(index) {
                    return Err(PlanError::BlockTwice {
                        block: block.clone(),
                        first: self.partitions[first].name.clone(),
                        second: partition.name.clone(),
                    });
                }
            }
        }
        Ok(of_block)
    }

    /// Checks names and CPUs of the partitions.
    ///
    /// # Errors
    /// [`PlanError`]: a name that a thread cannot have or that two partitions have, or a CPU that
    /// is not `allowed`.
    pub fn check_partitions(&self, allowed: &CpuSet) -> Result<(), PlanError> {
        for (index, partition) in self.partitions.iter().enumerate() {
            let name = &partition.name;
            if name.is_empty() || name.chars().any(char::is_control) {
                return Err(PlanError::PartitionName(name.clone()));
            }
            if self.partitions[..index].iter().any(|other| other.name == *name) {
                return Err(PlanError::DuplicatePartition(name.clone()));
            }
            if let Some(cpu) = partition.cpu.filter(|cpu| !allowed.contains(*cpu)) {
                let (partition, allowed) = (name.clone(), allowed.clone());
                return Err(PlanError::Cpu { partition, cpu, allowed });
            }
        }
        Ok(())
    }

    /// Checks the sizes before anything allocates them.
    pub(crate) fn check_sizes(&self) -> Result<(), PlanError> {
        let Buffers { inside_bytes, batch_bytes, between_bytes, outputs, .. } = &self.buffers;
        let outputs = outputs.iter().map(|(name, bytes)| (format!("outputs.{name}"), *bytes));
        let all = [
            ("inside_bytes", *inside_bytes, RING_BYTES_MAX),
            ("between_bytes", *between_bytes, RING_BYTES_MAX),
            ("batch_bytes", batch_bytes.unwrap_or(0), BATCH_BYTES_MAX),
        ];
        let all = all.map(|(name, bytes, most)| (name.to_owned(), bytes, most)).into_iter();
        let mut all = all.chain(outputs.map(|(name, bytes)| (name, bytes, RING_BYTES_MAX)));
        match all.find(|(_, bytes, most)| bytes > most) {
            Some((name, bytes, most)) => Err(PlanError::BufferSize { name, bytes, most }),
            None => Ok(()),
        }
    }
}
