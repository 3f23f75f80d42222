//! Settings of the front end while a source runs, as messages.

use millstream_flow::{BlockError, MessageSpec, ParameterKind, ParameterValue};

use super::segments::TunedOutput;
use crate::graph::StreamDirection;
use crate::{Device, DeviceSet, RxArgs, RxError, StreamRate, TuneRequest};

/// Why a message cannot be obeyed while the device is opened again.
pub(super) const NOT_OPEN: &str = "the radio is not open now: try again later";

/// The messages of a source that may be tuned.
const MESSAGES: [MessageSpec; 2] = [
    MessageSpec::new("freq_hz", ParameterKind::Number, "centre frequency, Hz"),
    MessageSpec::new("gain_db", ParameterKind::Number, "gain, dB"),
];

/// The messages of a source that may be stopped, and the one that changes its rate.
const SWITCHES: [MessageSpec; 2] = [
    MessageSpec::new("stop", ParameterKind::Boolean, "receive nothing until a start"),
    MessageSpec::new("start", ParameterKind::Boolean, "go on after a stop"),
];
const RATE: MessageSpec = MessageSpec::new(
    "rate_hz",
    ParameterKind::Number,
    "sample rate, Hz; the radio's clock stays as it is",
);

/// What messages may do to the streams of a source.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct StreamSwitch {
    /// Whether they may stop and start them, and change their rate.
    pub may_stop: bool,
    pub may_change_rate: bool,
    /// Whether a message has stopped them.
    pub is_stopped: bool,
}

/// What a message wants of the streams of a source.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum StreamWish {
    /// To receive, or not to.
    Run(bool),
    /// Another rate, samples per second.
    Rate(f64),
}

impl StreamSwitch {
    pub fn messages(self) -> impl Iterator<Item = MessageSpec> {
        let stops = SWITCHES.into_iter().filter(move |_| self.may_stop);
        stops.chain(self.may_change_rate.then_some(RATE))
    }

    /// Returns what a message wants; `None` if it is about something else.
    pub fn read(self, name: &str, value: &ParameterValue) -> Option<StreamWish> {
        match (name, value) {
            ("start", ParameterValue::Boolean(value)) => Some(StreamWish::Run(*value)),
            ("stop", ParameterValue::Boolean(value)) => Some(StreamWish::Run(!*value)),
            ("rate_hz", ParameterValue::Number(rate_hz)) => Some(StreamWish::Rate(*rate_hz)),
            _ => None,
        }
    }
}

/// A rate that a channel does not have.
#[derive(Debug, thiserror::Error)]
#[error(
    "the radio has no rate of {wanted_hz} Hz at its clock of {clock_hz} Hz: the nearest is \
     {nearest_hz} Hz"
)]
struct OtherRate {
    wanted_hz: f64,
    clock_hz: f64,
    nearest_hz: f64,
}

/// Sets the rate of a channel for streams that are opened from now on, if it has just this rate;
/// otherwise it keeps `present`.
pub(super) fn choose_rate(
    device: &mut Device,
    channel: usize,
    wanted_hz: f64,
    present: StreamRate,
) -> Result<(), BlockError> {
    let taken = device.set_channel_rate(StreamDirection::Rx, channel, wanted_hz)?;
    let nearest_hz = taken.samples_hz();
    if (nearest_hz / wanted_hz - 1.0).abs() < 1e-9 {
        return Ok(());
    }
    device.set_channel_rate(StreamDirection::Rx, channel, present.samples_hz())?;
    Err(OtherRate { wanted_hz, clock_hz: taken.ticks_hz, nearest_hz }.into())
}

