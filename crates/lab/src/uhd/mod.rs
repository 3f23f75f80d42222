//! UHD's `benchmark_rate` as a peer: run, timed and read. Only this program of UHD is used.

mod summary;

pub use summary::{SummaryError, UhdSummary};

use crate::Direction;
use millstream_host::child::{cpu_time_s, tie};
use serde::Serialize;
use std::io::{self, BufRead, BufReader, Read};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// The usual folders of UHD's programs.
const FOLDERS: [&str; 3] = ["/usr/libexec/uhd", "/usr/lib/uhd", "/usr/local/lib/uhd"];
/// Largest time beyond the duration of the measurement.
const PATIENCE: Duration = Duration::from_secs(30);
/// Samples that may be missing because streaming begins a little after the clock of the
/// measurement: a share of all, and a time.
const MISSING_SHARE: f64 = 0.02;
const START_S: f64 = 0.25;

/// One run of the program.
#[derive(Debug, Clone)]
pub struct BenchmarkRate {
    /// The program.
    pub program: PathBuf,
    /// The radio.
    pub addr: Ipv4Addr,
    /// The measured direction.
    pub direction: Direction,
    /// Samples per second of each channel.
    pub rate_hz: f64,
    /// Channels of the radio.
    pub channels: Vec<usize>,
    /// Duration.
    pub duration: Duration,
    /// The CPU that it runs on; `None`: any.
    pub cpu: Option<usize>,
}

/// The result of a run.
#[derive(Debug, Clone, Serialize)]
pub struct UhdResult {
    /// The printed summary.
    pub summary: UhdSummary,
    /// Whether no sample was lost, late or timed out, and the number of samples is right.
    pub lossless: bool,
    /// CPU time of its process while it streamed.
    pub cpu_s: f64,
    /// The same for 10⁹ samples.
    pub cpu_s_per_gigasample: f64,
}

