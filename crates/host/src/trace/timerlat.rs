//! The kernel's tracer `timerlat` (Documentation/trace/timerlat-tracer.rst): on each CPU a timer
//! interrupt, and a thread of the kernel that it wakes, both with their latency.
//!
//! ```text
//!     <idle>-0       [001] d.h1.  54.029328: #1     context    irq timer_latency       932 ns
//!      <...>-867     [001] .....  54.029339: #1     context thread timer_latency     11700 ns
//! ```

use super::line::split_at_cpu;
use super::{Instance, TraceError};
use crate::journal::{Changes, Journal};
use millstream_cpu::CpuSet;
use std::fs::{self, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

/// The tracer's name.
const TRACER: &str = "timerlat";
/// Kibibytes of the ring of each CPU: some tenths of a second at the shortest period.
const RING_KIB: u32 = 1024;
/// The shortest and the longest period that the kernel takes, microseconds.
pub const TIMERLAT_PERIODS_US: std::ops::RangeInclusive<u64> = 100..=1_000_000;

/// The place at which a latency was taken.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum TimerlatContext {
    /// In the handler of the timer's interrupt.
    Interrupt,
    /// In the kernel's thread, which the interrupt wakes.
    Thread,
}

/// A latency.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimerlatEvent {
    /// The CPU.
    pub cpu: usize,
    /// The time, nanoseconds of CLOCK_MONOTONIC.
    pub at_ns: u64,
    /// The number of the interrupt, which both lines of it have.
    pub number: u64,
    /// The place.
    pub context: TimerlatContext,
    /// From the time of the timer on, nanoseconds.
    pub latency_ns: u64,
}

/// A line of the tracer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TimerlatLine {
    /// A latency.
    Event(TimerlatEvent),
    /// The ring was full: events of one CPU are missing.
    Lost(u64),
    /// A heading, or nothing.
    Empty,
    /// None of these.
    Malformed,
}

impl TimerlatLine {
    /// Reads a line of the file `trace` or `trace_pipe`.
    #[must_use]
    pub fn parse(line: &str) -> Self {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            return Self::Empty;
        }
        lost(line)
            .map(Self::Lost)
            .or_else(|| event(line).map(Self::Event))
            .unwrap_or(Self::Malformed)
    }
}

/// Reads `CPU:1 [LOST 7 EVENTS]`.
fn lost(line: &str) -> Option<u64> {
    let (_, rest) = line.strip_prefix("CPU:")?.split_once("[LOST ")?;
    rest.strip_suffix(" EVENTS]")?.parse().ok()
}

fn event(line: &str) -> Option<TimerlatEvent> {
    let (_, _, cpu, rest) = split_at_cpu(line)?;
    let (_flags, rest) = rest.trim_start().split_once(' ')?;
    let (seconds, rest) = rest.trim_start().split_once(": ")?;
    let mut words = rest.split_whitespace();
    let mut word = || words.next();
    let number = word()?.strip_prefix('#')?.parse().ok()?;
    let (_, context, _) = (word().filter(|word| *word == "context")?, word()?, word()?);
    let context = match context {
        "irq" => TimerlatContext::Interrupt,
        "thread" => TimerlatContext::Thread,
        _ => return None,
    };
    let latency_ns = word()?.parse().ok()?;
    word().filter(|unit| *unit == "ns")?;
    // As whole numbers: a sum of digits must not round.
    let (whole, part) = seconds.split_once('.')?;
    let micros = whole.parse::<u64>().ok()?.checked_mul(1_000_000)?;
    let at_us = micros.checked_add(part.parse().ok().filter(|_| part.len() == 6)?)?;
    Some(TimerlatEvent { cpu, at_ns: at_us.checked_mul(1000)?, number, context, latency_ns })
}

/// The running tracer, in a ring of its own. It ends, and its settings are restored, on drop.
#[derive(Debug)]
pub struct Timerlat {
    // In the order in which they must end: an open file keeps the ring.
    pipe: fs::File,
    instance: Instance,
    _settings: Changes,
    /// The beginning of a line.
    rest: Vec<u8>,
}

impl Timerlat {
    /// Starts it on some CPUs, with a period in [`TIMERLAT_PERIODS_US`].
    ///
    /// # Errors
    /// [`TraceError`], with the remedy.
    pub fn start(cpus: &CpuSet, period_us: u64) -> Result<Self, TraceError> {
        let instance = Instance::create(RING_KIB)?;
        let path = instance.folder.join("available_tracers");
        let tracers = fs::read_to_string(&path)
            .map_err(|source| TraceError::File { path, source })?
            .trim()
            .to_owned();
        if !tracers.split_whitespace().any(|tracer| tracer == TRACER) {
            return Err(TraceError::NoTimerlat { tracers });
        }
        // They hold for all rings.
        let folder = instance.mount().join("osnoise");
        let mut settings = Changes::new(&Journal::of_process());
        settings.write_file(&folder.join("cpus"), &cpus.to_string())?;
        settings.write_file(&folder.join("timerlat_period_us"), &period_us.to_string())?;
        instance.set("current_tracer", TRACER)?;
        let path = instance.folder.join("trace_pipe");
        let pipe = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(&path);
        let pipe = pipe.map_err(|source| TraceError::File { path, source })?;
        instance.set("tracing_on", "1")?;
        Ok(Self { pipe, instance, _settings: settings, rest: Vec::new() })
    }

