//! A test of the explanations: injected causes must be named, and no cause may be named that was
//! not there.

use super::flood;
use super::watched::{LookoutError, WatchedThread};
use crate::helper::HelperProcess;
use crate::named::named;
use millstream_cpu::sched::{self, Class};
use millstream_cpu::thread::{name_current_thread, pin_current_thread};
use millstream_measure::explained::{Explanation, LateCause};
use rustix::process::{Pid, Signal, kill_process};
use serde::Serialize;
use std::io;
use std::process::Command;
use std::time::{Duration, Instant};

/// An injected cause.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Injection {
    /// Nothing.
    Nothing,
    /// A thread of higher priority that spins for [`HOG`].
    Hog,
    /// A flood of network interrupts.
    Flood,
    /// All pages of the thread's work are missing.
    PageFaults,
    /// The thread is stopped for [`STOP`].
    Stop,
}

/// The time for which the hog spins.
pub const HOG: Duration = Duration::from_millis(5);
/// The time for which the thread is stopped.
pub const STOP: Duration = Duration::from_millis(5);
/// The name of the hog's thread.
const HOG_NAME: &str = "ms-hog";
/// Longest wait for an outlier.
const PATIENCE: Duration = Duration::from_millis(500);
/// Longest flood: its sender shares a CPU with other programs.
const FLOOD_MAX: Duration = Duration::from_secs(3);
/// Length of a trial without a cause.
const CALM: Duration = Duration::from_millis(150);

named!(
    Injection,
    5,
    [
        (Nothing, "nothing"),
        (Hog, "FIFO hog, 5 ms"),
        (Flood, "network flood"),
        (PageFaults, "page-fault storm"),
        (Stop, "stopped, 5 ms"),
    ]
);

impl Injection {
    /// Whether an explanation names it.
    #[must_use]
    pub fn is_named_by(self, found: &Explanation) -> bool {
        match self {
            Self::Nothing => false,
            Self::Hog => found.cause == LateCause::Rival && found.who.starts_with(HOG_NAME),
            Self::Flood => {
                let is_network = found.who == "NET_RX" || found.who.starts_with("ksoftirqd/");
                found.cause == LateCause::SoftInterrupt && is_network
            }
            Self::PageFaults => found.cause == LateCause::PageFault,
            Self::Stop => found.cause == LateCause::Stopped,
        }
    }
}

/// One trial.
#[derive(Clone, Debug, Serialize)]
pub struct CauseTrial {
    /// The injected cause.
    pub injected: Injection,
    /// The explanation; `None`: no answer was late.
    pub found: Option<Explanation>,
    /// Whether the explanation is right.
    pub right: bool,
}

impl CauseTrial {
    fn judge(injected: Injection, found: Option<Explanation>) -> Self {
        let right = match (injected, &found) {
            (Injection::Nothing, None) => true,
            // The machine's own outliers are real; only an injected cause without injection is
            // wrong.
            (Injection::Nothing, Some(found)) => {
                !Injection::ALL.iter().any(|other| other.is_named_by(found))
            }
            (_, None) => false,
            (_, Some(found)) => injected.is_named_by(found),
        };
        Self { injected, found, right }
    }
}

/// Makes the command of a process that calls [`flood::serve`]: from a CPU onto another.
pub type StartFlood = fn(from: usize, onto: usize) -> io::Result<Command>;

/// A watched thread, and what delays it on purpose.
#[derive(Debug)]
pub struct CauseTrials<'l> {
    lookout: &'l mut WatchedThread,
    cpu: usize,
    flood: HelperProcess,
}

impl<'l> CauseTrials<'l> {
    /// Prepares trials of the thread on `cpu`.
    ///
    /// # Errors
    /// [`LookoutError`].
    pub fn prepare(
        lookout: &'l mut WatchedThread,
        cpu: usize,
        start_flood: StartFlood,
    ) -> Result<Self, LookoutError> {
        let cpus = millstream_cpu::thread::allowed_cpus()?;
        let from = cpus.iter().find(|other| *other != cpu).unwrap_or(cpu);
        let flood = HelperProcess::start(start_flood(from, cpu)?, None)?;
        match flood.read_line(Duration::from_secs(10))? {
            Some(line) if line == flood::READY => Ok(Self { lookout, cpu, flood }),
            other => {
                let text = other.unwrap_or_else(|| "it says nothing".to_owned());
                let text = format!("cannot start the flood of packets: {text}");
                Err(io::Error::other(text).into())
            }
        }
    }