/// The reason why there is no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UhdError {
    /// The program is not installed.
    #[error(
        "UHD's benchmark_rate is not at a usual path: install it (Debian: apt-get install \
         uhd-host), or give its path with --uhd-program"
    )]
    NotInstalled,
    /// The program cannot be run.
    #[error("cannot run {}: {source}", program.display())]
    Run {
        /// The program.
        program: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The program hung and was killed.
    #[error("{} did not end within {after_s:.0} s and was stopped", program.display())]
    Hung {
        /// The program.
        program: PathBuf,
        /// The time that it had.
        after_s: f64,
    },
    /// It ended without a summary.
    #[error(transparent)]
    Summary(#[from] SummaryError),
}

/// Finds the program at the usual paths.
///
/// # Errors
/// [`UhdError::NotInstalled`].
pub fn find() -> Result<PathBuf, UhdError> {
    installed("examples/benchmark_rate").ok_or(UhdError::NotInstalled)
}

/// Finds a program below the usual folders.
pub(crate) fn installed(program: &str) -> Option<PathBuf> {
    FOLDERS.map(|folder| Path::new(folder).join(program)).into_iter().find(|path| path.exists())
}

impl BenchmarkRate {
    /// Runs it to its end.
    ///
    /// # Errors
    /// [`UhdError`].
    pub fn run(&self) -> Result<UhdResult, UhdError> {
        let failed = |source| UhdError::Run { program: self.program.clone(), source };
        if !self.program.exists() {
            return Err(failed(io::ErrorKind::NotFound.into()));
        }
        let mut child = self.command().spawn().map_err(failed)?;
        let pid = child.id();
        let stdout = child.stdout.take().expect("it was asked for");
        let mut stderr = child.stderr.take().expect("it was asked for");
        let listener = std::thread::spawn(move || listen(stdout, pid));
        // Letters and warnings: read so that the pipe does not fill, stored for the error.
        let complaints = std::thread::spawn(move || {
            let mut bytes = Vec::new();
            let _ = stderr.read_to_end(&mut bytes);
            String::from_utf8_lossy(&bytes).into_owned()
        });
        let ended = self.wait(&mut child).map_err(failed)?;
        let (text, cpu_s) = listener.join().expect("it does not panic");
        let complaints = complaints.join().expect("it does not panic");
        if !ended {
            let after_s = (self.duration + PATIENCE).as_secs_f64();
            return Err(UhdError::Hung { program: self.program.clone(), after_s });
        }
        let summary = UhdSummary::parse(&text, &complaints)?;
        Ok(self.judge(summary, cpu_s.unwrap_or_default()))
    }

    fn command(&self) -> Command {
        let channels: Vec<_> = self.channels.iter().map(ToString::to_string).collect();
        let direction = match self.direction {
            Direction::Rx => "--rx_rate",
            Direction::Tx => "--tx_rate",
        };
        // Line by line, so that the time of each message is known.
        let mut command = Command::new("stdbuf");
        command
            .arg("-oL")
            .arg(&self.program)
            .args(["--args", &format!("addr={}", self.addr)])
            .args([direction, &self.rate_hz.to_string()])
            .args(["--duration", &self.duration.as_secs_f64().to_string()])
            .args(["--channels", &channels.join(",")])
            .args(["--rx_cpu", "fc32", "--tx_cpu", "fc32"])
            .args(["--overrun-threshold", "0", "--underrun-threshold", "0"])
            .args(["--drop-threshold", "0", "--seq-threshold", "0"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        tie(&mut command, self.cpu);
        command
    }

    /// Returns false when it had to be killed.
    fn wait(&self, child: &mut Child) -> io::Result<bool> {
        let until = Instant::now() + self.duration + PATIENCE;
        while Instant::now() < until {
            if child.try_wait()?.is_some() {
                return Ok(true);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        child.kill()?;
        child.wait().map(|_| false)
    }

    fn judge(&self, summary: UhdSummary, cpu_s: f64) -> UhdResult {
        let samples = match self.direction {
            Direction::Rx => summary.received,
            Direction::Tx => summary.transmitted,
        };
        let seconds = (self.duration.as_secs_f64() * (1.0 - MISSING_SHARE) - START_S).max(0.0);
        let enough = seconds * self.rate_hz * self.channels.len() as f64;
        let lossless = summary.troubles() == 0 && samples as f64 >= enough && samples > 0;
        let cpu_s_per_gigasample = cpu_s / samples.max(1) as f64 * 1e9;
        UhdResult { summary, lossless, cpu_s, cpu_s_per_gigasample }
    }
}

/// Reads its output, and its CPU time between the start of streaming and its end.
fn listen(stdout: ChildStdout, pid: u32) -> (String, Option<f64>) {
    let (mut text, mut before, mut after) = (String::new(), None, None);
    for line in BufReader::new(stdout).lines().map_while(Result::ok) {
        if line.contains("] Testing ") {
            before = before.or_else(|| cpu_time_s(pid));
        } else if line.contains("Benchmark complete") {
            after = cpu_time_s(pid);
        }
        text += &line;
        text.push('\n');
    }
    (text, before.zip(after).map(|(before, after)| after - before))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(rate_hz: f64) -> BenchmarkRate {
        BenchmarkRate {
            program: PathBuf::from("/nonexistent/benchmark_rate"),
            addr: Ipv4Addr::LOCALHOST,
            direction: Direction::Rx,
            rate_hz,
            channels: vec![0, 1],
            duration: Duration::from_secs(2),
            cpu: None,
        }
    }

    #[test]
    fn too_few_samples_are_a_loss_even_if_nobody_complains() {
        let of = |received| {
            let summary = UhdSummary { received, ..UhdSummary::default() };
            run(20e6).judge(summary, 0.39).lossless
        };
        assert!(of(78_011_034), "what it receives in 2 s at 2 x 20 MS/s");
        assert!(!of(60_000_000));
        let late = UhdSummary { received: 80_000_000, late: 1, ..UhdSummary::default() };
        assert!(!run(20e6).judge(late, 0.39).lossless);
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let error = run(1e6).run().unwrap_err().to_string();
        assert!(error.starts_with("cannot run /nonexistent/benchmark_rate: "), "{error}");
    }
}
