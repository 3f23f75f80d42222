//! The work of a stage: one piece of code for the blocks and for the hand-written loop.

use crate::named::named;
use millstream_dsp::Sample;
use millstream_dsp::fir::{Filtered, Fir};
use millstream_dsp::scale::Scaled;
use millstream_flow::Item;
use millstream_flow::OneToOne;
use serde::Serialize;
use std::fmt;

/// Taps of the filter.
const TAPS: usize = 16;

/// The work of each stage of a graph.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum BlockKernel {
    /// Copies.
    Copy,
    /// Multiplies by a constant.
    Multiply,
    /// A filter with 16 real taps.
    Fir,
}

named!(
    BlockKernel,
    "a stage; the stages are",
    3,
    [(Copy, "copy"), (Multiply, "multiply"), (Fir, "fir")]
);

impl fmt::Display for BlockKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// An item of any kernel.
pub trait KernelItem: Item + Filtered + Scaled + Send {
    /// The factor of a stage: not 1, and large enough that a chain of stages does not end in
    /// denormal numbers, which are slow.
    const FACTOR: Self;
}

impl KernelItem for f32 {
    const FACTOR: Self = 1.001;
}

impl KernelItem for Sample {
    const FACTOR: Self = Sample::new(0.8, 0.6);
}

/// One stage.
#[derive(Debug)]
pub struct KernelBlock<T> {
    kernel: BlockKernel,
    fir: Fir<T>,
}

impl<T: KernelItem> KernelBlock<T> {
    /// Creates a stage with empty state.
    #[must_use]
    pub fn new(kernel: BlockKernel) -> Self {
        Self { kernel, fir: Fir::new(&[1.0 / TAPS as f32; TAPS]) }
    }
}

impl<T: KernelItem> OneToOne for KernelBlock<T> {
    type Input = T;
    type Output = T;

    fn run(&mut self, input: &[T], output: &mut [T]) {
        match self.kernel {
            BlockKernel::Copy => output.copy_from_slice(input),
            BlockKernel::Multiply => T::scale(T::FACTOR, input, output),
            BlockKernel::Fir => self.fir.process(input, output),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_do_what_they_are_called() {
        let run = |kernel| {
            let mut output = [0.0; 3];
            KernelBlock::<f32>::new(kernel).run(&[1.0, 2.0, 5.0], &mut output);
            output
        };
        assert_eq!(run(BlockKernel::Copy), [1.0, 2.0, 5.0]);
        assert_eq!(run(BlockKernel::Multiply), [1.001, 2.0 * 1.001, 5.0 * 1.001]);
        assert_eq!(run(BlockKernel::Fir), [1.0 / 16.0, 3.0 / 16.0, 8.0 / 16.0]);
    }

    #[test]
    fn every_kernel_has_a_name_that_means_it() {
        assert!(BlockKernel::ALL.into_iter().all(|kernel| kernel.name().parse() == Ok(kernel)));
        let error = "fft".parse::<BlockKernel>().unwrap_err();
        assert_eq!(error, "`fft` is not a stage; the stages are: copy, multiply, fir");
    }
}
