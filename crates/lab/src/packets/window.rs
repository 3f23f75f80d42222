//! The counted part of a run: after the warm-up, before any side ends.

use serde::{Deserialize, Serialize};

use super::plan::Span;

/// The counts at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CountsAt {
    /// The moment, nanoseconds.
    pub at_ns: u64,
    /// Packets so far.
    pub packets: u64,
    /// CPU time of the process so far, nanoseconds.
    pub cpu_ns: u64,
    /// Idle time so far, nanoseconds.
    pub idle_ns: u64,
    /// Sleeps of the threads of the process so far.
    pub sleeps: u64,
    /// System calls that the end counted.
    pub calls: Option<u64>,
    /// System calls that the kernel's trace counted.
    pub traced: Option<u64>,
}

/// The counts of a window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct WindowCounts {
    /// Its length, seconds.
    pub seconds: f64,
    /// Packets.
    pub packets: u64,
    /// CPU time of the process, seconds.
    pub cpu_s: f64,
    /// Idle share of the time: no packet came, or the link took none.
    pub idle_share: f64,
    /// Wake-ups of the threads of the process, per packet.
    #[serde(default)]
    pub wakeups_per_packet: f64,
    /// System calls per packet by the end's own count.
    pub calls_per_packet: Option<f64>,
    /// System calls per packet by the kernel's trace.
    pub traced_per_packet: Option<f64>,
}

impl WindowCounts {
    /// Packets per second.
    #[must_use]
    pub fn rate(&self) -> f64 {
        if self.seconds > 0.0 { self.packets as f64 / self.seconds } else { 0.0 }
    }

    /// CPU time of the process over time, of all its threads.
    #[must_use]
    pub fn cpus(&self) -> f64 {
        self.cpu_s / self.seconds.max(1e-9)
    }

    /// CPU time per packet, nanoseconds.
    #[must_use]
    pub fn cpu_ns_per_packet(&self) -> f64 {
        self.cpu_s * 1e9 / self.packets.max(1) as f64
    }

    /// The difference of two moments.
    fn between(from: &CountsAt, to: &CountsAt) -> Self {
        let ns = to.at_ns.saturating_sub(from.at_ns);
        let packets = to.packets - from.packets;
        let per_packet = |from: Option<u64>, to: Option<u64>| {
            Some((to?.saturating_sub(from?)) as f64 / packets.max(1) as f64)
        };
        Self {
            seconds: ns as f64 / 1e9,
            packets,
            cpu_s: to.cpu_ns.saturating_sub(from.cpu_ns) as f64 / 1e9,
            idle_share: to.idle_ns.saturating_sub(from.idle_ns) as f64 / ns.max(1) as f64,
            wakeups_per_packet: (to.sleeps - from.sleeps) as f64 / packets.max(1) as f64,
            calls_per_packet: per_packet(from.calls, to.calls),
            traced_per_packet: per_packet(from.traced, to.traced),
        }
    }
}

/// A window that begins with the first packet and counts after the warm-up.
#[derive(Debug)]
pub struct MeasuringWindow {
    span: Span,
    phase: Phase,
}

#[derive(Debug)]
enum Phase {
    /// It waits for the first packet.
    Waiting,
    Warming {
        until_ns: u64,
    },
    Counting {
        from: CountsAt,
    },
    Over(WindowCounts),
}

impl MeasuringWindow {
    /// Creates a window that has not begun.
    #[must_use]
    pub fn new(span: Span) -> Self {
        Self { span, phase: Phase::Waiting }
    }

    /// Advances the time; calls `moment` only when counts are needed.
    pub fn step(&mut self, now_ns: u64, any_packet: bool, moment: impl FnOnce() -> CountsAt) {
        match &self.phase {
            Phase::Waiting if any_packet => {
                self.phase = Phase::Warming { until_ns: now_ns + self.span.warm_ns };
            }
            Phase::Warming { until_ns } if now_ns >= *until_ns => {
                self.phase = Phase::Counting { from: moment() };
            }
            Phase::Counting { from } if now_ns >= from.at_ns + self.span.measure_ns => {
                self.phase = Phase::Over(WindowCounts::between(from, &moment()));
            }
            _ => {}
        }
    }

    /// Returns the counts; a window that is not over ends now.
    pub fn end(self, moment: impl FnOnce() -> CountsAt) -> WindowCounts {
        match self.phase {
            Phase::Over(counted) => counted,
            Phase::Counting { from } => WindowCounts::between(&from, &moment()),
            Phase::Waiting | Phase::Warming { .. } => WindowCounts::default(),
        }
    }
}

/// The sum of idle time.
#[derive(Debug, Default)]
pub struct IdleShare {
    total_ns: u64,
    since_ns: Option<u64>,
}

impl IdleShare {
    /// Notes whether there was work.
    pub fn note(&mut self, now_ns: u64, did: bool) {
        match (did, self.since_ns) {
            (true, Some(since_ns)) => {
                self.total_ns += now_ns - since_ns;
                self.since_ns = None;
            }
            (false, None) => self.since_ns = Some(now_ns),
            _ => {}
        }
    }

    /// The start of the present idle time.
    #[must_use]
    pub fn since_ns(&self) -> Option<u64> {
        self.since_ns
    }

    /// The sum up to now.
    #[must_use]
    pub fn total_ns(&self, now_ns: u64) -> u64 {
        self.total_ns + self.since_ns.map_or(0, |since_ns| now_ns - since_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPAN: Span = Span { warm_ns: 100, measure_ns: 1000, tail_ns: 50 };

    #[test]
    fn only_the_middle_counts() {
        let mut window = MeasuringWindow::new(SPAN);
        let moment = |at_ns, packets| CountsAt {
            at_ns,
            packets,
            cpu_ns: at_ns / 2,
            sleeps: packets / 5,
            calls: Some(packets * 2),
            ..CountsAt::default()
        };
        window.step(5, false, || unreachable!("nothing has come"));
        window.step(10, true, || unreachable!("it warms"));
        window.step(109, true, || unreachable!("it still does"));
        window.step(110, true, || moment(110, 50));
        window.step(1109, true, || unreachable!("it counts"));
        window.step(1110, true, || moment(1110, 550));
        window.step(5000, true, || unreachable!("it is over"));
        let counted = window.end(|| unreachable!("it is over"));
        assert_eq!((counted.packets, counted.rate()), (500, 0.5e9));
        assert_eq!((counted.cpu_ns_per_packet(), counted.calls_per_packet), (1.0, Some(2.0)));
        assert_eq!(counted.wakeups_per_packet, 0.2);
        assert_eq!(counted.traced_per_packet, None);
    }

    #[test]
    fn a_window_that_never_began_is_empty() {
        let counted = MeasuringWindow::new(SPAN).end(|| unreachable!());
        assert_eq!((counted.rate(), counted.packets), (0.0, 0));
    }

    #[test]
    fn idle_time_is_between_the_last_deed_and_the_next() {
        let mut idle = IdleShare::default();
        for (at, did) in [(10, true), (20, false), (30, false), (50, true), (60, false)] {
            idle.note(at, did);
        }
        assert_eq!((idle.total_ns(60), idle.total_ns(65), idle.since_ns()), (30, 35, Some(60)));
    }
}
