//! Measures a kernel on the CPU and on a device, and chooses.

use crate::device::{AcceleratorError, Lost, Opened, Session};
use crate::host::HostKernel;
use crate::kernel::{Kernel, KernelShape};
use crate::{Accelerator, OffloadSettings};
use millstream_cpu::usage::process_cpu_time;
use millstream_dsp::Sample;
use millstream_dsp::noise::Noise;
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The cost of one sample of the input.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SampleCost {
    /// Time, where samples come as fast as they are taken.
    pub ns: f64,
    /// CPU time of all threads of this process, a software device's among them.
    pub cpu_ns: f64,
}

/// Where a kernel runs.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Side {
    /// On the CPU.
    Host,
    /// On the device.
    Device,
}

/// Both costs, and what follows from them.
#[derive(Clone, Debug)]
pub struct DomainChoice {
    /// The kernel in words.
    pub kernel: String,
    /// The device's name.
    pub device: String,
    /// On the CPU.
    pub host: SampleCost,
    /// On the device, with the copies there and back.
    pub on_device: SampleCost,
    /// The side that was chosen.
    pub side: Side,
}

/// A side that reaches a rate with this margin holds it.
const MARGIN: f64 = 1.25;

/// One turn of a side; each side has [`TURNS`] of them, by turns, so that a change of the
/// machine's speed meets both.
const TURN: Duration = Duration::from_millis(15);
const TURNS: usize = 3;

/// Chooses between two costs. At a given rate (samples per second) a side that does not hold it is
/// out; of two that do, the one that takes less CPU time is better. Without a rate, and where
/// neither holds it, the faster one is better.
#[must_use]
pub fn better(host: SampleCost, device: SampleCost, rate: Option<f64>) -> Side {
    let holds = |cost: SampleCost| rate.map(|rate| cost.ns * rate * MARGIN <= 1e9);
    let (host_cost, device_cost) = match (holds(host), holds(device)) {
        (Some(true), Some(false)) => return Side::Host,
        (Some(false), Some(true)) => return Side::Device,
        (Some(true), Some(true)) => (host.cpu_ns, device.cpu_ns),
        _ => (host.ns, device.ns),
    };
    if device_cost < host_cost { Side::Device } else { Side::Host }
}

/// Measures both sides; returns the choice and the device, prepared.
///
/// # Errors
/// See [`Accelerator::open`].
pub fn choose(
    kernel: &Kernel,
    device: &dyn Accelerator,
    settings: OffloadSettings,
    rate: Option<f64>,
) -> Result<(DomainChoice, Opened), AcceleratorError> {
    let mut opened = device.open(kernel, settings.slots, settings.frames)?;
    let frames = settings.frames_at(kernel, rate);
    let (mut host, mut device_costs) = (Vec::new(), Vec::new());
    for _ in 0..TURNS {
        host.push(on_host(kernel, TURN));
        device_costs.push(on_device(&mut opened, kernel, frames, TURN)?);
    }
    let (host, on_device) = (median(&host), median(&device_costs));
    let side = better(host, on_device, rate);
    let names = (kernel.to_string(), device.name());
    Ok((DomainChoice { kernel: names.0, device: names.1, host, on_device, side }, opened))
}

/// Returns the medians of both numbers.
#[must_use]
pub fn median(costs: &[SampleCost]) -> SampleCost {
    let of = |value: fn(&SampleCost) -> f64| {
        millstream_stats::median(&costs.iter().map(value).collect::<Vec<_>>())
    };
    SampleCost { ns: of(|cost| cost.ns), cpu_ns: of(|cost| cost.cpu_ns) }
}

/// Samples like those of a receiver: noise.
fn samples(count: usize) -> Vec<Sample> {
    let mut noise = Noise::new(1);
    (0..count).map(|_| noise.gaussian_pair() * 0.1).collect()
}

/// Measures a kernel on the CPU, with the copies that a block makes.
#[must_use]
pub fn on_host(kernel: &Kernel, measured: Duration) -> SampleCost {
    let KernelShape { words, samples: frame, .. } = kernel.shape();
    // As the block `OnHost` does.
    let mut host = HostKernel::in_pieces(kernel);
    let frames = host.piece();
    let fresh = samples(kernel.shape().window(frames));
    let (mut window, mut out) = (fresh.clone(), vec![0.0; frames * words]);
    meter(measured, || {
        window.copy_from_slice(&fresh);
        host.compute(&window, &mut out);
        std::hint::black_box(&mut out);
        frames * frame
    })
}