/// Sets the rate of several channels, as [`choose_rate`] does: of all, or of none.
pub(super) fn choose_rates(
    devices: &mut DeviceSet,
    channels: &[(usize, RxArgs)],
    wanted_hz: f64,
    present: StreamRate,
) -> Result<(), BlockError> {
    let mut choose = |wanted_hz| {
        channels.iter().try_for_each(|(device, args)| {
            let device = devices.devices_mut().get_mut(*device).ok_or(NOT_OPEN)?;
            choose_rate(device, args.channel, wanted_hz, present)
        })
    };
    let chosen = choose(wanted_hz);
    if chosen.is_err() {
        choose(present.samples_hz())?;
    }
    chosen
}

/// The messages of each output of a source of several channels.
macro_rules! of_outputs {
    ($($output:literal)*) => {
        [$([
            MessageSpec::new(
                concat!("freq_hz", $output),
                ParameterKind::Number,
                concat!("centre frequency of out", $output, ", Hz"),
            ),
            MessageSpec::new(
                concat!("gain_db", $output),
                ParameterKind::Number,
                concat!("gain of out", $output, ", dB"),
            ),
        ]),*]
    };
}

const OF_OUTPUTS: [[MessageSpec; 2]; super::group::CHANNELS_MAX] =
    of_outputs!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);

/// The device and the channel of each output whose front end messages set; none if none may.
#[derive(Clone, Debug, Default)]
pub(super) struct TunableOutputs(pub Vec<(usize, usize)>);

impl TunableOutputs {
    pub fn messages(&self) -> Vec<MessageSpec> {
        OF_OUTPUTS.iter().take(self.0.len()).flatten().copied().collect()
    }

    /// Sets what the message says, and returns the time from which on an output has another
    /// frequency, if it has. The samples wait in the sockets' queues meanwhile.
    pub fn set(
        &self,
        devices: Option<&mut DeviceSet>,
        name: &str,
        value: &ParameterValue,
    ) -> Result<Option<(u64, TunedOutput)>, BlockError> {
        let setting = name.trim_end_matches(|letter: char| letter.is_ascii_digit());
        let place = name[setting.len()..].parse().ok();
        let place = place.and_then(|output: usize| Some((output, *self.0.get(output)?)));
        let (output, (device, channel)) = place.ok_or("this is no setting of the radio")?;
        let devices = devices.ok_or(NOT_OPEN)?;
        let device = devices.devices_mut().get_mut(device);
        let tuned = TunableChannel(Some(channel)).set(device, setting, value)?;
        Ok(tuned.map(|(at, tuned)| (at, TunedOutput { output, ..tuned })))
    }
}

/// The channel whose front end the messages set; `None` if none may.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TunableChannel(pub Option<usize>);

impl TunableChannel {
    pub fn messages(self) -> Vec<MessageSpec> {
        self.0.map_or_else(Vec::new, |_| MESSAGES.to_vec())
    }

    /// Sets what the message says, and returns the time from which on the samples have another
    /// frequency, if they have. The samples wait in the socket's queue meanwhile.
    pub fn set(
        self,
        device: Option<&mut Device>,
        name: &str,
        value: &ParameterValue,
    ) -> Result<Option<(u64, TunedOutput)>, BlockError> {
        let (Some(channel), ParameterValue::Number(value)) = (self.0, value) else {
            return Err("this is no setting of the radio".into());
        };
        let device = device.ok_or(NOT_OPEN)?;
        match name {
            "freq_hz" => {
                let tuned = device.tune(StreamDirection::Rx, channel, TuneRequest::new(*value))?;
                let output = TunedOutput { output: 0, freq_hz: tuned.freq_hz };
                Ok(Some((device.time_ticks()?, output)))
            }
            _ => {
                device.set_gain(StreamDirection::Rx, channel, *value)?;
                Ok(None)
            }
        }
    }
}

/// Returns what was opened again for another rate. An error is told to the sender of the message,
/// and left in `failure` for the block, which cannot go on without it.
pub(super) fn opened_again<T>(
    opened: Result<T, RxError>,
    failure: &mut Option<BlockError>,
) -> Result<T, BlockError> {
    opened.map_err(|error| {
        let told = error.to_string();
        *failure = Some(error.into());
        told.into()
    })
}
