//! Every type of block that this program knows.

#[cfg(test)]
mod effects;

use millstream_atsc::blocks::Monitors;
use millstream_flow::Registry;
use millstream_publish::Publications;
use std::sync::OnceLock;

/// Registers the block types of the program around this command.
static MORE_BLOCKS: OnceLock<fn(&mut Registry)> = OnceLock::new();

/// Adds block types to [`registry`]; only the first call has an effect.
pub fn add_blocks(register: fn(&mut Registry)) {
    let _ = MORE_BLOCKS.set(register);
}

/// Tells blocks how to find devices, in programs with the feature `gpu` or `cuda`.
pub fn register_devices() {
    #[cfg(any(feature = "gpu", feature = "cuda"))]
    millstream_accel::register_devices(millstream_gpu::devices);
}

/// Every type of block that this program knows, and the monitors of its receivers.
pub fn registry() -> (Registry, Monitors) {
    let (registry, monitors, _) = registry_with_sinks();
    (registry, monitors)
}

/// Every type of block that this program knows, the monitors of its receivers, and the sinks that
/// publish.
pub fn registry_with_sinks() -> (Registry, Monitors, Publications) {
    register_devices();
    let mut registry = Registry::builtin();
    millstream_blocks::register(&mut registry);
    millstream_radio::block::register(&mut registry);
    let monitors = millstream_atsc::blocks::register(&mut registry);
    let publications = millstream_publish::register(&mut registry);
    if let Some(register) = MORE_BLOCKS.get() {
        register(&mut registry);
    }
    (registry, monitors, publications)
}
