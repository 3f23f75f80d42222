//! The CPU in place of a device.

use super::slots::Slot;
use crate::host::HostKernel;
use crate::kernel::{Kernel, KernelShape};
use millstream_dsp::Sample;

/// Differences of results beside what samples and taps allow: rounding is well below.
const TOLERANCE: f64 = 1e-4;

/// The CPU's form of a kernel, for parts of a batch.
#[derive(Debug)]
pub(super) struct Fallback {
    kernel: HostKernel,
    shape: KernelShape,
    /// What full power of the samples can add up to in a result.
    gain: f64,
    /// Results of the piece `cached` of the oldest batch, for a kernel that calculates whole
    /// pieces.
    piece: Vec<f32>,
    cached: Option<usize>,
}

impl Fallback {
    pub(super) fn new(kernel: &Kernel) -> Self {
        let shape = kernel.shape();
        let norm = |squares: f64| squares.sqrt();
        let gain = match kernel {
            Kernel::Fir { taps, .. } => norm(taps.iter().map(|x| f64::from(x.norm_sqr())).sum()),
            Kernel::Channelizer { taps, .. } => {
                norm(taps.iter().map(|x| f64::from(*x) * f64::from(*x)).sum())
            }
            Kernel::PowerSpectrum { .. } => 0.0,
        };
        let host = HostKernel::in_pieces(kernel);
        let piece = if host.is_exact() { 0 } else { host.piece() * shape.words };
        Self { kernel: host, shape, gain, piece: vec![0.0; piece], cached: None }
    }

    /// Calculates results of a batch from frame `first` on.
    pub(super) fn give(&mut self, slot: &Slot, first: usize, to: &mut [f32]) {
        let KernelShape { samples, words, .. } = self.shape;
        let most =
            if self.piece.is_empty() { self.kernel.piece() } else { self.piece.len() / words };
        let (mut frame, end) = (first, first + to.len() / words);
        while frame < end {
            let begin = if self.piece.is_empty() { frame } else { frame / most * most };
            let count = (end - frame).min(begin + most - frame);
            let out = &mut to[(frame - first) * words..(frame - first + count) * words];
            let window = &slot.window()[begin * samples..];
            if self.piece.is_empty() {
                self.kernel.compute(window, out);
            } else {
                if self.cached != Some(begin) {
                    let frames = most.min(slot.frames() - begin);
                    self.kernel.compute(window, &mut self.piece[..frames * words]);
                    self.cached = Some(begin);
                }
                let from = (frame - begin) * words;
                out.copy_from_slice(&self.piece[from..from + out.len()]);
            }
            frame += count;
        }
    }

    /// Ends the oldest batch.
    pub(super) fn forget(&mut self) {
        self.cached = None;
    }

    /// Whether results of a device are those of the CPU, to rounding: its errors follow from the
    /// samples, also where they cancel in a result. Samples that are no numbers spread differently
    /// in each form, so a batch with such a sample proves nothing.
    pub(super) fn agree(&self, slot: &Slot, device: &[f32], host: &[f32]) -> bool {
        let samples = slot.filled();
        let power = |x: &Sample| f64::from(x.re) * f64::from(x.re) + f64::from(x.im).powi(2);
        let energy: f64 = samples.iter().map(power).sum();
        if !energy.is_finite() {
            return true;
        }
        let loudest = host.iter().map(|x| f64::from(x.abs())).fold(0.0, f64::max);
        let rms = (energy / samples.len().max(1) as f64).sqrt();
        let bound = (TOLERANCE * loudest.max(self.gain * rms)).max(1e-30);
        device.iter().zip(host).all(|(a, b)| (f64::from(*a) - f64::from(*b)).abs() <= bound)
    }
}
