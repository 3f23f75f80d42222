//! The parameter `domain` of blocks, and the devices of this computer.

use crate::OffloadSettings;
use crate::block::{OffloadBlock, OnHost, ResultItem};
use crate::choose::{Side, choose};
use crate::device::{Accelerator, AcceleratorError};
use crate::kernel::Kernel;
use millstream_flow::registry::BlockParameters;
use millstream_flow::{Block, BlockError};
use millstream_ring::Lock;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Where a block runs.
#[derive(BlockParameters, Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Domain {
    /// On the CPU.
    #[default]
    Cpu,
    /// On a GPU; without one it is an error.
    Gpu,
    /// Where a measurement at the start says; without a device on the CPU.
    Auto,
}

/// Searches for devices; returns why there are none.
pub type Search = fn() -> Result<Vec<Arc<dyn Accelerator>>, AcceleratorError>;

static SEARCH: OnceLock<Search> = OnceLock::new();
static FOUND: OnceLock<Result<Vec<Arc<dyn Accelerator>>, String>> = OnceLock::new();
static CHOICES: Lock<Vec<String>> = Lock::new(Vec::new());
/// What was measured, so that the same block built again is placed as before.
static MEASURED: Lock<Vec<(Question, Side)>> = Lock::new(Vec::new());

/// A choice: kernel in words, device, frames in a batch, sample rate.
type Question = (String, String, usize, u64);

/// Sets the search for devices. A program that has support for GPUs calls this once, before it
/// makes blocks; later calls change nothing.
pub fn register_devices(search: Search) {
    let _ = SEARCH.set(search);
}

/// Returns the devices of this computer, the fastest first. The first call searches for them.
///
/// # Errors
/// Why there are none.
pub fn devices() -> Result<&'static [Arc<dyn Accelerator>], AcceleratorError> {
    let missing = |reason: String| AcceleratorError::Missing { kind: "GPU", reason };
    let Some(search) = SEARCH.get() else {
        return Err(missing("this program was built without the feature `gpu`".into()));
    };
    let found = FOUND.get_or_init(|| search().map_err(AcceleratorError::reason));
    match found {
        Ok(devices) if !devices.is_empty() => Ok(devices),
        Ok(_) => Err(missing("no driver shows one".into())),
        Err(reason) => Err(missing(reason.clone())),
    }
}

/// Returns what blocks with `domain = "auto"` chose since the last call, in words.
#[must_use]
pub fn choices() -> Vec<String> {
    std::mem::take(&mut CHOICES.lock())
}

/// The parameters of a block that can run on a device.
#[derive(BlockParameters, Clone, Copy, Debug)]
pub struct OffloadParameters {
    /// where it runs; auto: by measurement
    pub domain: Domain,
    /// auto: samples a second of the stream; 0: as fast as possible
    #[parameter(least = 0)]
    pub stream_hz: Option<f64>,
    /// gpu: samples in a batch, unless a frame is longer
    #[parameter(default = 65_536, least = 1, most = SAMPLES_MAX)]
    pub batch: usize,
    /// gpu: milliseconds without an answer until the CPU takes over
    #[parameter(default = 20.0, least = 0.1, most = 60_000)]
    pub stall_ms: f64,
    /// gpu: one batch in so many is checked by the CPU; 0: none
    #[parameter(default = 0)]
    pub check_every: u64,
}

/// The most samples in a batch, unless a frame is longer.
const SAMPLES_MAX: usize = 1 << 24;

impl OffloadParameters {
    /// Makes a block of a kernel. `on_cpu` makes the CPU's form for `domain = "cpu"`, and where
    /// there is no device to choose.
    ///
    /// # Errors
    /// `domain = "gpu"` and no device can do this, or a batch is too large.
    pub fn make<O: ResultItem>(
        self,
        kernel: Kernel,
        on_cpu: impl FnOnce(Kernel) -> Box<dyn Block>,
    ) -> Result<Box<dyn Block>, BlockError> {
        let mut settings = OffloadSettings::for_batches(self.batch, &kernel);
        settings.check_every = self.check_every;
        settings.stall_after = Duration::from_secs_f64(self.stall_ms / 1e3);
        let (shape, frames) = (kernel.shape(), settings.frames);
        let largest = shape.window(frames).max(shape.words.saturating_mul(frames));
        if self.domain != Domain::Cpu && largest > 4 * SAMPLES_MAX {
            let text = format!(
                "{kernel}: a batch of {frames} frames has {largest} samples or results; at most \
                 {} are allowed. Use a smaller batch, or domain = \"cpu\"",
                4 * SAMPLES_MAX
            );
            return Err(text.into());
        }
        place::<O>(self.domain, self.stream_hz, kernel, settings, on_cpu)
    }
}

fn place<O: ResultItem>(
    domain: Domain,
    rate: Option<f64>,
    kernel: Kernel,
    settings: OffloadSettings,
    on_cpu: impl FnOnce(Kernel) -> Box<dyn Block>,
) -> Result<Box<dyn Block>, BlockError> {
    let device = match domain {
        Domain::Cpu => return Ok(on_cpu(kernel)),
        Domain::Gpu => &devices()?[0],
        Domain::Auto => match devices() {
            Ok(devices) => &devices[0],
            Err(_) => return Ok(on_cpu(kernel)),
        },
    };
    if domain == Domain::Gpu {
        return Ok(Box::new(OffloadBlock::<O>::new(kernel, &**device, settings)?));
    }
    let rate_bits = rate.unwrap_or(0.0).to_bits();
    let question = (kernel.to_string(), device.name(), settings.frames, rate_bits);
    let known = MEASURED.lock().iter().find(|(known, _)| *known == question).map(|(_, side)| *side);
    let side = match known {
        Some(side) => side,
        None => match choose(&kernel, &**device, settings, rate) {
            Ok((choice, _)) => {
                CHOICES.lock().push(choice.to_string());
                MEASURED.lock().push((question, choice.side));
                choice.side
            }
            Err(error) => {
                CHOICES.lock().push(format!("{kernel} runs on the CPU: {error}"));
                Side::Host
            }
        },
    };
    Ok(match side {
        // The form that was measured.
        Side::Host => on_host::<O>(kernel),
        Side::Device => Box::new(OffloadBlock::<O>::new(kernel, &**device, settings)?),
    })
}

/// Returns the CPU's form of a kernel as a block.
#[must_use]
pub fn on_host<O: ResultItem>(kernel: Kernel) -> Box<dyn Block> {
    Box::new(OnHost::<O>::new(kernel))
}
