//! What drivers share: sessions that close apart from their thread, and ways that are measured.

use crate::wgsl::Way;
use millstream_accel::choose::batch_time;
use millstream_accel::{AcceleratorError, KernelShape, Lost, Opened, SampleWindow, Session};
use millstream_dsp::Sample;
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

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
            let closing = Closing::new();
            let close = move || {
                drop(batches);
                drop(closing);
            };
            // Without a thread the closure is dropped here, and this thread waits.
            drop(thread::Builder::new().name("ms-gpu-close".into()).spawn(close));
        }
    }
}

/// A session that a thread closes at the moment.
struct Closing;

static CLOSING: Mutex<usize> = Mutex::new(0);

fn closing() -> MutexGuard<'static, usize> {
    CLOSING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How long the end of a program waits for sessions that are closing.
const CLOSING_MAX: Duration = Duration::from_secs(5);

impl Closing {
    fn new() -> Self {
        *closing() += 1;
        // Here drivers are loaded, so their own functions for the end run after this one.
        static ONCE: Once = Once::new();
        ONCE.call_once(|| {
            // SAFETY: the function does not panic. Where there is no memory for it nothing waits.
            let _refused = unsafe { libc::atexit(wait_for_closing) };
        });
        Self
    }
}

impl Drop for Closing {
    fn drop(&mut self) {
        *closing() -= 1;
    }
}

/// Waits at the end of the program: a driver that is taken down while a thread is in it ends the
/// program by a signal (`free(): invalid pointer`, on an H200).
extern "C" fn wait_for_closing() {
    let begun = Instant::now();
    while *closing() > 0 && begun.elapsed() < CLOSING_MAX {
        thread::sleep(Duration::from_millis(1));
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

/// Returns the bytes in a second that a session of [`COPY`] moves, in each direction: the median of
/// three measurements.
///
/// # Errors
/// The device is lost.
pub fn copy_rate(opened: &mut Opened, frames: usize) -> Result<f64, Lost> {
    const SPAN: Duration = Duration::from_millis(10);
    let mut times = [Duration::ZERO; 3];
    for time in &mut times {
        *time = batch_time(opened, frames, SPAN)?;
    }
    times.sort_unstable();
    let time = times[1];
    Ok((frames * size_of::<Sample>()) as f64 / time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;
    use std::process::Command;

    /// A driver that needs long to close, and then makes a file.
    struct Slow(PathBuf);

    impl Batches for Slow {
        fn submit(&mut self, _: usize, _: &Arc<SampleWindow>, _: usize) -> Result<(), Lost> {
            Ok(())
        }

        fn poll(&mut self, _: usize) -> Result<bool, Lost> {
            Ok(false)
        }

        fn results(&self, _: usize) -> &[f32] {
            &[]
        }

        fn release(&mut self, _: usize) {}

        fn pinned_bytes(&self) -> u64 {
            0
        }

        fn is_busy(&self) -> bool {
            true
        }
    }

    impl Drop for Slow {
        fn drop(&mut self) {
            thread::sleep(Duration::from_millis(300));
            std::fs::write(&self.0, "closed").unwrap();
        }
    }

    /// The test runs itself in a second process, which ends while a session is closing.
    #[test]
    fn the_end_of_a_program_waits_for_a_session_that_is_closing() {
        const FILE: &str = "MILLSTREAM_TEST_CLOSED";
        if let Some(file) = std::env::var_os(FILE) {
            let begun = Instant::now();
            drop(ClosingSession::new(Slow(file.into())));
            assert!(begun.elapsed() < Duration::from_millis(250), "the drop waits");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("closed");
        let name = "session::tests::the_end_of_a_program_waits_for_a_session_that_is_closing";
        let mut child = Command::new(std::env::current_exe().unwrap());
        let ended = child.args(["--exact", name]).env(FILE, &file).status().unwrap();
        assert!(ended.success(), "{ended}");
        assert!(file.exists(), "the program ended before the session was closed");
    }
}
