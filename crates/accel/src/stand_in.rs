//! A device made of a thread: with a set latency and bandwidth, and faults.

use crate::device::{Accelerator, AcceleratorError, Lost, Opened, SampleWindow, Session};
use crate::host::HostKernel;
use crate::kernel::{Kernel, KernelShape};
use millstream_dsp::Sample;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError, sync_channel};
use std::time::{Duration, Instant};

/// What a stand-in does wrong.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StandInFault {
    /// It does nothing for so long.
    Stall(Duration),
    /// It is lost.
    Lose,
    /// A result is wrong.
    Wrong,
}

/// A stand-in for a device.
///
/// It calculates with the CPU's form of the kernel, on a thread of its own. So its results are
/// right, and its times are at least those set here.
#[derive(Clone, Debug)]
pub struct StandIn {
    /// From the end of a batch's crossings to its results.
    pub latency: Duration,
    /// Bytes that cross in a second, both ways together.
    pub bytes_per_s: f64,
    /// Faults, each at the batch of this number; the first one is 0.
    pub faults: Vec<(u64, StandInFault)>,
}

impl Default for StandIn {
    fn default() -> Self {
        Self { latency: Duration::from_micros(200), bytes_per_s: 10e9, faults: Vec::new() }
    }
}

impl Accelerator for StandIn {
    fn name(&self) -> String {
        format!("stand-in ({:?}, {} GB/s)", self.latency, self.bytes_per_s / 1e9)
    }

    fn copy_rate(&self, _: usize) -> Option<f64> {
        Some(self.bytes_per_s / 2.0)
    }

    fn open(
        &self,
        kernel: &Kernel,
        slots: usize,
        frames: usize,
    ) -> Result<Opened, AcceleratorError> {
        let shape = kernel.shape();
        let windows = (0..slots).map(|_| Arc::new(SampleWindow::ordinary(shape.window(frames))));
        let (jobs, to_do) = sync_channel(slots);
        let (finished, done) = sync_channel(slots);
        let (stop, stopped) = sync_channel(0);
        let worker = Worker {
            device: self.clone(),
            kernel: HostKernel::new(kernel, frames),
            shape,
            stopped,
            batches: 0,
            crossed: Instant::now(),
        };
        let thread = std::thread::Builder::new().name("ms-stand-in".into());
        let thread = thread.spawn(move || worker.run(&to_do, &finished));
        thread.map_err(|error| Lost(format!("its thread does not start: {error}")))?;
        let results = (0..slots).map(|_| Some(vec![0.0; frames * shape.words])).collect();
        let session = StandInSession {
            jobs: Some(jobs),
            done,
            stop: Some(stop),
            results,
            frames: vec![0; slots],
            words: shape.words,
        };
        Ok(Opened {
            session: Box::new(session),
            windows: windows.collect(),
            way: "as the CPU does".into(),
        })
    }
}

struct Job {
    slot: usize,
    window: Arc<SampleWindow>,
    frames: usize,
    results: Vec<f32>,
}

struct StandInSession {
    jobs: Option<SyncSender<Job>>,
    done: Receiver<(usize, Vec<f32>)>,
    stop: Option<SyncSender<()>>,
    /// Absent while a batch is under way.
    results: Vec<Option<Vec<f32>>>,
    frames: Vec<usize>,
    words: usize,
}

impl Session for StandInSession {
    fn submit(
        &mut self,
        slot: usize,
        window: &Arc<SampleWindow>,
        frames: usize,
    ) -> Result<(), Lost> {
        let results = self.results[slot].take().expect("a slot is submitted when it is free");
        self.frames[slot] = frames;
        let job = Job { slot, window: window.clone(), frames, results };
        let jobs = self.jobs.as_ref().expect("open until the session is dropped");
        jobs.try_send(job).map_err(|_| lost())
    }

    fn poll(&mut self, slot: usize) -> Result<bool, Lost> {
        loop {
            match self.done.try_recv() {
                Ok((slot, results)) => self.results[slot] = Some(results),
                Err(TryRecvError::Empty) => return Ok(self.results[slot].is_some()),
                Err(TryRecvError::Disconnected) => return Err(lost()),
            }
        }
    }

    fn results(&self, slot: usize) -> &[f32] {
        let results = self.results[slot].as_ref().expect("read when the batch is ready");
        &results[..self.frames[slot] * self.words]
    }

    fn release(&mut self, _: usize) {}

    fn pinned_bytes(&self) -> u64 {
        0
    }
}

impl Drop for StandInSession {
    fn drop(&mut self) {
        // The thread sees the end of either channel, also during a stall, and ends by itself.
        (self.jobs, self.stop) = (None, None);
    }
}

fn lost() -> Lost {
    Lost("the stand-in was told to be lost".into())
}

struct Worker {
    device: StandIn,
    kernel: HostKernel,
    shape: KernelShape,
    stopped: Receiver<()>,
    batches: u64,
    /// When the last crossing ended.
    crossed: Instant,
}

impl Worker {
    fn run(mut self, jobs: &Receiver<Job>, done: &SyncSender<(usize, Vec<f32>)>) {
        while let Ok(Job { slot, window, frames, mut results }) = jobs.recv() {
            let samples = self.shape.window(frames);
            let out = &mut results[..frames * self.shape.words];
            let bytes = samples * size_of::<Sample>() + size_of_val(out);
            let crossing = Duration::from_secs_f64(bytes as f64 / self.device.bytes_per_s);
            self.crossed = self.crossed.max(Instant::now()) + crossing;
            self.kernel.compute(&window[..samples], out);
            drop(window);
            let number = self.batches;
            self.batches += 1;
            for (_, fault) in self.device.faults.iter().filter(|(batch, _)| *batch == number) {
                match fault {
                    StandInFault::Stall(stall) => self.crossed += *stall,
                    StandInFault::Lose => return,
                    StandInFault::Wrong => out[0] = 2.0 * out[0] + 1.0,
                }
            }
            let ready = self.crossed + self.device.latency;
            if !self.sleep_until(ready) || done.try_send((slot, results)).is_err() {
                return;
            }
        }
    }

    /// Returns whether the session still exists.
    fn sleep_until(&self, time: Instant) -> bool {
        let left = time.saturating_duration_since(Instant::now());
        self.stopped.recv_timeout(left) == Err(RecvTimeoutError::Timeout)
    }
}
