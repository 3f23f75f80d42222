//! Blocks of a device that are no radio: sources and sinks of test data, and memory.
//!
//! ```no_run
//! use std::time::Duration;
//! use millstream_radio::{Device, DeviceArgs};
//! use millstream_radio::noc::{Replay, SigGen, GeneratorSignal};
//!
//! let device = Device::open("addr=192.168.10.2".parse::<DeviceArgs>()?)?;
//! let generator = SigGen::open(&device, 0)?;
//! let mut stream = device.block_receiver(generator.place())?;
//! generator.set(GeneratorSignal::Sine { cycles_per_sample: 0.1, amplitude: 0.5 })?;
//! generator.start(stream.samples_per_packet())?;
//! let mut samples = vec![[0i16; 2]; 10_000];
//! let received = stream.recv(&mut samples, Duration::from_secs(1))?;
//! generator.stop()?;
//! println!("{} samples", received.samples);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Their streams have no time and no commands: samples flow while the block runs, as fast as the
//! credit allows. Lost packets are counted, and that is all that can be known about them.

mod null;
mod receiver;
mod replay;
mod sender;
mod sig_gen;

pub use null::{NullCounters, NullSrcSink};
pub use receiver::{BlockCounters, BlockReceived, BlockReceiver};
pub use replay::Replay;
pub use sender::BlockSender;
pub use sig_gen::{GeneratorSignal, SigGen};

use crate::client_zero::{self, DeviceBlock};
use crate::control::Control;
use crate::graph::{BlockPort, StreamDirection};
use crate::{Device, RadioError};

/// Finds the block of a kind by its number among those of the kind, and resets it. `port` is the
/// port of it that will be used.
fn open(
    device: &Device,
    (noc_id, name): (u32, &'static str),
    number: usize,
    port: u8,
) -> Result<BlockPort, RadioError> {
    let mut blocks = device.blocks().blocks.iter().filter(|block| block.noc_id == noc_id);
    let block: DeviceBlock = *blocks.nth(number).ok_or_else(|| RadioError::Unusable {
        address: device.address(),
        reason: format!("it has no block {name}#{number}"),
    })?;
    check_port(device, &block, port)?;
    client_zero::reset(&**device.control(), &[block])?;
    Ok(BlockPort { block, port })
}

/// Checks that a block has an output or input of this number.
fn check_port(device: &Device, block: &DeviceBlock, port: u8) -> Result<(), RadioError> {
    if port < block.info.inputs.max(block.info.outputs) {
        return Ok(());
    }
    let name = device.blocks().name(block.index);
    let reason = format!("its block {name} has no port {port}");
    Err(RadioError::Unusable { address: device.address(), reason })
}

/// Writes a 64-bit value into two registers, the low word first.
fn write_pair(control: &Control, port: u16, address: u32, value: u64) -> Result<(), RadioError> {
    control.write(port, address, value as u32)?;
    control.write(port, address + 4, (value >> 32) as u32)
}

/// Reads a 64-bit value of two registers, the low word first.
fn read_pair(control: &Control, port: u16, address: u32) -> Result<u64, RadioError> {
    let low = control.read(port, address)?;
    Ok(u64::from(control.read(port, address + 4)?) << 32 | u64::from(low))
}

impl Device {
    /// Opens a stream from the output of a block that is wired to a stream endpoint.
    ///
    /// # Errors
    /// [`RadioError::Unusable`] for an output that is not; [`RadioError::Silent`] when the
    /// handshake fails.
    pub fn block_receiver(&self, place: BlockPort) -> Result<BlockReceiver, RadioError> {
        let (number, path) = self.block_path(StreamDirection::Rx, place)?;
        let port = self.block_port(number, path.frame_bytes)?;
        BlockReceiver::open(port, path)
    }

    /// Opens a stream to the input of a block that is wired to a stream endpoint.
    ///
    /// # Errors
    /// Those of [`Device::block_receiver`].
    pub fn block_sender(&self, place: BlockPort) -> Result<BlockSender, RadioError> {
        let (number, path) = self.block_path(StreamDirection::Tx, place)?;
        let port = self.block_port(number, path.frame_bytes)?;
        BlockSender::open(port, path)
    }
}
