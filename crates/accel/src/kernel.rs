//! What is calculated: [`Kernel`], and how its results depend on samples: [`KernelShape`].

use millstream_dsp::Sample;
use millstream_dsp::fir::group_delay;
use std::fmt;

/// A calculation whose results depend on the last samples only.
///
/// So a batch that begins with its [history](KernelShape::history) can be calculated anywhere,
/// whatever became of the batches before it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Kernel {
    /// `y[m] = Σₖ taps[k] · x[m · decimation - k]`: filters, and correlators, whose taps are the
    /// reference, conjugated and turned round.
    Fir {
        /// The taps, at least one.
        taps: Vec<Sample>,
        /// Samples for one result, at least one.
        decimation: usize,
    },
    /// A bank of filters at the frequencies `c / channels` (of the input's rate), moved to
    /// frequency zero: `y[h][c] = Σₙ taps[n] · x[h · hop - n] · exp(-j 2π c (h · hop - n) /
    /// channels)`. The results of one `h` stand together, in the order of `c`.
    Channelizer {
        /// The number of channels, at least two.
        channels: usize,
        /// Samples from one set of results to the next: divides `channels`.
        hop: usize,
        /// The filter of channel 0, at least one tap.
        taps: Vec<f32>,
    },
    /// The mean power over `average` frames of as many samples as the window has: `p[k] = Σ |X[k]|²
    /// / (average · (Σ w)²)`, frequency zero in the middle.
    PowerSpectrum {
        /// The window, at least one sample.
        window: Vec<f32>,
        /// Frames for one spectrum, at least one.
        average: usize,
    },
}

/// How results depend on samples.
///
/// A *frame* is the least number of samples after which the calculation begins anew.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct KernelShape {
    /// The number of samples before a frame on which its results depend, too.
    pub history: usize,
    /// Samples in a frame.
    pub samples: usize,
    /// Floating-point numbers in the results of a frame; a complex result is two.
    pub words: usize,
}

impl KernelShape {
    /// Returns the number of samples in a window of so many frames.
    #[must_use]
    pub const fn window(&self, frames: usize) -> usize {
        self.history + frames * self.samples
    }

    /// Returns the length of a window that ends with the frame in which `length` lies.
    pub(crate) const fn end_of_frame(&self, length: usize) -> usize {
        self.history + (length - self.history).next_multiple_of(self.samples)
    }
}

impl Kernel {
    /// Returns the shape.
    #[must_use]
    pub fn shape(&self) -> KernelShape {
        match self {
            Self::Fir { taps, decimation } => {
                KernelShape { history: taps.len() - 1, samples: *decimation, words: 2 }
            }
            Self::Channelizer { channels, hop, taps } => KernelShape {
                history: taps.len() - 1,
                samples: *channels,
                words: 2 * channels * (channels / hop),
            },
            Self::PowerSpectrum { window, average } => {
                KernelShape { history: 0, samples: window.len() * average, words: window.len() }
            }
        }
    }

    /// Returns by how many samples results are later than what went in: see
    /// [`BlockFacts`](millstream_flow::BlockFacts).
    #[must_use]
    pub fn delay(&self) -> f64 {
        match self {
            Self::Fir { taps, .. } => group_delay(taps.iter().map(Sample::norm_sqr)),
            Self::Channelizer { taps, .. } => group_delay(taps.iter().map(|tap| tap * tap)),
            Self::PowerSpectrum { .. } => 0.0,
        }
    }

    /// Returns whether a result is one number (a power) or two (a complex sample).
    #[must_use]
    pub const fn words_of_item(&self) -> usize {
        match self {
            Self::Fir { .. } | Self::Channelizer { .. } => 2,
            Self::PowerSpectrum { .. } => 1,
        }
    }
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fir { taps, decimation: 1 } => write!(f, "a filter of {} taps", taps.len()),
            Self::Fir { taps, decimation } => {
                write!(f, "a filter of {} taps that keeps one of {decimation} results", taps.len())
            }
            Self::Channelizer { channels, hop, taps } => {
                write!(f, "{channels} channels, hop {hop}, by {} taps", taps.len())
            }
            Self::PowerSpectrum { window, average } => {
                write!(f, "spectra of {} samples, averages of {average}", window.len())
            }
        }
    }
}