/// Measures a kernel on a device: windows are filled, batches cross, results are copied.
///
/// # Errors
/// The device is lost, or a batch takes more than ten seconds.
pub fn on_device(
    opened: &mut Opened,
    kernel: &Kernel,
    frames: usize,
    measured: Duration,
) -> Result<SampleCost, Lost> {
    let shape = kernel.shape();
    let fresh = samples(shape.window(frames));
    let mut out = vec![0.0; frames * shape.words];
    let mut flight = Flight { opened, busy: VecDeque::new(), fresh: &fresh, frames };
    // The first batches pay for what a driver does once.
    for _ in 0..2 {
        flight.launch()?;
        flight.land(&mut out)?;
    }
    while flight.launch()? {}
    let mut lost = None;
    let cost = meter(measured, || {
        let landed = flight.land(&mut out).and_then(|()| flight.launch());
        lost = landed.err().or(lost.take());
        // A device that is lost ends the measurement by an endless number of samples.
        if lost.is_some() { usize::MAX } else { frames * shape.samples }
    });
    while lost.is_none() && !flight.busy.is_empty() {
        flight.land(&mut out)?;
    }
    lost.map_or(Ok(cost), Err)
}

/// Returns the time of a batch among those that follow each other without a pause through all
/// slots, for a while. The same samples go again and again and results are not read, so this is
/// what the device can do, and not what a block gets.
///
/// # Errors
/// The device is lost, or a batch takes more than a minute.
pub fn batch_time(opened: &mut Opened, frames: usize, span: Duration) -> Result<Duration, Lost> {
    let Opened { session, windows, .. } = opened;
    let fresh = samples(4096);
    for window in windows.iter_mut().filter_map(Arc::get_mut) {
        // Memory that was never written is one page of zeros, and is read faster than any other.
        let window: &mut [Sample] = window;
        window.iter_mut().zip(fresh.iter().cycle()).for_each(|(sample, fresh)| *sample = *fresh);
    }
    let slots = windows.len();
    let (begun, mut submitted, mut landed) = (Instant::now(), 0, 0);
    loop {
        let is_over = landed >= 2 * slots && begun.elapsed() >= span;
        if !is_over && submitted - landed < slots {
            let slot = submitted % slots;
            session.submit(slot, &windows[slot], frames)?;
            submitted += 1;
        } else if landed < submitted {
            let slot = landed % slots;
            wait(&mut **session, slot, Duration::from_secs(60), std::thread::yield_now)?;
            session.release(slot);
            landed += 1;
        } else {
            return Ok(begun.elapsed() / landed.max(1) as u32);
        }
    }
}

/// Waits until a batch is ready.
fn wait(
    session: &mut dyn Session,
    slot: usize,
    patience: Duration,
    pause: impl Fn(),
) -> Result<(), Lost> {
    let begun = Instant::now();
    while !session.poll(slot)? {
        if begun.elapsed() > patience {
            return Err(Lost(format!("a batch took more than {} s", patience.as_secs())));
        }
        pause();
    }
    Ok(())
}

struct Flight<'a> {
    opened: &'a mut Opened,
    busy: VecDeque<usize>,
    fresh: &'a [Sample],
    frames: usize,
}

impl Flight<'_> {
    /// Starts a batch in a free slot; returns whether there was one.
    fn launch(&mut self) -> Result<bool, Lost> {
        let Opened { session, windows, .. } = &mut *self.opened;
        let free = (0..windows.len()).find(|slot| !self.busy.contains(slot));
        let Some(slot) = free else { return Ok(false) };
        if let Some(window) = Arc::get_mut(&mut windows[slot]) {
            window[..self.fresh.len()].copy_from_slice(self.fresh);
        }
        session.submit(slot, &windows[slot], self.frames)?;
        self.busy.push_back(slot);
        Ok(true)
    }

    /// Waits for the oldest batch and copies its results.
    fn land(&mut self, out: &mut [f32]) -> Result<(), Lost> {
        let Some(slot) = self.busy.pop_front() else { return Ok(()) };
        let session = &mut self.opened.session;
        let pause = || std::thread::sleep(Duration::from_micros(20));
        wait(&mut **session, slot, Duration::from_secs(10), pause)?;
        out.copy_from_slice(session.results(slot));
        std::hint::black_box(out);
        session.release(slot);
        Ok(())
    }
}

/// Runs `step` for a while; it returns the samples of each run.
fn meter(measured: Duration, mut step: impl FnMut() -> usize) -> SampleCost {
    let (begun, cpu, mut count) = (Instant::now(), process_cpu_time(), 0usize);
    while begun.elapsed() < measured && count < usize::MAX {
        count = count.saturating_add(step());
    }
    let (wall, cpu) = (begun.elapsed(), process_cpu_time().saturating_sub(cpu));
    let of = |time: Duration| time.as_nanos() as f64 / count.max(1) as f64;
    SampleCost { ns: of(wall), cpu_ns: of(cpu) }
}

impl fmt::Display for DomainChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kernel, device, host, on_device, side } = self;
        let side = match side {
            Side::Host => "the CPU",
            Side::Device => device,
        };
        let (host, on) = (host.ns, on_device.ns);
        write!(f, "{kernel}: {host:.2} ns a sample on the CPU, {on:.2} on {device}; runs on {side}")
    }
}
