//! `radio_rx` and `radio_tx` of graph files.

use std::time::Duration;

use millstream_flow::blocks::RehearsedBlock;
use millstream_flow::registry::{BlockDeclaration, BlockType, ParameterKind, Parameters, Registry};
use millstream_flow::{Block, BlockError};
use num_complex::Complex32;

use super::rehearsal::RehearsedSink;
use super::settings::{StreamSwitch, TunableOutputs, set_exact_rate};
use super::{RadioSink, RadioSource, StartSettings, TransmitStart};
use crate::graph::StreamDirection;
use crate::tx::TX_CHANNELS_MAX;
use crate::{Device, DeviceArgs, RadioError, RxArgs, TuneRequest, TxArgs};

/// Adds `radio_rx` and `radio_tx` to the block types of graph files.
pub fn register(registry: &mut Registry) {
    let rx =
        BlockType::declare("radio_rx", "Receives the samples of one channel of a networked radio.")
            .required("args", ParameterKind::Text, "the device: addr=IPV4[,rpc_port=N][,link=LINK]")
            .required("rate_hz", ParameterKind::Number, "sample rate, Hz")
            .optional("channel", 0i64, "receive channel, from 0")
            .optional("samples", 0i64, "number of samples to receive; 0: without end")
            .incidental("samples");
    registry.register(front_end(rx).live(rehearse_receiving, receive));
    let tx = BlockType::declare("radio_tx", "Transmits samples on channels of a networked radio.")
        .required("args", ParameterKind::Text, "the device: addr=IPV4[,rpc_port=N][,link=LINK]")
        .required("rate_hz", ParameterKind::Number, "sample rate, Hz")
        .optional("channels", "0", "transmit channels; of several, each has its input: in0, in1")
        .optional("scale", 1.0, "factor for every sample; full scale is 1")
        .optional("lead_s", 0.0, "seconds from the first sample here to its start; 0: at once")
        .optional("at_ticks", -1i64, "device time of the first sample, ticks; -1: as lead_s says")
        .incidental("lead_s")
        .incidental("at_ticks");
    registry.register(front_end(tx).live(rehearse, transmit));
}

/// Adds what both types have.
fn front_end(block_type: BlockDeclaration) -> BlockDeclaration {
    block_type
        .optional("freq_hz", 0.0, "centre frequency, Hz; 0 leaves the radio as it is")
        .optional("lo_offset_hz", 0.0, "frequency of the local oscillator minus freq_hz, Hz")
        .optional("gain_db", -1.0, "gain, dB, in the radio's steps; -1 leaves the radio as it is")
        .optional("antenna", "", "antenna; empty leaves the radio as it is")
        .optional("bandwidth_hz", 0.0, "analogue bandwidth, Hz; 0 leaves the radio as it is")
        .incidental("args")
        .incidental("freq_hz")
        .incidental("lo_offset_hz")
        .incidental("gain_db")
        .incidental("antenna")
        .incidental("bandwidth_hz")
        .example("args = \"addr=192.168.10.2\"\nrate_hz = 10e6")
}

fn receive(parameters: &Parameters) -> Result<Box<dyn Block>, BlockError> {
    let args: DeviceArgs = parameters.text("args").parse()?;
    let (channel, samples) = received(parameters)?;
    let mut device = Device::open(args)?;
    set_exact_rate(&mut device, parameters.number("rate_hz"))?;
    let settings = set_front_end(&mut device, StreamDirection::Rx, channel, parameters)?;
    let stream = device.rx_stream(RxArgs::new(channel))?;
    let speed = device.other_clock_speed()?;
    let source = RadioSource::<Complex32>::new(device, stream, samples).0;
    Ok(Box::new(source.tunable(channel).with_settings(settings).with_clock_speed(speed)))
}

/// Returns the channel, and the number of samples unless there is no end.
fn received(parameters: &Parameters) -> Result<(usize, Option<u64>), BlockError> {
    let channel = usize::try_from(parameters.integer("channel"))
        .map_err(|_| parameters.wrong("channel", "0 or more"))?;
    let samples = u64::try_from(parameters.integer("samples"))
        .map_err(|_| parameters.wrong("samples", "0 or more"))?;
    Ok((channel, Some(samples).filter(|samples| *samples > 0)))
}

