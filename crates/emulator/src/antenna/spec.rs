//! Builds an antenna from a specification string: `KIND:VALUE,…,option=value,…`.

use super::{
    Antenna, FileAntenna, NoiseAntenna, RampAntenna, ToneAntenna, file::ItemFormat, file::OpenFile,
};
use crate::Error;
use crate::config::CHANNELS_MAX;
use millstream_link::options;
use millstream_link::options::{
    BadOption, Line, Opt, Options, Parsed, Words, maybe, names_for, number,
};

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

/// A frequency in the spectrum of the samples.
const HZ: Parsed<f64> = Parsed {
    looks: "HZ",
    wants: "wants a frequency in Hz, such as 250e3",
    read: |text| text.parse().ok().filter(|hz: &f64| hz.is_finite()),
    write: f64::to_string,
};

/// A part of full scale.
const SHARE: Parsed<f64> = Parsed {
    looks: "0-1",
    wants: "wants a part of full scale from 0 to 1",
    read: |text| text.parse().ok().filter(|share| (0.0..=1.0).contains(share)),
    write: f64::to_string,
};

options! {
    struct AntennaOptions {
        /// frequency in the spectrum of the samples; required
        freq_hz: Option<f64> = None, maybe(HZ);
        /// amplitude of a tone (default 0.5), RMS of noise (default 0.1)
        amplitude: Option<f64> = None, maybe(SHARE);
        /// noise of another seed is other noise
        seed: u64 = 1, number("a seed", 0..=u64::MAX);
        /// the samples' format, where the name of the file does not say it
        format: Option<ItemFormat> = None,
            maybe(Words(&[("sc16", ItemFormat::Sc16), ("cf32", ItemFormat::Cf32)]));
        /// the transmit channel; required
        channel: Option<usize> = None, maybe(number("a channel", 0..=CHANNELS_MAX - 1));
        /// samples by which it is received later
        delay: u64 = 0, number("samples", 0..=DELAY_SAMPLES_MAX);
    }
}

/// The kinds of antennas, with their forms and options; values without a name are those of the
/// options in their order.
const KINDS: [(&str, &str, &[&str]); 6] = [
    ("tone", "tone:FREQ_HZ[,AMPLITUDE]", &["freq_hz", "amplitude"]),
    ("noise", "noise[:AMPLITUDE[,SEED]]", &["amplitude", "seed"]),
    ("ramp", "ramp", &[]),
    ("file", "file:PATH[,format=sc16|cf32] (.sc16, .cf32, .sigmf-meta, .sigmf-data)", &["format"]),
    ("atsc", "atsc:FILE.ts", &[]),
    ("loopback", "loopback:CHANNEL[,delay=SAMPLES]", &["channel", "delay"]),
];

/// Returns the accepted antenna forms, for help.
pub fn forms() -> String {
    let options = AntennaOptions::describe();
    let form = |(_, form, names): (&str, &str, &[&str])| match names {
        [] => form.to_owned(),
        names => format!("{form}: {}", Opt::help_of(&options, names)),
    };
    KINDS.map(form).join("; ")
}

/// Builds the source of `spec`; opens and checks its file.
///
/// # Errors
/// [`Error::AntennaSpec`] when the text does not have one of the accepted forms,
/// [`Error::AntennaFile`] when the file cannot be used. Both contain the specification.
pub fn source(spec: &str) -> Result<AntennaSource, Error> {
    let (name, rest) = spec.split_once(':').unwrap_or((spec, ""));
    let bad = |reason| Error::AntennaSpec { spec: spec.to_owned(), reason };
    let Some((kind, form, names)) = KINDS.into_iter().find(|(kind, ..)| *kind == name) else {
        let hint = names_for(name, &KINDS.map(|(kind, ..)| kind), "give one of ");
        return Err(bad(format!("`{name}` is no antenna; {hint}")));
    };
    // The names of files may have commas.
    let end = rest.rfind(",format=").unwrap_or(rest.len());
    let (file, text) = match kind {
        "file" => (&rest[..end], rest[end..].trim_start_matches(',')),
        "atsc" => (rest, ""),
        _ => ("-", rest),
    };
    let wrong = |error: BadOption| bad(format!("{error}; write {form}"));
    let missing = |what: &str| wrong(BadOption::new(what, "is missing"));
    let AntennaOptions { freq_hz, amplitude, seed, format, channel, delay } =
        read(text, names).map_err(wrong)?;
    if file.is_empty() {
        return Err(missing("file"));
    }
    Ok(AntennaSource::Signal(match kind {
        "tone" => {
            let freq_hz = freq_hz.ok_or_else(|| missing("freq_hz="))?;
            Box::new(ToneAntenna::new(freq_hz, amplitude.unwrap_or(0.5)))
        }
        "noise" => Box::new(NoiseAntenna::new(amplitude.unwrap_or(0.1), seed)),
        "file" => Box::new(FileAntenna::open(OpenFile { spec, path: file.into(), format })?),
        "atsc" => super::atsc::open(spec, file)?,
        "loopback" => {
            let channel = channel.ok_or_else(|| missing("channel="))?;
            return Ok(AntennaSource::Loopback(Loopback { channel, delay_samples: delay }));
        }
        _ => Box::new(RampAntenna),
    }))
}

