//! What drivers share: sessions that close apart from their thread, and ways that are measured.

use crate::wgsl::Way;
use millstream_accel::choose::batch_time;
use millstream_accel::{AcceleratorError, KernelShape, Lost, Opened, SampleWindow, Session};
use millstream_dsp::Sample;
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// What a slot is used for.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Use {
    Free,
    Submitted,
    Ready,
}

/// A session around a driver's own, whose drop may wait; the drop of this one does not.
///
/// The driver's is called only so that a batch fits, and its slot is free, submitted or ready as it
/// should be.
pub struct ClosingSession<B: Session + 'static> {
    batches: Option<B>,
    shape: KernelShape,
    /// The most frames of a batch.
    frames: usize,
    slots: Vec<Use>,
    lost: Option<Lost>,
}

impl<B: Session + 'static> ClosingSession<B> {
    /// Makes a session of so many free slots, each for so many frames.
    pub fn new(batches: B, shape: KernelShape, slots: usize, frames: usize) -> Self {
        let slots = vec![Use::Free; slots];
        Self { batches: Some(batches), shape, frames, slots, lost: None }
    }

    /// Returns the driver's part. Only `drop` takes it away.
    pub fn batches(&mut self) -> &mut B {
        self.batches.as_mut().expect("a session has its device until it is dropped")
    }

    /// Remembers the first error: behind it no batch becomes ready.
    fn keep<T>(&mut self, result: Result<T, Lost>) -> Result<T, Lost> {
        result.map_err(|error| self.lost.get_or_insert(error).clone())
    }

    /// Why a batch cannot be submitted.
    fn refusal(&self, slot: usize, window: &SampleWindow, frames: usize) -> Option<String> {
        let Self { slots, shape, frames: most, .. } = self;
        if slots.get(slot) != Some(&Use::Free) {
            return Some("a slot was used that is not free".into());
        }
        if !(1..=*most).contains(&frames) || window.len() < shape.window(frames) {
            let samples = window.len();
            return Some(format!(
                "a batch of {frames} frames by {samples} samples, where at most {most} fit"
            ));
        }
        None
    }
}

impl<B: Session + 'static> Session for ClosingSession<B> {
    fn submit(
        &mut self,
        slot: usize,
        window: &Arc<SampleWindow>,
        frames: usize,
    ) -> Result<(), Lost> {
        if let Some(lost) = &self.lost {
            return Err(lost.clone());
        }
        let submitted = match self.refusal(slot, window, frames) {
            Some(reason) => Err(Lost(reason)),
            None => self.batches().submit(slot, window, frames),
        };
        self.keep(submitted)?;
        self.slots[slot] = Use::Submitted;
        Ok(())
    }

    fn poll(&mut self, slot: usize) -> Result<bool, Lost> {
        if let Some(lost) = &self.lost {
            return Err(lost.clone());
        }
        if self.slots[slot] == Use::Submitted {
            let polled = self.batches().poll(slot);
            if self.keep(polled)? {
                self.slots[slot] = Use::Ready;
            }
        }
        Ok(self.slots[slot] == Use::Ready)
    }

    fn results(&self, slot: usize) -> &[f32] {
        match &self.batches {
            Some(batches) if self.slots[slot] == Use::Ready => batches.results(slot),
            _ => &[],
        }
    }

    fn release(&mut self, slot: usize) {
        if self.slots[slot] == Use::Ready {
            self.batches().release(slot);
            self.slots[slot] = Use::Free;
        }
    }

    fn pinned_bytes(&self) -> u64 {
        self.batches.as_ref().map_or(0, Session::pinned_bytes)
    }
}

impl<B: Session + 'static> Drop for ClosingSession<B> {
    /// Closing waits for the device, also for batches of other sessions, so a thread does it.
    fn drop(&mut self) {
        let Some(batches) = self.batches.take() else { return };
        let mut threads = closing_threads();
        threads.retain(|thread| !thread.is_finished());
        // Without a thread the closure is dropped here, and this thread waits.
        let name = "ms-gpu-close".into();
        threads.extend(thread::Builder::new().name(name).spawn(move || drop(batches)));
        // Here drivers are loaded, so their own functions for the end run after this one.
        static ONCE: Once = Once::new();
        ONCE.call_once(|| {
            // SAFETY: the function does not panic. Where there is no memory for it nothing waits.
            let _refused = unsafe { libc::atexit(wait_for_closing) };
        });
    }
}

/// The threads that close sessions.
static CLOSING: Mutex<Vec<JoinHandle<()>>> = Mutex::new(Vec::new());

fn closing_threads() -> MutexGuard<'static, Vec<JoinHandle<()>>> {
    CLOSING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How long the end of a program waits for sessions that are closing.
const CLOSING_MAX: Duration = Duration::from_secs(5);

