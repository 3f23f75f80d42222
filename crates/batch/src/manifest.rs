//! Manifests: what to run, as a file (TOML).
//!
//! ```toml
//! graph = "graphs/atsc-rx.toml"          # relative to the folder of the manifest
//! recordings = ["recordings/*.sc16"]     # patterns; without this key the graph reads no recording
//! recording_parameter = "in"             # the graph's parameter for the recording
//! results = "reception.results"          # default: the manifest's name with `.results`
//!
//! [outputs]                              # the graph's parameters for files, and the files' names
//! out = "tv.ts"
//!
//! [parameters]                           # the same for all tasks
//! rate = 6.25e6
//!
//! [sweep]                                # each combination of these
//! taps = [64, 128]
//! gain = { from = 0.1, to = 0.5, step = 0.1 }
//!
//! [early_stop]                           # optional: successive halving over the recordings
//! value = "demod.mer_db"
//! best = "highest"
//! keep = 0.5
//!
//! [split]                                # optional: each recording in so many parts
//! parts = 4
//! ```

use crate::BatchError;
use serde::Deserialize;
use std::collections::{BTreeMap, HashSet};
use std::path::Path;

/// Most parts of a recording.
const PARTS_MAX: usize = 1000;

/// Most values of one swept parameter.
const VALUES_MAX: usize = 100_000;

/// A manifest as written.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The graph file.
    pub graph: String,
    /// Patterns of recordings; `None`: the graph reads none.
    #[serde(default)]
    pub recordings: Option<Vec<String>>,
    /// The graph's parameter for the path of the recording.
    #[serde(default = "default_parameter")]
    pub recording_parameter: String,
    /// The folder of results.
    #[serde(default)]
    pub results: Option<String>,
    /// The graph's parameters for files, with the files' names.
    #[serde(default)]
    pub outputs: BTreeMap<String, String>,
    /// Parameters that all tasks share.
    #[serde(default)]
    parameters: BTreeMap<String, toml::Value>,
    /// Parameters of which each combination is a setting.
    #[serde(default)]
    sweep: BTreeMap<String, SweptValues>,
    /// How poor settings are given up.
    #[serde(default)]
    pub early_stop: Option<EarlyStop>,
    /// How recordings are cut into parts.
    #[serde(default)]
    pub split: Option<Split>,
}

/// Each recording is cut into parts, which are tasks of their own.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Split {
    /// The number of parts.
    pub parts: usize,
}

fn default_parameter() -> String {
    "in".to_owned()
}

/// The values of a swept parameter.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, expecting = "expected a list such as [1, 2], or { from = 1, to = 9, step = 2 }")]
enum SweptValues {
    List(Vec<toml::Value>),
    Range(SweptRange),
}

/// Equal steps from one value to another, which belongs to it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SweptRange {
    from: f64,
    to: f64,
    step: f64,
}

/// Successive halving: after each round of recordings only the best settings continue.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EarlyStop {
    /// The number of the results that is compared: its mean over the recordings of a round.
    pub value: String,
    /// Which values are better.
    #[serde(default)]
    pub best: Best,
    /// The share of settings that continue after a round.
    #[serde(default = "half")]
    pub keep: f64,
    /// Recordings of the first round; each further one has twice as many.
    #[serde(default = "one")]
    pub first: usize,
}

fn half() -> f64 {
    0.5
}

fn one() -> usize {
    1
}

/// Which values of a number are better.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "lowercase")]
pub enum Best {
    /// Large ones.
    #[default]
    Highest,
    /// Small ones.
    Lowest,
}

impl Best {
    /// Whether `a` is better than `b`.
    #[must_use]
    pub fn prefers(self, a: f64, b: f64) -> bool {
        match self {
            Self::Highest => a > b,
            Self::Lowest => a < b,
        }
    }
}

/// One combination of parameters, as texts for `--set`.
pub(crate) type Setting = BTreeMap<String, String>;

