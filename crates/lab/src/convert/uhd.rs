//! UHD's own converters, through its `converter_benchmark` (Debian package `uhd-host`).

use super::{ConvertDirection, FormatPair, User, figures};
use millstream_radio::convert::Wire;
use millstream_stats::Summary;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// An upper bound of UHD's rates in a cache; it only decides how many runs fill the time.
const RATE_GUESS_HZ: f64 = 2e9;

/// The reason why UHD's converters could not be measured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The tool does not start.
    #[error("cannot run {}: {source}; give its path with --uhd-program, or leave it out with \
           --no-uhd",
        path.display())]
    Run {
        /// The tool.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// It failed, or printed no rates.
    #[error("{command} printed no rates: {said}; leave it out with --no-uhd")]
    NoRates {
        /// The command.
        command: String,
        /// The last line of its output.
        said: String,
    },
}

/// UHD's tool.
#[derive(Debug, Clone)]
pub struct Tool {
    path: PathBuf,
}

/// The rate of one of UHD's converters.
#[derive(Debug, Clone, Serialize)]
pub struct ConverterRate {
    /// UHD's name of the wire format.
    pub format: &'static str,
    /// UHD's number of the fastest implementation: 0 plain, 1 table, 2 and more SIMD.
    pub priority: u32,
    /// Million samples per second.
    pub msps: Summary,
}

/// Rates by format and implementation.
#[derive(Debug, Default)]
pub struct Rates(BTreeMap<(&'static str, u32), Vec<f64>>);

impl Rates {
    /// The fastest implementation of each format.
    pub(super) fn finish(self) -> Vec<ConverterRate> {
        let mut fastest = BTreeMap::<_, ConverterRate>::new();
        for ((format, priority), rates) in self.0 {
            let rate = ConverterRate { format, priority, msps: figures(&rates) };
            let faster = |held: &ConverterRate| held.msps.median < rate.msps.median;
            if fastest.get(format).is_none_or(faster) {
                fastest.insert(format, rate);
            }
        }
        fastest.into_values().collect()
    }
}

impl Tool {
    /// The tool at `path`.
    pub fn at(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    /// The tool at its usual paths, if it exists.
    pub fn find() -> Option<Self> {
        crate::uhd::installed("utils/converter_benchmark").map(|path| Self { path })
    }

    /// Measures every implementation of UHD's for this pair, for about `time` each.
    pub(super) fn measure(
        &self,
        pair: FormatPair,
        samples: usize,
        time: Duration,
        rates: &mut Rates,
    ) -> Result<(), Error> {
        let iterations = (time.as_secs_f64() * RATE_GUESS_HZ / samples as f64).ceil().max(1.0);
        for format in formats(pair) {
            let user = pair.user.name();
            let (from, to) = match pair.direction {
                ConvertDirection::Receive => (*format, user),
                ConvertDirection::Transmit => (user, *format),
            };
            let mut command = Command::new(&self.path);
            command.args(["--in", from, "--out", to, "--priorities", "all"]);
            command.args(["--samples", &samples.to_string()]);
            command.args(["--iterations", &format!("{iterations}")]);
            let output = command.output();
            let output = output.map_err(|source| Error::Run { path: self.path.clone(), source })?;
            let text = String::from_utf8_lossy(&output.stdout);
            let found = parse(&text);
            if found.is_empty() {
                let said = String::from_utf8_lossy(&output.stderr);
                let said = said.lines().chain(text.lines()).last().unwrap_or("nothing").to_owned();
                return Err(Error::NoRates { command: format!("{command:?}"), said });
            }
            for (priority, msps) in found {
                rates.0.entry((format, priority)).or_default().push(msps);
            }
        }
        Ok(())
    }
}

/// UHD's names of the formats that it can convert between. It has two 16-bit layouts: as devices
/// with CHDR send it (`sc16_chdr`), and as 32-bit items with I in the upper half.
fn formats(pair: FormatPair) -> &'static [&'static str] {
    match (pair.wire, pair.user) {
        (Wire::Sc16, User::Fc32 | User::Fc64 | User::Sc16) => &["sc16_chdr", "sc16_item32_le"],
        // The tool cannot make sc12 samples as input.
        (Wire::Sc12, User::Fc32 | User::Sc16) if pair.direction == ConvertDirection::Transmit => {
            &["sc12_item32_le"]
        }
        (Wire::Sc8, User::Fc32 | User::Fc64 | User::Sc16) => &["sc8_item32_le"],
        (Wire::Sc8, User::Sc8) => &["sc8_chdr", "sc8_item32_le"],
        _ => &[],
    }
}

/// Parses priority and million samples per second of each line `priority,ms,ms,samples,iterations`.
fn parse(text: &str) -> Vec<(u32, f64)> {
    let line = |line: &str| {
        let mut fields = line.split(',');
        let priority = fields.next()?.parse().ok()?;
        let mut number = || fields.next()?.parse::<f64>().ok().filter(|number| *number > 0.0);
        let (total_ms, _, samples, iterations) = (number()?, number()?, number()?, number()?);
        Some((priority, samples * iterations / total_ms / 1e3))
    };
    text.lines().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRINTED: &str = "{{{\nprio,duration_ms,avg_duration_ms,n_samples,iterations\n\
        0,572.931,0.000518503,362,1104972\n3,176.638,0.000159858,362,1104972\n}}}\n";

    #[test]
    fn the_tools_lines_are_understood() {
        let rates = parse(PRINTED);
        assert_eq!(rates.iter().map(|rate| rate.0).collect::<Vec<_>>(), [0, 3]);
        assert!((rates[1].1 - 2264.5).abs() < 0.5, "{rates:?}");
        assert!(parse("0,0,0,1,1\nError: x\n").is_empty());
    }

    #[test]
    fn the_fastest_implementation_by_median_counts() {
        let rates = [(("a", 0), vec![9.0, 1.0, 1.0]), (("a", 3), vec![2.0; 3])];
        let finished = Rates(rates.into()).finish();
        assert_eq!((finished.len(), finished[0].priority), (1, 3));
    }

    #[test]
    fn a_tool_that_is_none_is_an_error_that_says_what_to_do() {
        let pair = "wire:sc16>fc32".parse().unwrap();
        let tell = |path| {
            let tool = Tool::at(Path::new(path));
            let outcome = tool.measure(pair, 8, Duration::ZERO, &mut Rates::default());
            outcome.unwrap_err().to_string()
        };
        assert!(tell("/no/tool").starts_with("cannot run /no/tool: No such file"));
        assert!(tell("true").ends_with("printed no rates: nothing; leave it out with --no-uhd"));
    }
}
