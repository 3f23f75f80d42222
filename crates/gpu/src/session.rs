//! What drivers share: sessions that close apart from their thread, and ways that are measured.

use crate::wgsl::Way;
use millstream_accel::choose::batch_time;
use millstream_accel::{AcceleratorError, KernelShape, Lost, Opened, SampleWindow, Session};
use millstream_dsp::Sample;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// Batches in a driver's hands; see [`Session`]. A drop waits for the device.
pub trait Batches: Send + 'static {
    fn submit(
        &mut self,
        slot: usize,
        window: &Arc<SampleWindow>,
        frames: usize,
    ) -> Result<(), Lost>;
    fn poll(&mut self, slot: usize) -> Result<bool, Lost>;
    /// Results of a ready batch, none of another.
    fn results(&self, slot: usize) -> &[f32];
    fn release(&mut self, slot: usize);
    fn pinned_bytes(&self) -> u64;
    /// Whether a batch is on its way.
    fn is_busy(&self) -> bool;
}

/// A session whose drop does not wait.
pub struct ClosingSession<B: Batches>(Option<B>);

impl<B: Batches> ClosingSession<B> {
    pub const fn new(batches: B) -> Self {
        Self(Some(batches))
    }

    /// Returns the driver's part. Only `drop` takes it away.
    pub fn batches(&mut self) -> &mut B {
        self.0.as_mut().expect("a session has its device until it is dropped")
    }
}

impl<B: Batches> Session for ClosingSession<B> {
    fn submit(
        &mut self,
        slot: usize,
        window: &Arc<SampleWindow>,
        frames: usize,
    ) -> Result<(), Lost> {
        self.batches().submit(slot, window, frames)
    }

    fn poll(&mut self, slot: usize) -> Result<bool, Lost> {
        self.batches().poll(slot)
    }

    fn results(&self, slot: usize) -> &[f32] {
        self.0.as_ref().map_or(&[], |batches| batches.results(slot))
    }

    fn release(&mut self, slot: usize) {
        self.batches().release(slot);
    }

    fn pinned_bytes(&self) -> u64 {
        self.0.as_ref().map_or(0, Batches::pinned_bytes)
    }
}

impl<B: Batches> Drop for ClosingSession<B> {
    /// Closing waits for the device, so a thread of its own does it while a batch is on its way.
    fn drop(&mut self) {
        let Some(batches) = self.0.take() else { return };
        if batches.is_busy() {
            // Without a thread the closure is dropped here, and this thread waits.
            drop(thread::Builder::new().name("ms-gpu-close".into()).spawn(move || drop(batches)));
        }
    }
}

/// Prepares the device for each way to calculate a kernel, and returns the fastest.
///
/// # Errors
/// No way can be prepared, or the device is lost.
pub fn fastest(
    ways: Vec<Way>,
    frames: usize,
    mut prepare: impl FnMut(Way) -> Result<Opened, AcceleratorError>,
) -> Result<Opened, AcceleratorError> {
    let is_choice = ways.len() > 1;
    let mut best: Option<(Duration, Opened)> = None;
    let mut unfit = None;
    for way in ways {
        let mut opened = match prepare(way) {
            Ok(opened) => opened,
            Err(error @ AcceleratorError::Unfit { .. }) => {
                unfit = Some(error);
                continue;
            }
            Err(error) => return Err(error),
        };
        let time = if is_choice { least_time(&mut opened, frames)? } else { Duration::ZERO };
        if best.as_ref().is_none_or(|(least, _)| time < *least) {
            best = Some((time, opened));
        }
    }
    match (best, unfit) {
        (Some((_, opened)), _) => Ok(opened),
        (None, Some(error)) => Err(error),
        (None, None) => Err(Lost("there is no text for this kernel".into()).into()),
    }
}

/// Returns the least time of a batch in some measurements.
fn least_time(opened: &mut Opened, frames: usize) -> Result<Duration, Lost> {
    const SPAN: Duration = Duration::from_millis(10);
    (0..3).try_fold(Duration::MAX, |least, _| Ok(least.min(batch_time(opened, frames, SPAN)?)))
}

/// The kernel that only copies, for the rate of copies.
pub const COPY: KernelShape = KernelShape { history: 0, samples: 1, words: 2 };

/// Returns the way of [`COPY`], which has no step.
pub fn copy_way() -> Way {
    Way { name: "a copy".into(), constants: vec![], scratch: 0, steps: vec![] }
}

/// Batches that are copied at the same time.
pub const COPY_SLOTS: usize = 4;

/// Returns how many frames of [`COPY`] have so many bytes.
pub fn copy_frames(bytes: usize) -> usize {
    (bytes / size_of::<Sample>()).max(1)
}

/// Returns the bytes in a second that a session of [`COPY`] moves, in each direction.
///
/// # Errors
/// The device is lost.
pub fn copy_rate(opened: &mut Opened, frames: usize) -> Result<f64, Lost> {
    let time = least_time(opened, frames)?;
    Ok((frames * size_of::<Sample>()) as f64 / time.as_secs_f64())
}