/// Waits at the end of the program: a driver that is taken down while a thread is in it ends the
/// program by a signal (`free(): invalid pointer`, on an H200).
extern "C" fn wait_for_closing() {
    let begun = Instant::now();
    let threads = std::mem::take(&mut *closing_threads());
    while begun.elapsed() < CLOSING_MAX && !threads.iter().all(JoinHandle::is_finished) {
        thread::sleep(Duration::from_millis(1));
    }
    for thread in threads.into_iter().filter(JoinHandle::is_finished) {
        // One that panicked is finished, too.
        let _panicked = thread.join();
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
        let time = if is_choice { times(&mut opened, frames)?[0] } else { Duration::ZERO };
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

/// Returns three times of a batch, the least first.
fn times(opened: &mut Opened, frames: usize) -> Result<[Duration; 3], Lost> {
    const SPAN: Duration = Duration::from_millis(10);
    let mut times = [Duration::ZERO; 3];
    for time in &mut times {
        *time = batch_time(opened, frames, SPAN)?;
    }
    times.sort_unstable();
    Ok(times)
}

/// Returns the bytes in a second that copies move in each direction, in batches of so many bytes:
/// the median of three measurements. `prepare` gets a shape and a way without a step, slots and
/// frames.
pub fn copy_rate(
    bytes: usize,
    prepare: impl FnOnce(KernelShape, Way, usize, usize) -> Result<Opened, AcceleratorError>,
) -> Option<f64> {
    const SLOTS: usize = 4;
    let shape = KernelShape { history: 0, samples: 1, words: 2 };
    let way = Way { name: "a copy".into(), constants: vec![], scratch: 0, steps: vec![] };
    let frames = (bytes / size_of::<Sample>()).max(1);
    let mut opened = prepare(shape, way, SLOTS, frames).ok()?;
    let time = times(&mut opened, frames).ok()?[1];
    Some((frames * size_of::<Sample>()) as f64 / time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;
    use std::process::Command;

    /// A driver that needs long to close, and then makes a file.
    struct Slow(PathBuf);

    impl Session for Slow {
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
    }

    impl Drop for Slow {
        fn drop(&mut self) {
            thread::sleep(Duration::from_millis(300));
            std::fs::write(&self.0, "closed").unwrap();
        }
    }

    fn session<B: Session + 'static>(batches: B) -> ClosingSession<B> {
        let shape = KernelShape { history: 0, samples: 1, words: 2 };
        ClosingSession::new(batches, shape, 2, 10)
    }

    /// The test runs itself in a second process, which ends while a session is closing.
    #[test]
    fn the_end_of_a_program_waits_for_a_session_that_is_closing() {
        const FILE: &str = "MILLSTREAM_TEST_CLOSED";
        if let Some(file) = std::env::var_os(FILE) {
            let begun = Instant::now();
            drop(session(Slow(file.into())));
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

    /// A driver that notes what it is asked for, and answers with what it was told.
    struct Noted {
        calls: Vec<&'static str>,
        answer: Result<bool, Lost>,
    }

    impl Session for Noted {
        fn submit(&mut self, _: usize, _: &Arc<SampleWindow>, _: usize) -> Result<(), Lost> {
            self.calls.push("submit");
            self.answer.clone().map(drop)
        }

        fn poll(&mut self, _: usize) -> Result<bool, Lost> {
            self.calls.push("poll");
            self.answer.clone()
        }

        fn results(&self, _: usize) -> &[f32] {
            &[1.0]
        }

        fn release(&mut self, _: usize) {
            self.calls.push("release");
        }

        fn pinned_bytes(&self) -> u64 {
            0
        }
    }

    /// Whatever a caller does, a driver gets only what it can take.
    #[test]
    fn a_driver_gets_no_call_out_of_turn() {
        let window = Arc::new(SampleWindow::ordinary(10));
        let mut one = session(Noted { calls: vec![], answer: Ok(false) });
        assert_eq!(one.poll(0), Ok(false));
        one.release(0);
        one.submit(0, &window, 10).unwrap();
        assert_eq!(one.poll(0), Ok(false));
        assert!(one.results(0).is_empty());
        one.release(0);
        one.batches().answer = Ok(true);
        assert_eq!(one.poll(0), Ok(true));
        assert_eq!(one.poll(0), Ok(true));
        assert_eq!(one.results(0), [1.0]);
        one.release(0);
        one.release(0);
        assert_eq!(one.batches().calls, ["submit", "poll", "poll", "release"]);
        assert!(one.results(0).is_empty());
    }

    #[test]
    fn a_batch_that_does_not_fit_ends_the_session() {
        for (slot, frames, samples) in [(0, 0, 10), (0, 11, 11), (0, 10, 9), (2, 1, 10)] {
            let window = Arc::new(SampleWindow::ordinary(samples));
            let mut one = session(Noted { calls: vec![], answer: Ok(true) });
            let error = one.submit(slot, &window, frames).unwrap_err();
            assert_eq!(one.poll(0), Err(error.clone()), "slot {slot}, {frames} frames");
            assert_eq!(one.submit(0, &window, 1), Err(error));
            assert!(one.batches().calls.is_empty());
        }
    }

    #[test]
    fn behind_an_error_no_batch_becomes_ready() {
        let window = Arc::new(SampleWindow::ordinary(10));
        let mut one = session(Noted { calls: vec![], answer: Ok(true) });
        one.submit(0, &window, 10).unwrap();
        let lost = Lost("gone".into());
        one.batches().answer = Err(lost.clone());
        assert_eq!(one.submit(1, &window, 10), Err(lost.clone()));
        one.batches().answer = Ok(true);
        assert_eq!(one.poll(0), Err(lost));
        assert!(one.results(0).is_empty());
    }
}
