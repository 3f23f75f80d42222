//! Builds an antenna from a specification string.

use super::{
    Antenna, FileAntenna, NoiseAntenna, RampAntenna, ToneAntenna, file::ItemFormat, file::OpenFile,
};
use crate::Error;
use crate::config::CHANNELS_MAX;
use std::path::PathBuf;

/// The source of a receive channel.
pub enum AntennaSource {
    /// A separate signal.
    Signal(Box<dyn Antenna>),
    /// The signal of a transmit channel of the same radio.
    Loopback(Loopback),
}

/// A cable from a transmit channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Loopback {
    /// The transmit channel.
    pub channel: usize,
    /// The delay of reception in samples, up to [`DELAY_SAMPLES_MAX`].
    pub delay_samples: u64,
}

/// The longest cable: 64 MiB of samples.
pub const DELAY_SAMPLES_MAX: u64 = 1 << 24;

/// The kinds of antennas, with their forms.
const KINDS: [(&str, &str); 6] = [
    ("tone", "tone:FREQ_HZ[,AMPLITUDE]"),
    ("noise", "noise[:AMPLITUDE[,SEED]]"),
    ("ramp", "ramp"),
    ("file", "file:PATH[,format=sc16|cf32] (.sc16, .cf32, .sigmf-meta, .sigmf-data)"),
    ("atsc", "atsc:FILE.ts"),
    ("loopback", "loopback:CHANNEL[,delay=SAMPLES]"),
];

/// Returns the accepted antenna forms, for help.
pub fn forms() -> String {
    KINDS.map(|(_, form)| form).join(", ")
}

/// Builds the source of `spec`; opens and checks its file.
///
/// # Errors
/// [`Error::AntennaSpec`] when the text does not have one of the accepted forms,
/// [`Error::AntennaFile`] when the file cannot be used. Both contain the specification.
pub fn source(spec: &str) -> Result<AntennaSource, Error> {
    match spec.split_once(':') {
        Some(("loopback", rest)) => loopback(spec, rest).map(AntennaSource::Loopback),
        _ => parse(spec).map(AntennaSource::Signal),
    }
}

fn loopback(spec: &str, rest: &str) -> Result<Loopback, Error> {
    let (channel, option) = rest.split_once(',').unwrap_or((rest, "delay=0"));
    let whole = |what, text: &str, end: u64| match text.parse::<u64>() {
        Ok(value) if value < end => Ok(value),
        _ => Err(bad(spec, format!("{what} `{text}` is not a whole number below {end}"))),
    };
    let channel = whole("CHANNEL", channel, CHANNELS_MAX as u64)? as usize;
    let Some(delay) = option.strip_prefix("delay=") else {
        return Err(bad(spec, format!("unknown option `{option}`")));
    };
    let delay_samples = whole("delay", delay, DELAY_SAMPLES_MAX + 1)?;
    Ok(Loopback { channel, delay_samples })
}

/// Builds the antenna of `spec`, as [`source`] does; a loopback is an error.
///
/// # Errors
/// As [`source`].
pub fn parse(spec: &str) -> Result<Box<dyn Antenna>, Error> {
    let (kind, rest) = spec.split_once(':').unwrap_or((spec, ""));
    match kind {
        "ramp" if rest.is_empty() => Ok(Box::new(RampAntenna)),
        "ramp" => Err(bad(spec, format!("`{rest}` is not expected here"))),
        "tone" => tone(spec, rest),
        "noise" => noise(spec, rest),
        "file" => file(spec, rest),
        "atsc" if rest.is_empty() => Err(bad(spec, "no file named".to_owned())),
        "atsc" => super::atsc::open(spec, rest),
        _ => Err(bad(spec, format!("unknown kind `{kind}`"))),
    }
}

fn tone(spec: &str, rest: &str) -> Result<Box<dyn Antenna>, Error> {
    let (freq, amplitude) = rest.split_once(',').unwrap_or((rest, "0.5"));
    let freq_hz = number(spec, "FREQ_HZ", freq)?;
    Ok(Box::new(ToneAntenna::new(freq_hz, unit(spec, amplitude)?)))
}

fn noise(spec: &str, rest: &str) -> Result<Box<dyn Antenna>, Error> {
    let (amplitude, seed) = rest.split_once(',').unwrap_or((rest, "1"));
    let amplitude = if amplitude.is_empty() { "0.1" } else { amplitude };
    let seed = seed
        .parse::<u64>()
        .map_err(|_| bad(spec, format!("SEED `{seed}` is not an unsigned integer")))?;
    Ok(Box::new(NoiseAntenna::new(unit(spec, amplitude)?, seed)))
}

