//! Settings of the front end while a source runs, as messages.

use millstream_flow::{BlockError, Item, MessageSpec, Out, ParameterKind, ParameterValue, keys};

use super::segments::{SampleCount, TunedOutput};
use crate::device::rate_within;
use crate::graph::StreamDirection;
use crate::{Device, DeviceSet, RadioError, RxArgs, RxError, StreamRate, TuneRequest};

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

/// The largest difference of two rates that are the same, as a ratio.
const SAME_RATE: f64 = 1e-9;

/// Sets the rate of a device, for a graph: its blocks have that rate in their parameters, so no
/// other will do.
pub(super) fn set_exact_rate(device: &mut Device, wanted_hz: f64) -> Result<(), RadioError> {
    let taken_hz = device.set_rate(wanted_hz)?;
    rate_within(wanted_hz, taken_hz, device.tick_rate_hz(), SAME_RATE).map(drop)
}

/// Sets the rate of a channel for streams that are opened from now on, if it has just this rate;
/// otherwise it keeps `present`.
fn choose_rate(
    device: &mut Device,
    channel: usize,
    wanted_hz: f64,
    present: StreamRate,
) -> Result<(), BlockError> {
    let taken = device.set_channel_rate(StreamDirection::Rx, channel, wanted_hz)?;
    let exact = rate_within(wanted_hz, taken.samples_hz(), taken.ticks_hz, SAME_RATE);
    if exact.is_err() {
        device.set_channel_rate(StreamDirection::Rx, channel, present.samples_hz())?;
    }
    Ok(exact.map(drop)?)
}