    /// Passes on the lines that have come since the last call.
    ///
    /// # Errors
    /// [`TraceError::File`].
    pub fn read(&mut self, mut each: impl FnMut(TimerlatLine)) -> Result<(), TraceError> {
        let mut bytes = [0; 1 << 16];
        loop {
            let count = match self.pipe.read(&mut bytes) {
                Ok(0) => return Ok(()),
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(source) => return Err(self.failed(source)),
            };
            for byte in &bytes[..count] {
                if *byte == b'\n' {
                    each(TimerlatLine::parse(&String::from_utf8_lossy(&self.rest)));
                    self.rest.clear();
                } else {
                    self.rest.push(*byte);
                }
            }
        }
    }

    /// Stops it; what it has recorded can still be read.
    ///
    /// # Errors
    /// [`TraceError::File`].
    pub fn stop(&self) -> Result<(), TraceError> {
        self.instance.stop()
    }

    fn failed(&self, source: io::Error) -> TraceError {
        TraceError::File { path: PathBuf::from("trace_pipe"), source }
    }
}

impl Drop for Timerlat {
    fn drop(&mut self) {
        // Its threads end before the CPUs on which they run are restored.
        let _ = self.instance.stop();
        let _ = self.instance.set("current_tracer", "nop");
    }
}

#[cfg(test)]
mod tests {
    use super::super::MOUNTS;
    use super::*;

    const IRQ: &str = "          <idle>-0       [001] d.h1.    54.029328: #1     context    irq \
                       timer_latency       932 ns";

    #[test]
    fn both_lines_of_an_interrupt_are_read() {
        let event = |line: &str| match TimerlatLine::parse(line) {
            TimerlatLine::Event(event) => event,
            other => panic!("{line}: {other:?}"),
        };
        let interrupt = TimerlatEvent {
            cpu: 1,
            at_ns: 54_029_328_000,
            number: 1,
            context: TimerlatContext::Interrupt,
            latency_ns: 932,
        };
        assert_eq!(event(IRQ), interrupt);
        // Names of threads hold any text.
        let line =
            " a [2] b-867   [013] .....    54.029339: #77 context thread timer_latency 11700 ns";
        let context = TimerlatContext::Thread;
        let (cpu, number, at_ns) = (13, 77, 54_029_339_000);
        let thread = TimerlatEvent { cpu, at_ns, number, context, latency_ns: 11_700 };
        assert_eq!(event(line), thread);
    }

    #[test]
    fn other_lines_are_told_apart() {
        let parse = TimerlatLine::parse;
        assert_eq!(parse("# tracer: timerlat"), TimerlatLine::Empty);
        assert_eq!(parse("  "), TimerlatLine::Empty);
        assert_eq!(parse("CPU:1 [LOST 4711 EVENTS]"), TimerlatLine::Lost(4711));
        for wrong in [
            "CPU:1 [LOST many EVENTS]",
            &IRQ.replace("#1", "1"),
            &IRQ.replace("irq", "soft"),
            &IRQ.replace("932", "-932"),
            &IRQ.replace(" ns", ""),
            &IRQ.replace("54.029328", "54.0293"),
            &IRQ.replace("54.029328", "99999999999999999999.029328"),
            &IRQ.replace("[001]", "[cpu]"),
            &IRQ[..40],
        ] {
            assert_eq!(parse(wrong), TimerlatLine::Malformed, "{wrong}");
        }
    }

    #[test]
    fn a_kernel_without_it_says_where_it_is() {
        let error = TraceError::NoTimerlat { tracers: "function nop".to_owned() }.to_string();
        assert!(error.contains("only function nop") && error.contains("linux-image-rt"), "{error}");
    }

    #[test]
    fn its_settings_are_restored() {
        let cpus: CpuSet = "0".parse().unwrap();
        let settings = || {
            ["cpus", "timerlat_period_us"].map(|name| {
                let places = MOUNTS.map(|mount| format!("{mount}/osnoise/{name}"));
                places.iter().find_map(|path| fs::read_to_string(path).ok()).unwrap_or_default()
            })
        };
        let before = settings();
        let mut timerlat = match Timerlat::start(&cpus, 1000) {
            Ok(timerlat) => timerlat,
            Err(error) => {
                eprintln!("skipped: {error}");
                return;
            }
        };
        assert_eq!(settings().map(|text| text.trim().to_owned()), ["0", "1000"]);
        std::thread::sleep(std::time::Duration::from_millis(100));
        timerlat.stop().unwrap();
        let mut events = 0;
        timerlat.read(|line| events += u32::from(matches!(line, TimerlatLine::Event(_)))).unwrap();
        assert!(events > 10, "{events}");
        let folder = timerlat.instance.folder.clone();
        drop(timerlat);
        assert!(!folder.exists());
        assert_eq!(settings(), before);
    }
}
