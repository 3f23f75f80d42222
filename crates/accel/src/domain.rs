//! The parameter `domain` of blocks, and the devices of this computer.

use crate::OffloadSettings;
use crate::block::{ResultItem, OffloadBlock, OnHost};
use crate::choose::{DomainChoice, Side, choose};
use crate::device::{Accelerator, AcceleratorError};
use crate::kernel::Kernel;
use millstream_flow::registry::{BlockType, Parameters};
use millstream_flow::{Block, BlockError};
use millstream_ring::Lock;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Where a block runs.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
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
static CHOICES: Lock<Vec<DomainChoice>> = Lock::new(Vec::new());

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
    let found = FOUND.get_or_init(|| search().map_err(|error| error.to_string()));
    match found {
        Ok(devices) if !devices.is_empty() => Ok(devices),
        Ok(_) => Err(missing("no driver shows one".into())),
        Err(reason) => Err(missing(reason.clone())),
    }
}

/// Returns what blocks with `domain = "auto"` chose since the last call.
#[must_use]
pub fn choices() -> Vec<DomainChoice> {
    std::mem::take(&mut CHOICES.lock())
}

/// Declares the parameters of a block that can run on a device.
#[must_use]
pub fn declare(block_type: BlockType) -> BlockType {
    block_type
        .choice("domain", &["cpu", "gpu", "auto"], "where it runs; auto: by measurement")
        .optional("batch", 65_536i64, "gpu: samples in a batch")
        .optional("stall_ms", 20.0, "gpu: milliseconds without an answer until the CPU takes over")
        .optional("check_every", 0i64, "gpu: one batch in so many is checked by the CPU; 0: none")
}

/// Makes a block of a kernel, by the parameters that [`declare`] declares. `on_cpu` makes the CPU's
/// form.
///
/// # Errors
/// A parameter is wrong, or `domain = "gpu"` and no device can do this.
pub fn make<O: ResultItem>(
    parameters: &Parameters,
    kernel: Kernel,
    on_cpu: impl FnOnce(Kernel) -> Box<dyn Block>,
) -> Result<Box<dyn Block>, BlockError> {
    let batch = parameters.count::<usize>("batch", 1)?;
    let mut settings = OffloadSettings::for_batches(batch, &kernel);
    settings.check_every = parameters.count("check_every", 0)?;
    let stall = parameters.number("stall_ms");
    if !(0.1..=60_000.0).contains(&stall) {
        return Err(parameters.wrong("stall_ms", "0.1 to 60000 milliseconds"));
    }
    settings.stall_after = Duration::from_secs_f64(stall / 1e3);
    let domain = match parameters.text("domain") {
        "gpu" => Domain::Gpu,
        "auto" => Domain::Auto,
        _ => Domain::Cpu,
    };
    place::<O>(domain, kernel, settings, on_cpu)
}

fn place<O: ResultItem>(
    domain: Domain,
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
    // A device that cannot do this leaves it to the CPU.
    let Ok((choice, opened)) = choose(&kernel, &**device, settings, None) else {
        return Ok(on_cpu(kernel));
    };
    let side = choice.side;
    CHOICES.lock().push(choice);
    Ok(match side {
        Side::Host => on_cpu(kernel),
        Side::Device => Box::new(OffloadBlock::<O>::with(kernel, opened, settings)),
    })
}

/// Returns the CPU's form of a kernel as a block.
#[must_use]
pub fn on_host<O: ResultItem>(kernel: Kernel) -> Box<dyn Block> {
    Box::new(OnHost::<O>::new(kernel))
}
