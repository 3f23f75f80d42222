//! The file of a scene (TOML).

use super::Scene;
use millstream_wire::regs::front_end::RxAntenna;
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// A scene that cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SceneError {
    /// The text is no TOML, or has a key that does not exist; the parser's text names those that
    /// do.
    #[error("{0}")]
    Form(String),
    /// A station is wrong.
    #[error("station {number}{name}: {reason}", name = quoted(name))]
    Station {
        /// Its place in the file, from 1 on.
        number: usize,
        /// Its name; empty when it has none.
        name: String,
        /// The fault, and the possible keys or values.
        reason: String,
    },
}

fn quoted(name: &str) -> String {
    if name.is_empty() { String::new() } else { format!(" \"{name}\"") }
}

/// A transmitter.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Station {
    /// The name, for people.
    pub name: String,
    /// Its middle frequency, Hz.
    pub frequency_hz: f64,
    /// Its power at the connector, dBm.
    pub level_dbm: f64,
    /// The connector that it reaches; `None` for all.
    pub(crate) antenna: Option<RxAntenna>,
    /// The kind of its signal.
    pub kind: StationKind,
}

/// The signal of a station.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum StationKind {
    /// A bare carrier.
    Tone,
    /// Gaussian noise.
    Noise {
        /// Its width, Hz.
        bandwidth_hz: f64,
    },
    /// A carrier whose frequency follows a tone.
    Fm {
        /// The largest deviation, Hz.
        deviation_hz: f64,
        /// The frequency of the tone, Hz.
        audio_hz: f64,
    },
    /// Television, 8-VSB.
    Atsc {
        /// The transport stream.
        file: PathBuf,
    },
    /// A SigMF recording, over and over.
    Recording {
        /// Its metadata or data file.
        file: PathBuf,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SceneFile {
    #[serde(default)]
    station: Vec<StationFile>,
}

/// The keys of all kinds.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StationFile {
    name: Option<String>,
    kind: String,
    frequency: f64,
    level: f64,
    antenna: Option<String>,
    bandwidth: Option<f64>,
    deviation: Option<f64>,
    audio: Option<f64>,
    file: Option<PathBuf>,
}

/// The kinds, with the keys that only they have.
const KINDS: [(&str, &[&str]); 5] = [
    ("tone", &[]),
    ("noise", &["bandwidth"]),
    ("fm", &["deviation", "audio"]),
    ("atsc", &["file"]),
    ("recording", &["file"]),
];

const COMMON: &str = "name, kind, frequency, level, antenna";

pub(super) fn parse(text: &str) -> Result<Scene, SceneError> {
    let file: SceneFile =
        toml::from_str(text).map_err(|error| SceneError::Form(error.to_string()))?;
    let station = |(index, file): (usize, StationFile)| {
        let (number, name) = (index + 1, file.name.clone().unwrap_or_default());
        file.station().map_err(|reason| SceneError::Station { number, name, reason })
    };
    let stations = file.station.into_iter().enumerate().map(station).collect::<Result<_, _>>()?;
    Ok(Scene { stations })
}

impl StationFile {
    fn station(self) -> Result<Station, String> {
        self.check_keys()?;
        within("frequency", self.frequency, 0.0, 1e12, "Hz")?;
        within("level", self.level, -300.0, 100.0, "dBm")?;
        let antenna = match self.antenna.as_deref() {
            None | Some("any") => None,
            Some(name) => Some(RxAntenna::named(name).ok_or_else(|| {
                format!("antenna = \"{name}\": there are \"RX2\", \"TX/RX\" and \"any\"")
            })?),
        };
        let kind = match self.kind.as_str() {
            "noise" => {
                let bandwidth_hz = self.bandwidth.ok_or("a noise needs a bandwidth, in Hz")?;
                within("bandwidth", bandwidth_hz, 1.0, 1e9, "Hz")?;
                StationKind::Noise { bandwidth_hz }
            }
            "fm" => {
                let (deviation_hz, audio_hz) =
                    (self.deviation.unwrap_or(75e3), self.audio.unwrap_or(1e3));
                within("deviation", deviation_hz, 0.0, 1e8, "Hz")?;
                within("audio", audio_hz, 1.0, 1e6, "Hz")?;
                StationKind::Fm { deviation_hz, audio_hz }
            }
            "atsc" => StationKind::Atsc { file: self.file.ok_or("atsc needs a file, FILE.ts")? },
            "recording" => {
                let file = self.file.ok_or("a recording needs a file, FILE.sigmf-meta")?;
                StationKind::Recording { file }
            }
            _ => StationKind::Tone,
        };
        Ok(Station {
            name: self.name.unwrap_or_default(),
            frequency_hz: self.frequency,
            level_dbm: self.level,
            antenna,
            kind,
        })
    }

