//! A trace monitor of measuring threads of this process: explains the outliers that they report.

use super::recorder::{LEAD, Late, Recorder};
use super::trigger::OneShotTrigger;
use millstream_host::trace::TraceError;
use millstream_measure::explained::Explanation;
use std::fs::OpenOptions;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// The reporter of late answers of measuring threads. A report allocates nothing.
#[derive(Debug)]
pub struct LateReporter {
    threshold_ns: u64,
    trip: OneShotTrigger,
    caught: Mutex<Option<Late>>,
}

impl LateReporter {
    /// Whether an answer is an outlier.
    #[must_use]
    pub fn is_late(&self, late_ns: u64) -> bool {
        late_ns > self.threshold_ns
    }

    /// Reports an outlier. The first one stops the ring; a ring that cannot be stopped is explained
    /// from what it still holds.
    pub fn report(&self, late: Late) {
        if self.trip.pull().unwrap_or(true) {
            *self.caught.lock().unwrap_or_else(PoisonError::into_inner) = Some(late);
        }
    }

    fn take(&self) -> Option<Late> {
        self.caught.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// A ring of trace events, and its reader beside the measurement.
#[derive(Debug)]
pub struct TraceMonitor {
    recorder: Recorder,
    snare: Arc<LateReporter>,
    /// Outliers still to be explained.
    left: usize,
    state: State,
    found: Vec<(Late, Explanation)>,
}

#[derive(Debug)]
enum State {
    Resting,
    /// The ring runs, but does not reach back far enough yet.
    Filling(Instant),
    Armed,
}

impl TraceMonitor {
    /// Explains up to `most` answers later than `threshold_ns`, of threads whose names match
    /// `threads` (`ms-timer-*`). Records nothing yet.
    ///
    /// # Errors
    /// [`TraceError`].
    pub fn open(threads: &str, threshold_ns: u64, most: usize) -> Result<Self, TraceError> {
        let recorder = Recorder::open(threads)?;
        let (trip, caught) = (OneShotTrigger::default(), Mutex::default());
        let snare = Arc::new(LateReporter { threshold_ns, trip, caught });
        Ok(Self { recorder, snare, left: most, state: State::Resting, found: Vec::new() })
    }

    /// The reporter of the threads.
    #[must_use]
    pub fn snare(&self) -> Arc<LateReporter> {
        Arc::clone(&self.snare)
    }

    /// Does the pending work; a thread that may be slow calls it every few milliseconds.
    ///
    /// # Errors
    /// [`TraceError`].
    pub fn switch_buffers(&mut self) -> Result<(), TraceError> {
        match self.state {
            State::Resting if self.left > 0 => {
                self.recorder.start()?;
                self.state = State::Filling(Instant::now());
            }
            State::Filling(since) if since.elapsed() >= LEAD => {
                let path = self.recorder.switch();
                let switch = OpenOptions::new().write(true).open(&path);
                let switch = switch.map_err(|source| TraceError::File { path, source })?;
                self.snare.trip.arm(Some(switch));
                self.state = State::Armed;
            }
            State::Armed => self.look()?,
            State::Resting | State::Filling(_) => {}
        }
        Ok(())
    }

    fn look(&mut self) -> Result<(), TraceError> {
        let Some(late) = self.snare.take() else {
            self.recorder.look();
            return Ok(());
        };
        self.found.push((late, self.recorder.explain(&late)?));
        self.left -= 1;
        self.state = State::Resting;
        Ok(())
    }

    /// Stops watching until the next [`TraceMonitor::switch_buffers`], and returns all
    /// explanations.
    ///
    /// # Errors
    /// [`TraceError`].
    pub fn end(&mut self) -> Result<Vec<(Late, Explanation)>, TraceError> {
        self.snare.trip.disarm();
        self.recorder.stop()?;
        self.look()?;
        self.state = State::Resting;
        Ok(std::mem::take(&mut self.found))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn late(thread: i32) -> Late {
        let done_ns = millstream_cpu::alarm::now_ns();
        Late { thread, cpu: 0, deadline_ns: done_ns - 1_000_000, done_ns, works: false }
    }

    #[test]
    fn the_first_outlier_is_explained_and_so_many_in_all() {
        let mut guard = match TraceMonitor::open("ms-nobody", 1_000, 2) {
            Ok(guard) => guard,
            Err(error) => {
                eprintln!("skipped: {error}");
                return;
            }
        };
        let snare = guard.snare();
        assert!(snare.is_late(1_001) && !snare.is_late(1_000));
        let own = rustix::thread::gettid().as_raw_nonzero().get();
        for _ in 0..3 {
            snare.report(late(own));
            guard.switch_buffers().unwrap();
            std::thread::sleep(LEAD);
            guard.switch_buffers().unwrap();
            snare.report(late(own));
            snare.report(late(own + 1));
            guard.switch_buffers().unwrap();
        }
        let found = guard.end().unwrap();
        let threads: Vec<_> = found.iter().map(|(late, _)| late.thread).collect();
        assert_eq!(threads, [own, own], "neither those before it was armed nor a third");
        assert!(found.iter().all(|(_, why)| (why.late_us - 1000.0).abs() < 1.0));
        assert!(guard.end().unwrap().is_empty());
    }
}