/// Sets the rate of several channels, as [`choose_rate`] does: of all, or of none.
pub(super) fn choose_rates(
    devices: &mut DeviceSet,
    channels: &[(usize, RxArgs)],
    wanted_hz: f64,
    present: StreamRate,
) -> Result<(), BlockError> {
    if channels.is_empty() {
        return Err(NOT_OPEN.into());
    }
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

const OF_OUTPUTS: [[MessageSpec; 2]; crate::stream::RX_CHANNELS_MAX] = of_outputs! {
    0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31
};

/// A setting of a front end that a message makes.
#[derive(Clone, Copy, Debug, PartialEq)]
enum FrontEndSetting {
    /// The frequency in the middle of the band, Hz.
    Frequency(f64),
    /// The gain, dB.
    Gain(f64),
}

/// A setting that a message has made, with its output, the device and the channel.
#[derive(Clone, Copy, Debug, PartialEq)]
struct MadeSetting {
    output: usize,
    place: (usize, usize),
    setting: FrontEndSetting,
}

/// The settings that messages have made, the last of each kind. A device that is opened again gets
/// them again.
#[derive(Clone, Debug, Default)]
pub(super) struct LiveSettings {
    /// Those of the front ends, in the order of the messages: tuning a channel moves the oscillator
    /// of others.
    front_ends: Vec<MadeSetting>,
    /// The rate, and the channels that have it.
    pub rate: Option<(f64, Vec<(usize, RxArgs)>)>,
}

impl LiveSettings {
    fn note(&mut self, made: MadeSetting) {
        let kind = |made: &MadeSetting| (made.output, std::mem::discriminant(&made.setting));
        self.front_ends.retain(|earlier| kind(earlier) != kind(&made));
        self.front_ends.push(made);
    }

    /// Makes the settings of the front ends again: the frequencies first, because the tables of
    /// gains follow the frequency.
    pub fn repeat(&self, devices: &mut [Device]) -> Result<(), BlockError> {
        let is_tuning = |made: &&MadeSetting| matches!(made.setting, FrontEndSetting::Frequency(_));
        let tunings = self.front_ends.iter().filter(is_tuning);
        let others = self.front_ends.iter().filter(|made| !is_tuning(made));
        tunings.chain(others).try_for_each(|made| {
            let device = devices.get_mut(made.place.0).ok_or(NOT_OPEN)?;
            made.setting.make(device, made.place.1)?;
            Ok(())
        })
    }

    /// Returns whether a frequency is among them.
    fn has_tuning(&self) -> bool {
        let is_tuning = |made: &MadeSetting| matches!(made.setting, FrontEndSetting::Frequency(_));
        self.front_ends.iter().any(is_tuning)
    }
}

impl FrontEndSetting {
    /// Makes the setting; returns the value that the device took.
    fn make(self, device: &mut Device, channel: usize) -> Result<f64, RadioError> {
        match self {
            Self::Frequency(hz) => {
                let tuned = device.tune(StreamDirection::Rx, channel, TuneRequest::new(hz))?;
                Ok(tuned.freq_hz)
            }
            Self::Gain(db) => device.set_gain(StreamDirection::Rx, channel, db),
        }
    }
}

/// The channels whose front ends messages set; none if none may.
#[derive(Clone, Debug, Default)]
pub(super) struct TunableOutputs {
    /// The device and the channel of each output.
    places: Vec<(usize, usize)>,
    /// Whether the names of the messages end with the number of the output.
    is_numbered: bool,
    /// The settings that messages have made.
    pub live: LiveSettings,
}

impl TunableOutputs {
    /// `places` has the device and the channel of each output; the messages of a single one have no
    /// number.
    pub fn new(places: Vec<(usize, usize)>) -> Self {
        let is_numbered = places.len() > 1;
        Self { places, is_numbered, ..Self::default() }
    }

    pub fn messages(&self) -> Vec<MessageSpec> {
        if self.is_numbered {
            return OF_OUTPUTS.iter().take(self.places.len()).flatten().copied().collect();
        }
        if self.places.is_empty() { Vec::new() } else { MESSAGES.to_vec() }
    }

    /// Sets what the message says, and tells it with the samples from which on it holds. Several
    /// outputs may have another frequency then: channels may share an oscillator. The samples wait
    /// in the sockets' queues meanwhile.
    pub fn apply<T: Item>(
        &mut self,
        devices: Option<&mut [Device]>,
        (name, value): (&str, &ParameterValue),
        progress: &mut SampleCount,
        outs: &mut [Out<T>],
    ) -> Result<(), BlockError> {
        let (output, setting) = self.read(name, value).ok_or("this is no setting of the radio")?;
        let (devices, place) = (devices.ok_or(NOT_OPEN)?, self.places[output]);
        let before = self.tuned(devices);
        let device = devices.get_mut(place.0).ok_or(NOT_OPEN)?;
        let taken = setting.make(device, place.1)?;
        self.live.note(MadeSetting { output, place, setting });
        if !matches!(setting, FrontEndSetting::Frequency(_)) {
            outs[output].tag(0, keys::RX_GAIN_DB, taken);
            return Ok(());
        }
        // The tuning is made, whether the time is known or not.
        let at = devices[place.0].time_ticks().ok();
        let mut tuned = self.tuned(devices);
        tuned.retain(|now| now.output == output || !before.contains(now));
        tuned.into_iter().for_each(|tuned| progress.tune(at, tuned));
        Ok(())
    }

    /// Returns the output and the setting that a message means.
    fn read(&self, name: &str, value: &ParameterValue) -> Option<(usize, FrontEndSetting)> {
        let ParameterValue::Number(value) = *value else { return None };
        let kind = name.trim_end_matches(|letter: char| letter.is_ascii_digit());
        let number = &name[kind.len()..];
        let output = if self.is_numbered { number.parse().ok()? } else { 0 };
        self.places.get(output)?;
        match kind {
            "freq_hz" => Some((output, FrontEndSetting::Frequency(value))),
            "gain_db" => Some((output, FrontEndSetting::Gain(value))),
            _ => None,
        }
    }

    /// Returns the frequencies of the outputs that were tuned.
    fn tuned(&self, devices: &[Device]) -> Vec<TunedOutput> {
        let tuned = |(output, (device, channel)): (usize, &(usize, usize))| {
            let tuned = devices.get(*device)?.tuned(StreamDirection::Rx, *channel)?;
            Some(TunedOutput { output, freq_hz: tuned.freq_hz })
        };
        self.places.iter().enumerate().filter_map(tuned).collect()
    }

    /// Returns the frequencies of the outputs of devices that were opened again, where messages had
    /// changed any.
    pub fn tuned_again(&self, devices: &[Device]) -> Vec<TunedOutput> {
        if self.live.has_tuning() { self.tuned(devices) } else { Vec::new() }
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
