//! Two ways to sleep to an absolute time, and how late the thread then runs.

use std::io;
use std::os::fd::OwnedFd;

use rustix::thread::clock_nanosleep_absolute;
use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime,
    timerfd_create, timerfd_settime,
};
use serde::{Deserialize, Serialize};

/// The way in which a thread sleeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mechanism {
    /// clock_nanosleep(2), absolute, on CLOCK_MONOTONIC.
    Nanosleep,
    /// A periodic timerfd_create(2) on the same clock, and read(2).
    Timerfd,
}

/// A wake-up.
#[derive(Debug, Clone, Copy)]
pub struct Woken {
    /// Now, nanoseconds of CLOCK_MONOTONIC.
    pub at_ns: u64,
    /// Since the deadline.
    pub late_ns: u64,
    /// Deadlines that passed meanwhile.
    pub missed: u64,
}

/// Deadlines at equal distances.
pub struct DeadlineTimer {
    deadline_ns: u64,
    interval_ns: u64,
    handicap_ns: u64,
    timer: Option<OwnedFd>,
}

impl DeadlineTimer {
    /// The first deadline is `first_ns` of CLOCK_MONOTONIC; `handicap_ns` is added to every sleep,
    /// to prove that a comparison finds it.
    ///
    /// # Errors
    /// The kernel's, of the timer.
    pub fn new(
        mechanism: Mechanism,
        first_ns: u64,
        interval_ns: u64,
        handicap_ns: u64,
    ) -> io::Result<Self> {
        let timer = match mechanism {
            Mechanism::Nanosleep => None,
            Mechanism::Timerfd => {
                let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)?;
                let it_value = timespec(first_ns + handicap_ns);
                let when = Itimerspec { it_interval: timespec(interval_ns), it_value };
                timerfd_settime(&timer, TimerfdTimerFlags::ABSTIME, &when)?;
                Some(timer)
            }
        };
        Ok(Self { deadline_ns: first_ns, interval_ns, handicap_ns, timer })
    }

    /// Sleeps to the next deadline, which is in the past when the last one was served very late.
    ///
    /// # Errors
    /// The kernel's.
    pub fn wait(&mut self) -> io::Result<Woken> {
        let expired = match &self.timer {
            None => {
                sleep_to(self.deadline_ns + self.handicap_ns)?;
                None
            }
            Some(timer) => {
                let mut count = [0; 8];
                rustix::io::retry_on_intr(|| rustix::io::read(timer, &mut count))?;
                Some(u64::from_ne_bytes(count))
            }
        };
        let at_ns = now_ns();
        let late_ns = at_ns.saturating_sub(self.deadline_ns);
        let served = late_ns.saturating_sub(self.handicap_ns);
        // The timer reports how many of its deadlines a read took; a sleep takes those that passed.
        let passed = expired.unwrap_or(served / self.interval_ns + 1);
        self.deadline_ns += passed * self.interval_ns;
        Ok(Woken { at_ns, late_ns, missed: passed - 1 })
    }
}

/// A periodic timer.
pub struct Beat(DeadlineTimer);

impl Beat {
    /// Starts now.
    #[must_use]
    pub fn every_ns(interval_ns: u64) -> Self {
        let interval_ns = interval_ns.max(1);
        Self(DeadlineTimer {
            deadline_ns: now_ns() + interval_ns,
            interval_ns,
            handicap_ns: 0,
            timer: None,
        })
    }

    /// Sleeps to the next deadline; returns the lateness, nanoseconds.
    ///
    /// # Errors
    /// The kernel's.
    pub fn wait(&mut self) -> io::Result<u64> {
        self.0.wait().map(|woken| woken.late_ns)
    }
}

/// Sleeps to a moment of CLOCK_MONOTONIC, nanoseconds, despite signals.
///
/// # Errors
/// The kernel's.
pub fn sleep_to(deadline_ns: u64) -> io::Result<()> {
    let until = timespec(deadline_ns);
    rustix::io::retry_on_intr(|| clock_nanosleep_absolute(ClockId::Monotonic, &until))?;
    Ok(())
}

/// CLOCK_MONOTONIC, nanoseconds.
#[must_use]
pub fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

fn timespec(ns: u64) -> Timespec {
    let (tv_sec, tv_nsec) = (ns / 1_000_000_000, ns % 1_000_000_000);
    Timespec { tv_sec: tv_sec as _, tv_nsec: tv_nsec as _ }
}
