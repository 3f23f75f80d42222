//! The rate of copies: what no kernel can exceed.

use super::Gpu;
use super::prepare::Prepared;
use crate::wgsl::Way;
use millstream_accel::{AcceleratorError, KernelShape};
use millstream_dsp::Sample;
use std::time::Duration;

/// How fast bytes go from this computer to the device and back: through the memory of a session,
/// by three batches at the same time, without a kernel.
#[derive(Clone, Copy, Debug)]
pub struct CopyRate {
    /// Bytes of a batch, which go both ways.
    pub bytes: usize,
    /// The best time for a batch.
    pub time: Duration,
}

impl CopyRate {
    /// Returns the bytes in a second in each direction.
    #[must_use]
    pub fn bytes_per_second(&self) -> f64 {
        self.bytes as f64 / self.time.as_secs_f64()
    }
}

/// Batches at the same time.
const SLOTS: u32 = 3;
/// Rounds of which the best counts.
const ROUNDS: usize = 10;

impl Gpu {
    /// Measures the rate of copies by batches of so many bytes of samples.
    ///
    /// # Errors
    /// A batch is larger than the device allows, or the device is lost.
    pub fn copy_rate(&self, bytes: usize) -> Result<CopyRate, AcceleratorError> {
        let shape = KernelShape { history: 0, samples: 1, words: 2 };
        let frames = (bytes / size_of::<Sample>()).max(1);
        let way = Way { name: "a copy".into(), constants: vec![], scratch: 0, steps: vec![] };
        let mut prepared = Prepared::new(self, &"a copy", shape, way, SLOTS as usize, frames)?;
        let mut best = Duration::MAX;
        for _ in 0..ROUNDS.div_ceil(3) {
            best = best.min(prepared.measure()?);
        }
        Ok(CopyRate { bytes: frames * size_of::<Sample>(), time: best / SLOTS })
    }
}