fn file(spec: &str, rest: &str) -> Result<Box<dyn Antenna>, Error> {
    let (path, format) = match rest.rsplit_once(",format=") {
        Some((path, name)) => {
            let format = ItemFormat::by_name(name)
                .ok_or_else(|| bad(spec, format!("unknown sample format `{name}`")))?;
            (path, Some(format))
        }
        None => (rest, None),
    };
    if path.is_empty() {
        return Err(bad(spec, "no file named".to_owned()));
    }
    Ok(Box::new(FileAntenna::open(OpenFile { spec, path: PathBuf::from(path), format })?))
}

fn unit(spec: &str, text: &str) -> Result<f64, Error> {
    let value = number(spec, "AMPLITUDE", text)?;
    if (0.0..=1.0).contains(&value) {
        Ok(value)
    } else {
        Err(bad(spec, format!("AMPLITUDE {value} is outside 0..=1 of full scale")))
    }
}

fn number(spec: &str, what: &str, text: &str) -> Result<f64, Error> {
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() => Ok(value),
        _ => Err(bad(spec, format!("{what} `{text}` is not a number"))),
    }
}

/// Returns an error with the expected form: that of the kind, or the list of kinds.
fn bad(spec: &str, reason: String) -> Error {
    let kind = spec.split(':').next().unwrap_or_default();
    let expected = match KINDS.iter().find(|(name, _)| *name == kind) {
        Some((_, form)) => format!("write {form}"),
        None => format!("give one of {}", KINDS.map(|(name, _)| name).join(", ")),
    };
    Error::AntennaSpec { spec: spec.to_owned(), reason: format!("{reason}; {expected}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_accepted_forms_parse() {
        for spec in ["ramp", "tone:1e6", "tone:-2.5e5,0.25", "noise", "noise:0.3", "noise:0.1,42"] {
            assert!(parse(spec).is_ok(), "{spec}");
        }
    }

    #[test]
    fn a_loopback_has_a_channel_and_perhaps_a_delay() {
        for (spec, channel, delay_samples) in
            [("loopback:0", 0, 0), ("loopback:1,delay=100", 1, 100)]
        {
            let Ok(AntennaSource::Loopback(found)) = source(spec) else { panic!("{spec}") };
            assert_eq!(found, Loopback { channel, delay_samples });
        }
        for (spec, reason) in [
            ("loopback:4", "CHANNEL `4` is not a whole number below 4"),
            ("loopback:", "CHANNEL `` is not"),
            ("loopback:0,delay=-1", "delay `-1` is not a whole number below 16777217"),
            ("loopback:0,gain=3", "unknown option `gain=3`"),
        ] {
            let text = source(spec).err().expect(spec).to_string();
            assert!(text.contains(reason), "{text}");
        }
    }

    #[test]
    fn a_bad_spec_names_itself_the_reason_and_what_is_expected() {
        let kinds = "give one of tone, noise, ramp, file, atsc, loopback";
        let cases = [
            ("", "unknown kind ``", kinds),
            ("sine:5", "unknown kind `sine`", kinds),
            ("ramp:5", "`5` is not expected here", "write ramp"),
            ("tone:", "FREQ_HZ `` is not a number", "write tone:FREQ_HZ[,AMPLITUDE]"),
            ("tone:inf", "FREQ_HZ `inf` is not a number", "write tone:FREQ_HZ[,AMPLITUDE]"),
            ("tone:5,1.5", "AMPLITUDE 1.5 is outside 0..=1", "write tone:FREQ_HZ[,AMPLITUDE]"),
            ("noise:0.1,-4", "SEED `-4` is not an unsigned", "write noise[:AMPLITUDE[,SEED]]"),
            ("file:", "no file named", "write file:PATH"),
            ("file:a.sc16,format=u8", "unknown sample format `u8`", "write file:PATH"),
            ("atsc", "no file named", "write atsc:FILE.ts"),
        ];
        for (spec, reason, expected) in cases {
            let text = parse(spec).err().expect(spec).to_string();
            assert!(text.starts_with(&format!("cannot use antenna `{spec}`: {reason}")), "{text}");
            assert!(text.contains(&format!("; {expected}")), "{text}");
            assert!(text.ends_with("; `millstream sim radio --help` lists all forms"), "{text}");
            assert!(text.len() < 200 && !text.contains('\n'), "{}: {text}", text.len());
        }
    }
}
