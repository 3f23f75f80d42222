//! `radio_rx` and `radio_tx` of graph files.

use std::time::Duration;

use millstream_flow::BlockError;
use millstream_flow::blocks::RehearsedBlock;
use millstream_flow::registry::{BlockParameters, Registry, wrong};
use num_complex::Complex32;

use super::rehearsal::RehearsedSink;
use super::settings::{StreamSwitch, TunableOutputs, set_exact_rate};
use super::{RadioSink, RadioSource, StartSettings, TransmitStart};
use crate::graph::StreamDirection;
use crate::tx::TX_CHANNELS_MAX;
use crate::{Device, DeviceArgs, RadioError, RxArgs, TuneRequest, TxArgs};

/// Adds `radio_rx` and `radio_tx` to the block types of graph files.
pub fn register(registry: &mut Registry) {
    registry.register_crate(module_path!());
}

/// Receives the samples of one channel of a networked radio.
#[derive(BlockParameters)]
#[block(radio_rx, live, example = "args = \"addr=192.168.10.2\"\nrate_hz = 10e6")]
struct RxParameters {
    /// the device: addr=IPV4[,rpc_port=N][,link=LINK]
    #[parameter(incidental)]
    args: String,
    /// sample rate, Hz
    rate_hz: f64,
    /// receive channel, from 0
    #[parameter(default = 0)]
    channel: usize,
    /// number of samples to receive; 0: without end
    #[parameter(incidental)]
    samples: Option<u64>,
    #[parameter(flatten)]
    front_end: FrontEndParameters,
}

/// Transmits samples on channels of a networked radio.
#[derive(BlockParameters)]
#[block(radio_tx, live, example = "args = \"addr=192.168.10.2\"\nrate_hz = 10e6")]
struct TxParameters {
    /// the device: addr=IPV4[,rpc_port=N][,link=LINK]
    #[parameter(incidental)]
    args: String,
    /// sample rate, Hz
    rate_hz: f64,
    /// transmit channels; of several, each has its input: in0, in1
    #[parameter(default = "0")]
    channels: String,
    /// factor for every sample; full scale is 1
    #[parameter(default = 1.0)]
    scale: f32,
    /// seconds from the first sample here to its start; 0: at once
    #[parameter(default = 0.0, least = 0, most = 1e9, incidental)]
    lead_s: f64,
    /// device time of the first sample, ticks; -1: as lead_s says
    #[parameter(default = -1, least = 0, incidental)]
    at_ticks: i64,
    #[parameter(flatten)]
    front_end: FrontEndParameters,
}

/// What both types have.
#[derive(BlockParameters)]
struct FrontEndParameters {
    /// centre frequency, Hz; 0 leaves the radio as it is
    #[parameter(incidental)]
    freq_hz: Option<f64>,
    /// frequency of the local oscillator minus freq_hz, Hz
    #[parameter(default = 0.0, incidental)]
    lo_offset_hz: f64,
    /// gain, dB, in the radio's steps; -1 leaves the radio as it is
    #[parameter(default = -1.0, incidental)]
    gain_db: f64,
    /// antenna; empty leaves the radio as it is
    #[parameter(incidental)]
    antenna: Option<String>,
    /// analogue bandwidth, Hz; 0 leaves the radio as it is
    #[parameter(incidental)]
    bandwidth_hz: Option<f64>,
}

impl RxParameters {
    fn make(self) -> Result<RadioSource<Complex32>, BlockError> {
        let args: DeviceArgs = self.args.parse()?;
        let mut device = Device::open(args)?;
        set_exact_rate(&mut device, self.rate_hz)?;
        let settings = self.front_end.set(&mut device, StreamDirection::Rx, self.channel)?;
        let stream = device.rx_stream(RxArgs::new(self.channel))?;
        let speed = device.other_clock_speed()?;
        let source = RadioSource::<Complex32>::new(device, stream, self.samples).0;
        let places = vec![(0, self.channel)];
        Ok(source.tunable(places).with_settings(vec![settings]).with_clock_speed(speed))
    }

    /// Makes a source of zeros at the radio's rate, which opens no radio.
    fn rehearse(self) -> Result<RehearsedBlock<Complex32>, BlockError> {
        let _: DeviceArgs = self.args.parse()?;
        let source = RehearsedBlock::<Complex32>::source().at_rate(self.rate_hz);
        let stops = StreamSwitch { may_stop: true, ..StreamSwitch::default() };
        let tunable = TunableOutputs::new(vec![(0, self.channel)]).messages();
        let messages = tunable.into_iter().chain(stops.messages());
        Ok(source.with_messages(messages.collect()).ending_after(self.samples))
    }
}

impl TxParameters {
    fn make(self) -> Result<RadioSink<Complex32>, BlockError> {
        let args: DeviceArgs = self.args.parse()?;
        let (channels, start) = (self.channels()?, self.start());
        let wide = |channel: &usize| {
            let args = TxArgs::new(*channel);
            args.with_scale(args.scale * self.scale)
        };
        let all: Vec<TxArgs> = channels.iter().map(wide).collect();
        let mut device = Device::open(args)?;
        set_exact_rate(&mut device, self.rate_hz)?;
        for &channel in &channels {
            self.front_end.set(&mut device, StreamDirection::Tx, channel)?;
        }
        let stream = device.tx_group(&all)?;
        Ok(RadioSink::new(device, stream, start))
    }

    /// Makes a sink that converts the samples and sends nothing.
    fn rehearse(self) -> Result<RehearsedSink<Complex32>, BlockError> {
        Ok(RehearsedSink::new(self.channels()?.len()))
    }

    fn channels(&self) -> Result<Vec<usize>, BlockError> {
        let refused =
            || wrong("channels", &self.channels, "channels with commas between them: 0,1");
        let all: Result<Vec<usize>, _> =
            self.channels.split(',').map(|channel| channel.trim().parse()).collect();
        let all = all.map_err(|_| refused())?;
        let twice = all.iter().enumerate().any(|(index, channel)| all[..index].contains(channel));
        if twice || all.len() > TX_CHANNELS_MAX { Err(refused()) } else { Ok(all) }
    }

    fn start(&self) -> TransmitStart {
        match u64::try_from(self.at_ticks) {
            Ok(ticks) => TransmitStart::At(ticks),
            Err(_) if self.lead_s == 0.0 => TransmitStart::AtOnce,
            Err(_) => TransmitStart::After(Duration::from_secs_f64(self.lead_s)),
        }
    }
}

impl FrontEndParameters {
    /// Sets what the parameters name; the rest stays as it is. Returns what was set.
    fn set(
        &self,
        device: &mut Device,
        direction: StreamDirection,
        channel: usize,
    ) -> Result<StartSettings, RadioError> {
        let mut set = StartSettings::default();
        if let Some(freq_hz) = self.freq_hz {
            let request = TuneRequest::new(freq_hz).with_lo_offset(self.lo_offset_hz);
            set.freq_hz = Some(device.tune(direction, channel, request)?.freq_hz);
        }
        if let Some(antenna) = &self.antenna {
            device.set_antenna(direction, channel, antenna)?;
            set.antenna = Some(antenna.clone());
        }
        if self.gain_db != -1.0 {
            set.gain_db = Some(device.set_gain(direction, channel, self.gain_db)?);
        }
        if let Some(bandwidth_hz) = self.bandwidth_hz {
            set.bandwidth_hz = Some(device.set_bandwidth(direction, channel, bandwidth_hz)?);
        }
        Ok(set)
    }
}