fn read(text: &str, names: &[&'static str]) -> Result<AntennaOptions, BadOption> {
    let mut line = Line::of(text.split(','))?;
    line.name_words(names)?;
    let options = line.take_of(names)?;
    line.finish()?;
    Ok(options)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(spec: &str) -> String {
        source(spec).err().expect(spec).to_string()
    }

    #[test]
    fn the_accepted_forms_parse() {
        for spec in [
            "ramp",
            "tone:1e6",
            "tone:-2.5e5,0.25",
            "tone:amplitude=0.25,freq_hz=1e6",
            "noise",
            "noise:",
            "noise:0.3",
            "noise:0.1,42",
            "noise:,42",
            "noise:seed=42",
        ] {
            assert!(matches!(source(spec), Ok(AntennaSource::Signal(_))), "{spec}");
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
    }

    #[test]
    fn a_bad_spec_names_itself_the_reason_and_what_is_expected() {
        let kinds = "give one of tone, noise, ramp, file, atsc, loopback";
        let (tone, loopback) = ("write tone:FREQ_HZ[,AMPLITUDE]", "write loopback:CHANNEL[,delay=");
        let cases = [
            ("", "`` is no antenna", kinds),
            ("sine:5", "`sine` is no antenna", kinds),
            ("tune:5", "`tune` is no antenna; did you mean `tone`?", kinds),
            ("ramp:5", "`5` is not of the form name=value", "write ramp"),
            ("tone:", "`freq_hz=` is missing", tone),
            ("tone:inf", "`freq_hz=inf` wants a frequency in Hz", tone),
            ("tone:5,1.5", "`amplitude=1.5` wants a part of full scale from 0 to 1", tone),
            ("tone:5,1,7", "`7` is not of the form name=value", tone),
            ("noise:0.1,-4", "`seed=-4` wants a seed from 0 on", "write noise[:AMPLITUDE[,SEED]]"),
            ("noise:sede=4", "`sede=4` is not known; the options here are", "write noise["),
            ("file:", "`file` is missing", "write file:PATH"),
            ("file:a.sc16,format=u8", "`format=u8` wants one of: sc16, cf32", "write file:PATH"),
            ("atsc", "`file` is missing", "write atsc:FILE.ts"),
            ("loopback:4", "`channel=4` wants a channel from 0 to 3", loopback),
            ("loopback:", "`channel=` is missing", loopback),
            ("loopback:0,delay=-1", "`delay=-1` wants samples from 0 to 16777216", loopback),
            ("loopback:0,gain=3", "`gain=3` is not known; the options here are", loopback),
        ];
        for (spec, reason, expected) in cases {
            let text = refusal(spec);
            assert!(text.starts_with(&format!("cannot use antenna `{spec}`: {reason}")), "{text}");
            assert!(text.contains(expected), "{text}");
            assert!(text.ends_with("; `millstream sim radio --help` lists all forms"), "{text}");
            assert!(text.len() < 230 && !text.contains('\n'), "{}: {text}", text.len());
        }
    }

    #[test]
    fn every_kind_and_option_is_in_the_help_and_in_the_manual() {
        let (help, page) = (forms(), include_str!("../../../../docs/reference/options.md"));
        for (kind, form, options) in KINDS {
            assert!(help.contains(form) && page.contains(&format!("`{kind}")), "{kind}");
            for option in options {
                assert!(help.contains(&format!("{option}=")), "{option}");
                let written = form.contains(&option.to_uppercase()) || form.contains(option);
                assert!(written, "{option} in {form}");
            }
        }
    }
}