    /// Plays one trial.
    ///
    /// # Errors
    /// [`LookoutError`].
    pub fn play(&mut self, injected: Injection) -> Result<CauseTrial, LookoutError> {
        self.lookout.arm()?;
        let found = inject(injected, self.lookout, self.cpu, &mut self.flood)?;
        Ok(CauseTrial::judge(injected, found))
    }
}

fn inject(
    what: Injection,
    lookout: &mut WatchedThread,
    cpu: usize,
    flood: &mut HelperProcess,
) -> Result<Option<Explanation>, LookoutError> {
    match what {
        Injection::Nothing => return lookout.wait(CALM),
        Injection::Hog => hog(cpu)?,
        Injection::Flood => {
            flood.say("on")?;
            let found = lookout.wait(FLOOD_MAX);
            flood.say("off")?;
            // Packets in flight must not reach the next trial.
            std::thread::sleep(Duration::from_millis(50));
            return found;
        }
        Injection::PageFaults => return page_faults(lookout),
        Injection::Stop => stop(lookout.pid())?,
    }
    lookout.wait(PATIENCE)
}

/// Drops the pages; repeats where the machine itself was late before they were missing, because
/// that does not test the injection.
fn page_faults(lookout: &mut WatchedThread) -> Result<Option<Explanation>, LookoutError> {
    const TRIES: usize = 5;
    for _ in 1..TRIES {
        lookout.take_pages()?;
        let found = lookout.wait(PATIENCE)?;
        if lookout.last().is_none_or(|late| late.pages_gone) {
            return Ok(found);
        }
        lookout.arm()?;
    }
    lookout.take_pages()?;
    lookout.wait(PATIENCE)
}

/// Spins on a CPU above all other threads.
fn hog(cpu: usize) -> io::Result<()> {
    let spin = move || -> io::Result<()> {
        let _ = name_current_thread(HOG_NAME);
        pin_current_thread(cpu).map_err(io::Error::other)?;
        sched::set_current_thread(Class::Fifo(98)).map_err(io::Error::other)?;
        // A trace records its name and priority when it gets the CPU.
        std::thread::sleep(Duration::from_millis(1));
        let start = Instant::now();
        while start.elapsed() < HOG {
            std::hint::spin_loop();
        }
        Ok(())
    };
    std::thread::spawn(spin).join().map_err(|_| {
        io::Error::other("the test thread that should keep the CPU busy has panicked")
    })?
}

fn stop(pid: i32) -> io::Result<()> {
    let pid = Pid::from_raw(pid).ok_or(io::ErrorKind::NotFound)?;
    kill_process(pid, Signal::STOP)?;
    std::thread::sleep(STOP);
    Ok(kill_process(pid, Signal::CONT)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(cause: LateCause, who: &str) -> Explanation {
        let (shares, evidence) = (Vec::new(), Vec::new());
        Explanation { late_us: 1.0, cause, who: who.to_owned(), shares, evidence }
    }

    #[test]
    fn a_cause_is_right_only_by_its_own_name() {
        let hog = found(LateCause::Rival, "ms-hog (7), real time 98");
        assert!(CauseTrial::judge(Injection::Hog, Some(hog.clone())).right);
        for other in [Injection::Flood, Injection::PageFaults, Injection::Stop] {
            assert!(!CauseTrial::judge(other, Some(hog.clone())).right, "{other:?}");
        }
        assert!(!CauseTrial::judge(Injection::Nothing, Some(hog)).right, "an invention");
        let rustc = found(LateCause::Rival, "rustc (9)");
        assert!(!CauseTrial::judge(Injection::Hog, Some(rustc.clone())).right);
        assert!(CauseTrial::judge(Injection::Nothing, Some(rustc)).right, "the machine's own");
        let network = found(LateCause::SoftInterrupt, "NET_RX");
        assert!(CauseTrial::judge(Injection::Flood, Some(network)).right);
        let timer = found(LateCause::SoftInterrupt, "TIMER");
        assert!(!CauseTrial::judge(Injection::Flood, Some(timer)).right);
    }

    #[test]
    fn an_outlier_that_never_came_is_right_for_nothing_only() {
        assert!(CauseTrial::judge(Injection::Nothing, None).right);
        assert!(!CauseTrial::judge(Injection::Stop, None).right);
    }
}
