//! Receive streams as flowgraph sources: `radio_rx` in graph files, and recordings.
//!
//! A source of N samples covers N samples of *time*: lost samples count too, and after an overrun
//! the device is started again without an end. So the device runs without an end, and the source
//! stops it when the number is reached.

mod group;
mod metrics;
mod one;
mod segments;

use std::time::Duration;

use millstream_flow::registry::{BlockType, ParameterKind, Parameters, Registry};
use millstream_flow::{Block, BlockError, Item};
use num_complex::Complex32;

use crate::graph::StreamDirection;
use crate::{
    Device, DeviceArgs, GroupMetadata, RadioError, RxArgs, RxError, RxGroup, RxMetadata,
    RxStreamer, TuneRequest,
};

pub use group::{CHANNELS_MAX, GroupReport, GroupSource};
pub use one::RadioSource;
pub use segments::{GapCause, LateStart, RecordingSegment};

/// The samples that are received at once when there is no space for them.
const SPILL_SAMPLES: usize = 4096;

/// An item that a receive stream can produce.
pub trait WireSample: Item {
    /// Receives into a slice of such items, see [`RxStreamer::recv`].
    ///
    /// # Errors
    /// Those of [`RxStreamer::recv`].
    fn recv(
        stream: &mut RxStreamer,
        out: &mut [Self],
        timeout: Duration,
    ) -> Result<RxMetadata, RxError>;

    /// Receives into a slice for each member, see [`RxGroup::recv`].
    ///
    /// # Errors
    /// Those of [`RxGroup::recv`].
    fn recv_group(
        group: &mut RxGroup,
        outs: &mut [&mut [Self]],
        timeout: Duration,
    ) -> Result<GroupMetadata, RxError>;
}

impl WireSample for Complex32 {
    fn recv(
        stream: &mut RxStreamer,
        out: &mut [Self],
        timeout: Duration,
    ) -> Result<RxMetadata, RxError> {
        stream.recv(out, timeout)
    }

    fn recv_group(
        group: &mut RxGroup,
        outs: &mut [&mut [Self]],
        timeout: Duration,
    ) -> Result<GroupMetadata, RxError> {
        group.recv(outs, timeout)
    }
}

impl WireSample for [i16; 2] {
    fn recv(
        stream: &mut RxStreamer,
        out: &mut [Self],
        timeout: Duration,
    ) -> Result<RxMetadata, RxError> {
        stream.recv_sc16(out, timeout)
    }

    fn recv_group(
        group: &mut RxGroup,
        outs: &mut [&mut [Self]],
        timeout: Duration,
    ) -> Result<GroupMetadata, RxError> {
        group.recv_sc16(outs, timeout)
    }
}

/// Adds `radio_rx` to the block types of graph files.
pub fn register(registry: &mut Registry) {
    registry.register(
        BlockType::new("radio_rx", "Receives the samples of one channel of a networked radio.")
            .required("args", ParameterKind::Text, "the device: addr=IPV4[,rpc_port=N][,link=LINK]")
            .required("rate_hz", ParameterKind::Number, "sample rate, Hz")
            .optional("channel", 0i64, "receive channel, from 0")
            .optional("samples", 0i64, "number of samples to receive; 0: without end")
            .optional("freq_hz", 0.0, "centre frequency, Hz; 0 leaves the radio as it is")
            .optional("lo_offset_hz", 0.0, "frequency of the local oscillator minus freq_hz, Hz")
            .optional("gain_db", -1.0, "gain, dB; below 0 leaves the radio as it is")
            .optional("antenna", "", "antenna; empty leaves the radio as it is")
            .optional("bandwidth_hz", 0.0, "analogue bandwidth, Hz; 0 leaves the radio as it is")
            .incidental("args")
            .incidental("samples")
            .incidental("freq_hz")
            .incidental("lo_offset_hz")
            .incidental("gain_db")
            .incidental("antenna")
            .incidental("bandwidth_hz")
            .paced()
            .outside(&["out: Complex<f32>"])
            .example("args = \"addr=192.168.10.2\"\nrate_hz = 10e6")
            .factory(open),
    );
}

fn open(parameters: &Parameters) -> Result<Box<dyn Block>, BlockError> {
    let args: DeviceArgs = parameters.text("args").parse()?;
    let channel = usize::try_from(parameters.integer("channel"))
        .map_err(|_| parameters.wrong("channel", "0 or more"))?;
    let samples = u64::try_from(parameters.integer("samples"))
        .map_err(|_| parameters.wrong("samples", "0 or more"))?;
    let mut device = Device::open(args)?;
    device.set_rate(parameters.number("rate_hz"))?;
    set_front_end(&mut device, channel, parameters)?;
    let stream = device.rx_stream(RxArgs::new(channel))?;
    let samples = Some(samples).filter(|samples| *samples > 0);
    Ok(Box::new(RadioSource::<Complex32>::new(device, stream, samples).0))
}

/// Sets what the parameters name; the rest stays as it is.
fn set_front_end(
    device: &mut Device,
    channel: usize,
    parameters: &Parameters,
) -> Result<(), RadioError> {
    let (freq_hz, gain_db) = (parameters.number("freq_hz"), parameters.number("gain_db"));
    let (bandwidth_hz, antenna) = (parameters.number("bandwidth_hz"), parameters.text("antenna"));
    if freq_hz != 0.0 {
        let offset_hz = parameters.number("lo_offset_hz");
        device.tune_rx(channel, TuneRequest::new(freq_hz).with_lo_offset(offset_hz))?;
    }
    if !antenna.is_empty() {
        device.set_antenna(StreamDirection::Rx, channel, antenna)?;
    }
    if gain_db >= 0.0 {
        device.set_gain(StreamDirection::Rx, channel, gain_db)?;
    }
    if bandwidth_hz != 0.0 {
        device.set_bandwidth(StreamDirection::Rx, channel, bandwidth_hz)?;
    }
    Ok(())
}
