//! The CPU's form of each kernel.

use crate::kernel::{Kernel, KernelShape};
use millstream_dsp::channelizer::Channelizer;
use millstream_dsp::overlap_save::OverlapSave;
use millstream_dsp::resample::Resampler;
use millstream_dsp::{Sample, fir};
use rustfft::{Fft, FftPlanner};
use std::fmt;
use std::sync::Arc;

/// Samples in a piece that passes through the nearest caches.
const PIECE: usize = 4096;

/// A kernel on the CPU. Its results depend on the window alone.
#[derive(Debug)]
pub struct HostKernel {
    shape: KernelShape,
    form: Form,
}

#[derive(Debug)]
enum Form {
    /// Taps last first.
    Real(Vec<f32>),
    Strided {
        filter: Resampler<Sample>,
        /// The samples, behind as many zeros as the filter's rows are longer than the taps.
        padded: Vec<Sample>,
    },
    Long {
        filter: Box<OverlapSave>,
        decimation: usize,
    },
    Bank(Box<Channelizer>),
    Power(Power),
}

impl HostKernel {
    /// Prepares a kernel for at most `frames` frames in a call.
    #[must_use]
    pub fn new(kernel: &Kernel, frames: usize) -> Self {
        let shape = kernel.shape();
        let form = match kernel {
            Kernel::Fir { taps, decimation } => fir_form(taps, *decimation, shape, frames),
            Kernel::Channelizer { channels, hop, taps } => {
                Form::Bank(Box::new(Channelizer::new(*channels, *hop, taps)))
            }
            Kernel::PowerSpectrum { window, average } => Form::Power(Power::new(window, *average)),
        };
        Self { shape, form }
    }

    /// Prepares a kernel for [pieces](Self::piece).
    #[must_use]
    pub fn in_pieces(kernel: &Kernel) -> Self {
        Self::new(kernel, Self::new(kernel, 1).piece())
    }

    /// Returns the least number of frames that give the same bits wherever a call begins.
    pub(crate) fn least(&self) -> usize {
        if self.is_exact() { 1 } else { self.piece() }
    }

    /// Returns the number of frames that are best calculated together. A filter by transforms gives
    /// the same bits only for batches of as many frames that begin at the same place.
    #[must_use]
    pub fn piece(&self) -> usize {
        match &self.form {
            Form::Long { filter, decimation } => (filter.piece() / decimation).max(1),
            _ => (PIECE / self.shape.samples).max(1),
        }
    }

    /// Whether results are the same bits however frames are put together.
    pub(crate) fn is_exact(&self) -> bool {
        !matches!(self.form, Form::Long { .. })
    }

    /// Computes whole frames: `window` has the [samples](KernelShape::window) of as many frames as
    /// `out` has room for.
    ///
    /// # Panics
    /// If the lengths do not belong together, or are longer than what was prepared.
    pub fn compute(&mut self, window: &[Sample], out: &mut [f32]) {
        let KernelShape { history, words, .. } = self.shape;
        assert!(out.len() % words == 0, "results are whole frames");
        let frames = out.len() / words;
        assert!(window.len() >= self.shape.window(frames), "a batch has its history");
        let window = &window[..self.shape.window(frames)];
        match &mut self.form {
            Form::Real(taps) => {
                fir::correlate_complex(taps, window, bytemuck::cast_slice_mut(out));
            }
            Form::Strided { filter, padded } => {
                let pad = filter.window() - 1 - history;
                padded[pad..pad + window.len()].copy_from_slice(window);
                filter.at(&padded[..pad + window.len()], bytemuck::cast_slice_mut(out));
            }
            Form::Long { filter, decimation } => {
                filter.filter(window, *decimation, bytemuck::cast_slice_mut(out));
            }
            Form::Bank(bank) => bank.filter(window, bytemuck::cast_slice_mut(out)),
            Form::Power(power) => power.compute(window, out),
        }
    }
}

fn fir_form(taps: &[Sample], decimation: usize, shape: KernelShape, frames: usize) -> Form {
    let real = taps.iter().all(|tap| tap.im == 0.0);
    // Costs of a result that is kept, in multiply-adds of one float: measured on AVX2, where the
    // transforms of a piece cost as much as about 130 multiply-adds for each of its results.
    let sums = taps.len() * 2 * if real { 1 } else { 2 } * if decimation == 1 { 1 } else { 3 };
    let transforms = 260 * decimation;
    if sums > transforms {
        Form::Long { filter: Box::new(OverlapSave::new(taps)), decimation }
    } else if real && decimation == 1 {
        Form::Real(taps.iter().rev().map(|tap| tap.re).collect())
    } else {
        let filter = Resampler::with_complex_taps(taps, 1, decimation);
        let samples = filter.window() - 1 - shape.history + shape.window(frames);
        Form::Strided { filter, padded: vec![Sample::default(); samples] }
    }
}

struct Power {
    window: Vec<f32>,
    average: usize,
    scale: f32,
    fft: Arc<dyn Fft<f32>>,
    work: Vec<Sample>,
    scratch: Vec<Sample>,
}

impl Power {
    fn new(window: &[f32], average: usize) -> Self {
        let fft = FftPlanner::new().plan_fft_forward(window.len());
        let sum: f32 = window.iter().sum();
        Self {
            window: window.to_vec(),
            average,
            scale: 1.0 / (sum * sum * average as f32),
            work: vec![Sample::default(); window.len()],
            scratch: vec![Sample::default(); fft.get_inplace_scratch_len()],
            fft,
        }
    }

    fn compute(&mut self, samples: &[Sample], out: &mut [f32]) {
        let size = self.window.len();
        for (samples, out) in samples.chunks_exact(size * self.average).zip(out.chunks_mut(size)) {
            out.fill(0.0);
            for samples in samples.chunks_exact(size) {
                for ((to, from), weight) in self.work.iter_mut().zip(samples).zip(&self.window) {
                    *to = from * weight;
                }
                self.fft.process_with_scratch(&mut self.work, &mut self.scratch);
                for (sum, x) in out.iter_mut().zip(&self.work) {
                    *sum += x.norm_sqr();
                }
            }
            out.iter_mut().for_each(|sum| *sum *= self.scale);
            out.rotate_right(size / 2);
        }
    }
}

impl fmt::Debug for Power {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Power").field("size", &self.window.len()).finish_non_exhaustive()
    }
}