impl Manifest {
    /// Reads a manifest from text; `path` is its name in errors.
    ///
    /// # Errors
    /// [`BatchError::Manifest`]: the text does not have the form of a manifest.
    pub fn parse(path: &Path, text: &str) -> Result<Self, BatchError> {
        let wrong = |reason: String| BatchError::Manifest { path: path.to_owned(), reason };
        let manifest = Self::read(path, text)?;
        manifest.check().map_err(wrong)?;
        Ok(manifest)
    }

    /// Reads a manifest whose text was checked before.
    pub(crate) fn read(path: &Path, text: &str) -> Result<Self, BatchError> {
        toml::from_str(text).map_err(|error| {
            let reason = error.to_string().trim_end().to_owned();
            BatchError::Manifest { path: path.to_owned(), reason }
        })
    }

    fn check(&self) -> Result<(), String> {
        let recording = self.recordings.is_some().then_some(&self.recording_parameter);
        let mut seen: BTreeMap<&String, &str> = BTreeMap::new();
        let all = recording
            .into_iter()
            .map(|name| (name, "the recording"))
            .chain(self.outputs.keys().map(|name| (name, "[outputs]")))
            .chain(self.parameters.keys().map(|name| (name, "[parameters]")))
            .chain(self.sweep.keys().map(|name| (name, "[sweep]")));
        for (name, place) in all {
            if let Some(first) = seen.insert(name, place) {
                return Err(format!(
                    "the parameter `{name}` is set by {first} and by {place}: set it once"
                ));
            }
        }
        for (parameter, file) in &self.outputs {
            let plain = Path::new(file).components().count() == 1
                && Path::new(file).file_name().is_some_and(|name| name == file.as_str());
            if !plain || file == crate::results::RESULT {
                return Err(format!(
                    "[outputs] {parameter} = \"{file}\": give a file name without a folder, other \
                     than {}; each task has a folder of its own",
                    crate::results::RESULT
                ));
            }
        }
        if let Some(EarlyStop { keep, first, .. }) = &self.early_stop {
            if !(*keep > 0.0 && *keep < 1.0) {
                return Err(format!("[early_stop] keep = {keep}: give a share between 0 and 1"));
            }
            if *first == 0 {
                return Err("[early_stop] first = 0: give at least 1 recording".to_owned());
            }
        }
        if let Some(Split { parts }) = self.split {
            if !(2..=PARTS_MAX).contains(&parts) {
                return Err(format!("[split] parts = {parts}: give 2 to {PARTS_MAX} parts"));
            }
            if self.recordings.is_none() || self.outputs.len() != 1 {
                let outputs = self.outputs.len();
                return Err(format!(
                    "[split] needs `recordings` and exactly one file below [outputs], and there \
                     are {outputs}: name the transport stream"
                ));
            }
        }
        self.settings().map(drop)
    }

    /// Returns the names of the swept parameters.
    pub fn swept(&self) -> impl Iterator<Item = &str> {
        self.sweep.keys().map(String::as_str)
    }

    /// Returns every combination of the swept parameters, each with the parameters that all share.
    pub(crate) fn settings(&self) -> Result<Vec<Setting>, String> {
        let mut shared = Setting::new();
        for (name, value) in &self.parameters {
            shared.insert(name.clone(), text_of(&format!("[parameters] {name}"), value)?);
        }
        let mut settings = vec![shared];
        for (name, values) in &self.sweep {
            let values = values.texts(&format!("[sweep] {name}"))?;
            let with = |setting: &Setting, value: &String| {
                let mut setting = setting.clone();
                setting.insert(name.clone(), value.clone());
                setting
            };
            if settings.len().saturating_mul(values.len()) > VALUES_MAX {
                return Err(format!("[sweep] has more than {VALUES_MAX} combinations: use fewer"));
            }
            settings = settings
                .iter()
                .flat_map(|setting| values.iter().map(move |value| with(setting, value)))
                .collect();
        }
        Ok(settings)
    }
}

impl SweptValues {
    fn texts(&self, key: &str) -> Result<Vec<String>, String> {
        let values = match self {
            Self::List(list) => {
                list.iter().map(|value| text_of(key, value)).collect::<Result<Vec<_>, _>>()?
            }
            Self::Range(range) => range.texts(key)?,
        };
        let mut seen = HashSet::new();
        match values.iter().find(|value| !seen.insert(*value)) {
            Some(twice) => Err(format!("{key} has the value {twice} twice: give it once")),
            None if values.is_empty() => Err(format!("{key} has no value: give at least one")),
            None => Ok(values),
        }
    }
}