/// Makes a source of zeros at the radio's rate, which opens no radio.
fn rehearse_receiving(parameters: &Parameters) -> Result<Box<dyn Block>, BlockError> {
    let _: DeviceArgs = parameters.text("args").parse()?;
    let (channel, samples) = received(parameters)?;
    let source = RehearsedBlock::<Complex32>::source().at_rate(parameters.number("rate_hz"));
    let stops = StreamSwitch { may_stop: true, ..StreamSwitch::default() };
    let messages = TunableOutputs::one(channel).messages().into_iter().chain(stops.messages());
    Ok(Box::new(source.with_messages(messages.collect()).ending_after(samples)))
}

fn transmit(parameters: &Parameters) -> Result<Box<dyn Block>, BlockError> {
    let args: DeviceArgs = parameters.text("args").parse()?;
    let (channels, start) = (channels(parameters)?, start(parameters)?);
    let scale = parameters.number("scale");
    let wide = |channel: &usize| {
        let args = TxArgs::new(*channel);
        args.with_scale(args.scale * scale as f32)
    };
    let all: Vec<TxArgs> = channels.iter().map(wide).collect();
    let mut device = Device::open(args)?;
    set_exact_rate(&mut device, parameters.number("rate_hz"))?;
    for &channel in &channels {
        set_front_end(&mut device, StreamDirection::Tx, channel, parameters)?;
    }
    Ok(match all[..] {
        [only] => {
            let stream = device.tx_stream(only)?;
            Box::new(RadioSink::<Complex32>::new(device, stream, start))
        }
        _ => {
            let group = device.tx_group(&all)?;
            Box::new(RadioSink::<Complex32>::group(device, group, start)?)
        }
    })
}

/// Makes a sink that converts the samples and sends nothing.
fn rehearse(parameters: &Parameters) -> Result<Box<dyn Block>, BlockError> {
    Ok(Box::new(RehearsedSink::<Complex32>::new(channels(parameters)?.len())))
}

fn channels(parameters: &Parameters) -> Result<Vec<usize>, BlockError> {
    let wrong = || parameters.wrong("channels", "channels with commas between them: 0,1");
    let all: Result<Vec<usize>, _> =
        parameters.text("channels").split(',').map(|channel| channel.trim().parse()).collect();
    let all = all.map_err(|_| wrong())?;
    let twice = all.iter().enumerate().any(|(index, channel)| all[..index].contains(channel));
    if twice || all.len() > TX_CHANNELS_MAX { Err(wrong()) } else { Ok(all) }
}

fn start(parameters: &Parameters) -> Result<TransmitStart, BlockError> {
    let (lead_s, at_ticks) = (parameters.number("lead_s"), parameters.integer("at_ticks"));
    let lead = Duration::try_from_secs_f64(lead_s)
        .map_err(|_| parameters.wrong("lead_s", "seconds, 0 or more"))?;
    Ok(match u64::try_from(at_ticks) {
        Ok(ticks) => TransmitStart::At(ticks),
        Err(_) if at_ticks != -1 => {
            return Err(parameters.wrong("at_ticks", "0 or more, or -1"));
        }
        Err(_) if lead.is_zero() => TransmitStart::AtOnce,
        Err(_) => TransmitStart::After(lead),
    })
}

/// Sets what the parameters name; the rest stays as it is. Returns what was set.
fn set_front_end(
    device: &mut Device,
    direction: StreamDirection,
    channel: usize,
    parameters: &Parameters,
) -> Result<StartSettings, RadioError> {
    let mut set = StartSettings::default();
    let (freq_hz, gain_db) = (parameters.number("freq_hz"), parameters.number("gain_db"));
    let (bandwidth_hz, antenna) = (parameters.number("bandwidth_hz"), parameters.text("antenna"));
    if freq_hz != 0.0 {
        let offset_hz = parameters.number("lo_offset_hz");
        let request = TuneRequest::new(freq_hz).with_lo_offset(offset_hz);
        set.freq_hz = Some(device.tune(direction, channel, request)?.freq_hz);
    }
    if !antenna.is_empty() {
        device.set_antenna(direction, channel, antenna)?;
        set.antenna = Some(antenna.to_owned());
    }
    if gain_db != -1.0 {
        set.gain_db = Some(device.set_gain(direction, channel, gain_db)?);
    }
    if bandwidth_hz != 0.0 {
        set.bandwidth_hz = Some(device.set_bandwidth(direction, channel, bandwidth_hz)?);
    }
    Ok(set)
}
