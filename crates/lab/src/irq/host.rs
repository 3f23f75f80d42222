//! The host's side: a driver's thread and a user's thread.

use std::fs::File;
use std::io::{self, Read, Write};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::thread;
use std::time::{Duration, Instant};

use millstream_cpu::sched::{self, Class, ClassError};
use millstream_cpu::thread::{PinError, name_current_thread, pin_current_thread};
use millstream_cpu::usage::thread_cpu_time;
use rustix::event::{EventfdFlags, eventfd};

use super::attach::{AttachedDevice, DevicePlace};
use super::board::{SharedBoard, command};
use super::clock::Calibration;
use super::stages::{Stamps, analyse};
use super::{Interrupts, IrqSpec};
use millstream_cpu::alarm::now_ns;
use millstream_measure::Observed;
use millstream_measure::record::Stage;

/// The device must answer, or begin, within this.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);
/// Interval at which a wait checks whether to end.
const TICK: Duration = Duration::from_millis(20);

/// The results of all blocks.
#[derive(Debug, Clone)]
pub struct IrqSamples {
    /// From the edge to the read.
    pub observed: Observed,
    /// The parts of the way.
    pub stages: Vec<Stage>,
    /// Sum of all latencies, nanoseconds, which the stages must equal.
    pub total_ns: u64,
    /// Conversions without room, or without a driver in time.
    pub overruns: u64,
    /// Samples that differ from those that the device wrote.
    pub wrong_samples: u64,
    /// Negative parts.
    pub negative: u64,
    /// Error bound of the clocks' relation, nanoseconds.
    pub clock_bound_ns: f64,
    /// Error of the clocks' relation, nanoseconds; only an imitation on this host reports it.
    pub clock_error_ns: Option<u64>,
    /// CPU time of driver and user per block, nanoseconds.
    pub cpu_ns_per_block: f64,
    /// Duration, seconds.
    pub seconds: f64,
    /// A real device and its trigger; `None` for an imitation.
    pub device: Option<String>,
    /// The first raw values of a real device, by channel.
    pub values: Vec<(String, i64)>,
}