impl SweptRange {
    fn texts(&self, key: &str) -> Result<Vec<String>, String> {
        let Self { from, to, step } = self;
        let steps = ((to - from) / step + 1e-9).floor();
        if !steps.is_finite() || steps < 0.0 || *step == 0.0 {
            return Err(format!(
                "{key}: from {from} to {to} in steps of {step} leads nowhere: give a step that \
                 leads from `from` to `to`"
            ));
        }
        if steps >= VALUES_MAX as f64 {
            return Err(format!("{key} has more than {VALUES_MAX} values: use a larger step"));
        }
        // Rounded, so that 0.1 + 2 · 0.1 is 0.3.
        let value = |n: u32| {
            let value = from + f64::from(n) * step;
            format!("{value:.12}").parse().unwrap_or(value)
        };
        Ok((0..=steps as u32).map(|n| value(n).to_string()).collect())
    }
}

/// A parameter's value as `--set` takes it.
fn text_of(key: &str, value: &toml::Value) -> Result<String, String> {
    Ok(match value {
        toml::Value::String(text) => text.clone(),
        toml::Value::Integer(n) => n.to_string(),
        toml::Value::Float(x) => x.to_string(),
        toml::Value::Boolean(b) => b.to_string(),
        other => {
            let found = other.type_str();
            return Err(format!("{key}: give text, a number, true or false, not a {found}"));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Manifest, String> {
        let text = format!("graph = \"g.toml\"\n{text}");
        Manifest::parse(Path::new("m.toml"), &text).map_err(|error| error.to_string())
    }

    #[test]
    fn every_combination_is_a_setting() {
        let manifest = parse(
            "[parameters]\nrate = 6.25e6\n[sweep]\nmode = [\"a\", \"b\"]\n\
             mu = { from = 0.1, to = 0.3, step = 0.1 }\n",
        )
        .unwrap();
        let settings = manifest.settings().unwrap();
        let shown: Vec<_> = settings.iter().map(|s| format!("{} {}", s["mode"], s["mu"])).collect();
        assert_eq!(shown, ["a 0.1", "a 0.2", "a 0.3", "b 0.1", "b 0.2", "b 0.3"]);
        assert!(settings.iter().all(|setting| setting["rate"] == "6250000"));
        assert_eq!(parse("").unwrap().settings().unwrap(), [Setting::new()]);
    }

    #[test]
    fn what_is_wrong_is_told_with_what_to_write() {
        for (text, part) in [
            ("speed = 3", "unknown field `speed`"),
            ("[sweep]\na = 1", "expected a list such as [1, 2]"),
            ("[sweep]\na = []", "[sweep] a has no value: give at least one"),
            ("[sweep]\na = [1, 1]", "[sweep] a has the value 1 twice: give it once"),
            ("[sweep]\na = { from = 0, to = 1, step = 0 }", "leads nowhere: give a step"),
            ("[sweep]\na = { from = 0, to = 1, step = -1 }", "leads nowhere"),
            ("[sweep]\na = { from = 0, to = 1, step = 1e-9 }", "use a larger step"),
            ("[parameters]\na = [1]", "[parameters] a: give text, a number, true or false"),
            ("[parameters]\na = 1\n[sweep]\na = [1]", "`a` is set by [parameters] and by [sweep]"),
            ("recordings = [\"x\"]\n[parameters]\nin = 1", "`in` is set by the recording and by"),
            ("[outputs]\nout = \"../a\"", "give a file name without a folder"),
            ("[outputs]\nout = \"result.json\"", "other than result.json"),
            ("[early_stop]\nvalue = \"x\"\nkeep = 1", "keep = 1: give a share between 0 and 1"),
            ("[split]\nparts = 1", "[split] parts = 1: give 2 to 1000 parts"),
            ("[split]\nparts = 2", "and there are 0: name the transport stream"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
            assert!(error.starts_with("the manifest m.toml: "), "{error}");
        }
    }
}
