//! The default batch size.

use millstream_cpu::Topology;
use std::path::Path;
use std::sync::OnceLock;

/// Returns a third of the smallest L1 data cache, rounded to a power of two: a block reads one
/// batch and writes another, and needs some cache itself. The default for a plan without
/// `batch_bytes`.
#[must_use]
pub fn default_batch_bytes() -> usize {
    /// For a machine whose caches are not known.
    const USUAL: usize = 16 << 10;
    static BYTES: OnceLock<usize> = OnceLock::new();
    *BYTES.get_or_init(|| {
        let Ok(topology) = Topology::read(Path::new("/")) else { return USUAL };
        let l1 = topology.cores.iter().filter_map(|core| core.cache(1)).map(|c| c.size_bytes).min();
        l1.map_or(USUAL, |bytes| batch_of_l1(usize::try_from(bytes).unwrap_or(USUAL)))
    })
}

fn batch_of_l1(bytes: usize) -> usize {
    let third = (bytes / 3).max(4096);
    1 << third.ilog2()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_batches_and_some_room_fit_the_cache() {
        let kib = |n: usize| batch_of_l1(n << 10) >> 10;
        assert_eq!((kib(48), kib(32), kib(64), kib(128)), (16, 8, 16, 32));
        assert_eq!(kib(0), 4, "a machine that says nothing sensible");
    }
}