/// The reason why the measurement failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IrqError {
    /// A thread is not on its CPU.
    #[error(transparent)]
    Pin(#[from] PinError),
    /// A thread does not have its scheduling class.
    #[error(transparent)]
    Class(#[from] ClassError),
    /// Shared memory, interrupts or the device's process.
    #[error("the imitated converter failed: {0}")]
    Device(#[from] io::Error),
    /// There is no device behind VFIO.
    #[error(transparent)]
    Vfio(#[from] crate::vfio::VfioError),
    /// There is no device of the kernel's Industrial I/O, or it is not available.
    #[error(transparent)]
    Iio(#[from] millstream_host::iio::IioError),
    /// It does not respond as it should.
    #[error(
        "the imitated converter does not {0}: a program of higher priority uses its CPU; give \
         another --device-cpu"
    )]
    Silent(&'static str),
    /// No block came through.
    #[error("no block of samples was read, because the measurement ended too early")]
    Nothing,
}

/// Measures once, with the device at `source`.
///
/// # Errors
/// [`IrqError`].
pub fn measure(
    plan: &IrqSpec,
    source: &DevicePlace<'_>,
    ended: fn() -> bool,
) -> Result<IrqSamples, IrqError> {
    match source {
        DevicePlace::Process(start) => imitated(plan, AttachedDevice::start(plan, start)?, ended),
        DevicePlace::Vfio => imitated(plan, AttachedDevice::behind_vfio(plan)?, ended),
        DevicePlace::Iio(choice) => super::iio::measure(plan, choice, ended),
    }
}

fn imitated(
    plan: &IrqSpec,
    mut device: AttachedDevice,
    ended: fn() -> bool,
) -> Result<IrqSamples, IrqError> {
    let before = device.ask()?;
    let begun = Instant::now();
    let run = IrqRun { plan, board: &device.board, over: AtomicBool::new(false) };
    let seen = run.take(&device.line, ended)?;
    let seconds = begun.elapsed().as_secs_f64();
    device.board.command.store(command::CALIBRATE, Release);
    let after = device.ask()?;
    let calibration =
        Calibration::new(&before, &after).ok_or(IrqError::Silent("keep its clock going"))?;
    if seen.stamps.is_empty() {
        return Err(IrqError::Nothing);
    }
    let found = analyse(&seen.stamps, plan.interrupts, &calibration);
    Ok(IrqSamples {
        observed: found.observed,
        stages: found.stages,
        total_ns: found.total_ns,
        overruns: device.board.overruns.load(Relaxed),
        wrong_samples: seen.wrong,
        negative: found.negative,
        clock_bound_ns: calibration.error_ns,
        // A guest has another clock than the imitation.
        clock_error_ns: device.is_here().then_some(found.clock_error_ns),
        cpu_ns_per_block: seen.cpu_s * 1e9 / seen.stamps.len() as f64,
        seconds,
        device: None,
        values: Vec::new(),
    })
}

/// One measurement.
struct IrqRun<'r> {
    plan: &'r IrqSpec,
    board: &'r SharedBoard,
    over: AtomicBool,
}

/// The observations of the threads.
struct Seen {
    stamps: Vec<Stamps>,
    wrong: u64,
    cpu_s: f64,
}

/// The driver's times of a block.
#[derive(Default)]
struct Callbacks {
    first_ns: AtomicU64,
    last_ns: AtomicU64,
}

impl IrqRun<'_> {
    fn take(&self, line: &File, ended: fn() -> bool) -> Result<Seen, IrqError> {
        let wake: File = eventfd(0, EventfdFlags::CLOEXEC).map_err(io::Error::from)?.into();
        let callbacks: Vec<Callbacks> =
            (0..self.plan.count + 1).map(|_| Callbacks::default()).collect();
        thread::scope(|scope| {
            let (callbacks, wake) = (&callbacks, &wake);
            let driver = scope.spawn(move || self.guard(self.driver(line, wake, callbacks)));
            let user = scope.spawn(move || self.guard(self.user(wake, callbacks)));
            self.board.command.store(command::CONVERT, Release);
            let mut since_finished = None;
            while !(driver.is_finished() || user.is_finished()) {
                thread::sleep(TICK);
                if self.board.finished.load(Acquire) == 1 {
                    since_finished = since_finished.or_else(|| Some(Instant::now()));
                }
                let overdue = since_finished.is_some_and(|since| since.elapsed() > PATIENCE);
                if ended() || self.is_drained() || overdue || self.over.load(Relaxed) {
                    self.end(line, wake)?;
                }
            }
            self.end(line, wake)?;
            let joined = |result: thread::Result<_>| match result {
                Ok(value) => value,
                Err(panic) => std::panic::resume_unwind(panic),
            };
            let driver_s: f64 = joined(driver.join())?;
            let mut seen = user.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            seen.cpu_s += driver_s;
            Ok(seen)
        })
    }

    /// Whether the device has finished and every block has been read.
    fn is_drained(&self) -> bool {
        let missed = self.board.overruns.load(Relaxed);
        self.board.finished.load(Acquire) == 1
            && self.board.consumed.load(Acquire) + missed >= self.plan.count
    }

    /// Wakes both threads, so that they see the end.
    fn end(&self, mut line: &File, mut wake: &File) -> io::Result<()> {
        self.over.store(true, Release);
        line.write_all(&1u64.to_ne_bytes())?;
        wake.write_all(&1u64.to_ne_bytes())
    }

    fn guard<T>(&self, result: Result<T, IrqError>) -> Result<T, IrqError> {
        if result.is_err() {
            self.over.store(true, Release);
        }
        result
    }

    fn enter(&self, name: &str, above: u8) -> Result<(), IrqError> {
        pin_current_thread(self.plan.cpu)?;
        let _ = name_current_thread(name);
        let class = match self.plan.class {
            Class::Fifo(priority) => Class::Fifo((priority + above).min(99)),
            class => class,
        };
        Ok(sched::set_current_thread(class)?)
    }

    /// The thread that the interrupt wakes; returns its CPU time.
    fn driver(
        &self,
        mut line: &File,
        mut wake: &File,
        callbacks: &[Callbacks],
    ) -> Result<f64, IrqError> {
        self.enter("ms-irq-driver", 1)?;
        let cpu_before = thread_cpu_time();
        let two = self.plan.interrupts == Interrupts::Two;
        let (mut block, mut count) = (1, [0; 8]);
        loop {
            line.read_exact(&mut count)?;
            let now_ns = now_ns();
            if self.over.load(Acquire) {
                return Ok((thread_cpu_time() - cpu_before).as_secs_f64());
            }
            let mut ready = 0u64;
            // Complete blocks; several interrupts may have merged.
            while self.board.block(block).number.load(Acquire) == block
                && (block as usize) < callbacks.len()
            {
                callbacks[block as usize].last_ns.store(now_ns, Relaxed);
                block += 1;
                ready += 1;
            }
            if ready > 0 {
                wake.write_all(&ready.to_ne_bytes())?;
            }
            let is_converted = two && self.board.block(block).converted_ticks.load(Acquire) != 0;
            if let Some(callback) = callbacks.get(block as usize).filter(|_| is_converted) {
                callback.first_ns.store(now_ns, Relaxed);
                self.board.transfers.store(block, Release);
            }
        }
    }

    /// The thread that the driver wakes.
    fn user(&self, mut wake: &File, callbacks: &[Callbacks]) -> Result<Seen, IrqError> {
        let mut stamps = Vec::with_capacity(callbacks.len());
        self.enter("ms-irq-user", 0)?;
        let cpu_before = thread_cpu_time();
        let (mut next, mut wrong, mut count) = (1u64, 0, [0; 8]);
        loop {
            wake.read_exact(&mut count)?;
            let wake_ns = now_ns();
            if self.over.load(Acquire) {
                let cpu_s = (thread_cpu_time() - cpu_before).as_secs_f64();
                return Ok(Seen { stamps, wrong, cpu_s });
            }
            for _ in 0..u64::from_ne_bytes(count) {
                let block = self.board.block(next);
                let first = (next - 1) * block.samples.len() as u64;
                let right = |(place, sample): (u64, &AtomicU64)| sample.load(Relaxed) == place;
                wrong += u64::from(!(first..).zip(&block.samples).all(right));
                let of = &callbacks[next as usize];
                stamps.push(Stamps {
                    edge_ticks: block.edge_ticks.load(Relaxed),
                    converted_ticks: block.converted_ticks.load(Relaxed),
                    first_callback_ns: of.first_ns.load(Relaxed),
                    raised_ticks: block.raised_ticks.load(Relaxed),
                    callback_ns: of.last_ns.load(Relaxed),
                    wake_ns,
                    read_ns: now_ns(),
                    truth_ns: block.truth_ns.load(Relaxed),
                });
                self.board.consumed.store(next, Release);
                next += 1;
            }
        }
    }
}
