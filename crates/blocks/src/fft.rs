//! Spectra, frame by frame.

use crate::Sample;
use crate::common::transform_ns;
use crate::taps::{WindowName, WindowShape, narrow};
use millstream_flow::BlockFacts;
use millstream_flow::registry::BlockParameters;
use millstream_flow::{Process, Through};
use rustfft::{Fft, FftDirection, FftPlanner};
use std::sync::Arc;

/// The longest frame.
pub(crate) const SIZE_MAX: usize = 1 << 20;

/// A planned transform with its window and its memory.
pub(crate) struct FftFrame {
    fft: Arc<dyn Fft<f32>>,
    window: Vec<f32>,
    scratch: Vec<Sample>,
}

impl FftFrame {
    pub(crate) fn new(direction: FftDirection, window: Vec<f32>) -> Self {
        let fft = FftPlanner::new().plan_fft(window.len(), direction);
        let scratch = vec![Sample::default(); fft.get_inplace_scratch_len()];
        Self { fft, window, scratch }
    }

    pub(crate) fn len(&self) -> usize {
        self.window.len()
    }

    /// Transforms a windowed frame.
    pub(crate) fn transform(&mut self, input: &[Sample], out: &mut [Sample]) {
        for ((to, from), weight) in out.iter_mut().zip(input).zip(&self.window) {
            *to = from * weight;
        }
        self.fft.process_with_scratch(out, &mut self.scratch);
    }
}

impl std::fmt::Debug for FftFrame {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Frame").field("len", &self.len()).finish()
    }
}

/// Transforms frames of `size` items into frames of the same size: `X[k] = Σₙ w[n] x[n] exp(∓j 2π k
/// n / size)`, without a factor. `shift` puts frequency zero in the middle: it rotates the result
/// of a forward transform, and the input of a backward one. The window applies to forward
/// transforms.
#[derive(Debug)]
pub struct Transform {
    frame: FftFrame,
    turned: Vec<Sample>,
    forward: bool,
    shift: bool,
}

impl Transform {
    /// Creates a forward transform with this window and its length.
    ///
    /// # Panics
    /// If the window is empty.
    #[must_use]
    pub fn forward(window: Vec<f32>, shift: bool) -> Self {
        Self::new(FftDirection::Forward, window, shift)
    }

    /// Creates a backward transform of `size` items.
    ///
    /// # Panics
    /// If the size is zero.
    #[must_use]
    pub fn backward(size: usize, shift: bool) -> Self {
        Self::new(FftDirection::Inverse, vec![1.0; size], shift)
    }

    fn new(direction: FftDirection, window: Vec<f32>, shift: bool) -> Self {
        assert!(!window.is_empty(), "a transform of nothing");
        let turned = vec![Sample::default(); window.len()];
        let forward = direction == FftDirection::Forward;
        Self { frame: FftFrame::new(direction, window), turned, forward, shift }
    }
}

impl Process for Transform {
    type Input = Sample;
    type Output = Sample;

    fn process(&mut self, input: &[Sample], output: &mut [Sample]) -> (usize, usize) {
        let size = self.frame.len();
        let frames = (input.len() / size).min(output.len() / size);
        for (input, output) in input.chunks(size).zip(output.chunks_mut(size)).take(frames) {
            match (self.shift, self.forward) {
                (false, _) => self.frame.transform(input, output),
                (true, true) => {
                    self.frame.transform(input, output);
                    output.rotate_right(size / 2);
                }
                (true, false) => {
                    self.turned.copy_from_slice(input);
                    self.turned.rotate_left(size / 2);
                    self.frame.transform(&self.turned, output);
                }
            }
        }
        (frames * size, frames * size)
    }

    fn least(&self) -> (usize, usize) {
        (self.frame.len(), self.frame.len())
    }

    fn facts(&self, facts: &mut BlockFacts) {
        facts.holds(self.frame.len() as u64 - 1).ns_per_item(transform_ns(self.frame.len()));
    }
}

/// Fourier transform of frames; drops an incomplete last frame.
#[derive(BlockParameters)]
#[block(fft, pure, example = "size = 1024\nwindow = \"hann\"")]
struct FftParameters {
    /// samples in a frame
    #[parameter(least = 1, most = SIZE_MAX)]
    size: usize,
    /// backward: without the factor 1/size
    direction: Direction,
    /// true: frequency zero is in the middle of the frame
    #[parameter(default = false)]
    shift: bool,
    /// forward: window over each frame (periodic)
    window: WindowName,
    #[parameter(flatten)]
    shape: WindowShape,
}

#[derive(BlockParameters)]
enum Direction {
    Forward,
    Backward,
}

impl FftParameters {
    fn make(self) -> Through<Transform> {
        Through::new(match self.direction {
            Direction::Backward => Transform::backward(self.size, self.shift),
            Direction::Forward => {
                let window = self.window.of(self.shape).periodic(self.size);
                Transform::forward(narrow(&window), self.shift)
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_flow::Mock;
    use std::f64::consts::TAU;

    fn run(transform: Transform, input: &[Sample]) -> Vec<Sample> {
        let mut mock = Mock::new(Through::new(transform));
        mock.feed("in", input);
        mock.end("in");
        mock.run().unwrap();
        assert!(mock.is_finished());
        mock.take("out")
    }

    #[test]
    fn frames_follow_the_sum_of_the_definition() {
        let size = 60;
        let x: Vec<Sample> =
            (0..130).map(|n| Sample::new((n as f32).sin(), (0.3 * n as f32).cos())).collect();
        let window: Vec<f32> = (0..size).map(|n| 0.5 + n as f32 / 60.0).collect();
        let out = run(Transform::forward(window.clone(), true), &x);
        assert_eq!(out.len(), 2 * size, "the last ten are no frame");
        for (i, y) in out.iter().enumerate() {
            let (frame, k) = (i / size, i % size + size / 2);
            let mut sum = [0.0; 2];
            for n in 0..size {
                let (sin, cos) = (-TAU * (k * n) as f64 / size as f64).sin_cos();
                let (x, w) = (x[frame * size + n], f64::from(window[n]));
                sum[0] += w * (f64::from(x.re) * cos - f64::from(x.im) * sin);
                sum[1] += w * (f64::from(x.re) * sin + f64::from(x.im) * cos);
            }
            assert!((f64::from(y.re) - sum[0]).hypot(f64::from(y.im) - sum[1]) < 1e-4, "{i}");
        }
    }

    #[test]
    fn back_and_forth_is_the_frame_times_its_size() {
        for (size, shift) in [(64, true), (63, true), (64, false)] {
            let x: Vec<Sample> = (0..size).map(|n| Sample::new(n as f32, 1.0)).collect();
            let there = run(Transform::forward(vec![1.0; size], shift), &x);
            let back = run(Transform::backward(size, shift), &there);
            let close = |(x, y): (&Sample, &Sample)| (y / size as f32 - x).norm() < 1e-3;
            assert!(x.iter().zip(&back).all(close), "{size} {shift}");
        }
    }
}