    /// Checks that the kind exists, and that all keys are of this kind.
    fn check_keys(&self) -> Result<(), String> {
        let Some((kind, own)) = KINDS.iter().find(|(kind, _)| *kind == self.kind) else {
            let names = KINDS.map(|(kind, _)| kind).join(", ");
            return Err(format!("kind = \"{}\": there are {names}", self.kind));
        };
        let given = [
            ("bandwidth", self.bandwidth.is_some()),
            ("deviation", self.deviation.is_some()),
            ("audio", self.audio.is_some()),
            ("file", self.file.is_some()),
        ];
        match given.iter().find(|(key, is_given)| *is_given && !own.contains(key)) {
            None => Ok(()),
            Some((key, _)) => {
                let keys: Vec<_> = std::iter::once(COMMON).chain(own.iter().copied()).collect();
                Err(format!("a station of kind {kind} has no {key}; it has {}", keys.join(", ")))
            }
        }
    }
}

fn within(key: &str, value: f64, low: f64, high: f64, unit: &str) -> Result<(), String> {
    if (low..=high).contains(&value) {
        Ok(())
    } else {
        Err(format!("{key} = {value:?}: expected {low:?} to {high:?} {unit}"))
    }
}

impl StationKind {
    /// Makes a relative path one below `folder`.
    pub(super) fn place_in(&mut self, folder: &Path) {
        if let StationKind::Atsc { file } | StationKind::Recording { file } = self {
            *file = folder.join(&file);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::DEFAULT_SCENE;

    fn error_of(text: &str) -> String {
        Scene::parse(text).unwrap_err().to_string()
    }

    fn station(lines: &str) -> String {
        format!("[[station]]\nfrequency = 1e9\nlevel = -50\n{lines}")
    }

    #[test]
    fn the_default_scene_is_valid_and_every_kind_parses() {
        assert!(Scene::parse(DEFAULT_SCENE).unwrap().stations.len() > 3);
        for (lines, kind) in [
            ("kind = \"tone\"", StationKind::Tone),
            (
                "kind = \"noise\"\nbandwidth = 2e6\nantenna = \"RX2\"",
                StationKind::Noise { bandwidth_hz: 2e6 },
            ),
            ("kind = \"fm\"", StationKind::Fm { deviation_hz: 75e3, audio_hz: 1e3 }),
            ("kind = \"atsc\"\nfile = \"a.ts\"", StationKind::Atsc { file: "a.ts".into() }),
            (
                "kind = \"recording\"\nfile = \"a.sigmf-meta\"",
                StationKind::Recording { file: "a.sigmf-meta".into() },
            ),
        ] {
            assert_eq!(Scene::parse(&station(lines)).unwrap().stations[0].kind, kind, "{lines}");
        }
        assert_eq!(Scene::parse("").unwrap().stations.len(), 0);
    }

    #[test]
    fn an_unknown_key_is_an_error_that_names_the_valid_ones() {
        let text = error_of(&station("kind = \"tone\"\nfreq = 5"));
        assert!(text.contains("unknown field `freq`") && text.contains("`frequency`"), "{text}");
        let text = error_of("stations = 3");
        assert!(text.contains("unknown field `stations`") && text.contains("`station`"), "{text}");
        assert_eq!(
            error_of(&station("name = \"b\"\nkind = \"noise\"\naudio = 5")),
            "station 1 \"b\": a station of kind noise has no audio; it has name, kind, frequency, \
             level, antenna, bandwidth"
        );
    }

    #[test]
    fn a_wrong_value_is_named_with_what_is_accepted() {
        for (lines, reason) in [
            ("kind = \"am\"", "kind = \"am\": there are tone, noise, fm, atsc, recording"),
            ("kind = \"noise\"", "a noise needs a bandwidth, in Hz"),
            ("kind = \"atsc\"", "atsc needs a file, FILE.ts"),
            ("kind = \"tone\"\nantenna = \"A\"", "antenna = \"A\": there are \"RX2\", \"TX/RX\""),
            ("kind = \"noise\"\nbandwidth = nan", "bandwidth = NaN: expected 1.0 to"),
        ] {
            let text = error_of(&station(lines));
            assert!(text.starts_with(&format!("station 1: {reason}")), "{text}");
        }
        let text = error_of("[[station]]\nkind = \"tone\"\nlevel = -5");
        assert!(text.contains("missing field `frequency`"), "{text}");
    }
}
