//! The stations of a turnaround, from the kernel's trace: which part of it passes between a wake-up
//! and the thread's start, and which part in the radio's and in the host's own work.
//!
//! ```text
//!   timer ─▶ radio woken ─▶ radio runs ─▶ host woken ─▶ host runs ─▶ radio woken ─▶ radio runs
//!            └ wake-up ─────┘ sends ──────┘ wake-up ────┘ answers ───┘ wake-up ─────┘
//! ```
//!
//! A try begins where a timer wakes the radio's thread: that is how an emulated radio waits for the
//! time of a sample. Other exchanges between the two threads, such as reports, begin with a packet.

use millstream_host::trace::{Instance, TraceError, TraceEvent, TraceEventKind};

/// Names of the stations, in their order.
pub const STATIONS: [&str; 5] = [
    "the radio's thread wakes up",
    "it sends, and the packet reaches the host's socket",
    "the host's thread wakes up",
    "it converts and answers, and the packet reaches the radio's socket",
    "the radio's thread wakes up again",
];

/// The events that show them.
const EVENTS: [&str; 3] =
    ["sched/sched_switch", "sched/sched_waking", "timer/hrtimer_expire_entry"];

/// The longest time from a timer to the wake-up that it causes, microseconds.
const TIMER_US: f64 = 20.0;

/// Kibibytes of the ring of each CPU: some hundred tries.
const RING_KIB: u32 = 8192;

/// A recording of the two threads' wake-ups.
#[derive(Debug)]
pub struct StationTrace {
    ring: Instance,
    radio: i32,
    host: i32,
}

impl StationTrace {
    /// Starts to record.
    ///
    /// # Errors
    /// [`TraceError`], with the remedy.
    pub fn start(radio: i32, host: i32) -> Result<Self, TraceError> {
        let ring = Instance::create(RING_KIB)?;
        for events in EVENTS {
            ring.enable(events)?;
        }
        ring.start()?;
        Ok(Self { ring, radio, host })
    }

    /// Stops, and returns the times of the stations in each try, microseconds.
    ///
    /// # Errors
    /// [`TraceError`].
    pub fn stop(self) -> Result<Vec<[f64; STATIONS.len()]>, TraceError> {
        self.ring.stop()?;
        Ok(stations(&self.ring.events()?, self.radio, self.host))
    }
}

/// Returns the times of the stations in each complete try, microseconds.
fn stations(events: &[TraceEvent], radio: i32, host: i32) -> Vec<[f64; STATIONS.len()]> {
    let mut tries = Vec::new();
    // The last timer: when and on which CPU.
    let mut timer = (f64::NEG_INFINITY, usize::MAX);
    // The moments of the present try, from the first wake-up on.
    let mut moments: Vec<f64> = Vec::new();
    for event in events {
        let sent_by = |thread| event.thread == thread || event.name.starts_with("ksoftirqd");
        let is_next = match (&event.what, moments.len()) {
            (TraceEventKind::Timer(_), _) => {
                timer = (event.at_us, event.cpu);
                false
            }
            (TraceEventKind::Waking { thread, .. }, _)
                if *thread == radio
                    && timer.1 == event.cpu
                    && event.at_us - timer.0 < TIMER_US
                    && !sent_by(host) =>
            {
                moments.clear();
                true
            }
            (TraceEventKind::Switch { next, .. }, 1 | 5) => *next == radio,
            (TraceEventKind::Waking { thread, .. }, 2) => *thread == host && sent_by(radio),
            (TraceEventKind::Switch { next, .. }, 3) => *next == host,
            (TraceEventKind::Waking { thread, .. }, 4) => *thread == radio && sent_by(host),
            (TraceEventKind::Switch { previous, .. }, 2) if *previous == radio => {
                // It had nothing to send.
                moments.clear();
                false
            }
            _ => false,
        };
        if !is_next {
            continue;
        }
        moments.push(event.at_us);
        if let [first, .., last] = moments[..]
            && moments.len() == STATIONS.len() + 1
        {
            debug_assert!(first <= last);
            tries.push(std::array::from_fn(|at| moments[at + 1] - moments[at]));
            moments.clear();
        }
    }
    tries
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_host::trace::parse;

    /// The radio's thread 8 is woken by a timer, sends to 7, and is woken by 7.
    const TRY: &str = "\
  <idle>-0 [001] d.h.. 1.000000: hrtimer_expire_entry: hrtimer=1 function=hrtimer_wakeup now=1
  <idle>-0 [001] d.h.. 1.000001: sched_waking: comm=ms-device pid=8 prio=120 target_cpu=001
  <idle>-0 [001] d..2. 1.000011: sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 \
        prev_state=R ==> next_comm=ms-device next_pid=8 next_prio=120
  ms-device-8 [001] d.s.. 1.000031: sched_waking: comm=millstream pid=7 prio=120 target_cpu=000
  ms-device-8 [001] d..2. 1.000040: sched_switch: prev_comm=ms-device prev_pid=8 prev_prio=120 \
        prev_state=S ==> next_comm=swapper/1 next_pid=0 next_prio=120
  <idle>-0 [000] d..2. 1.000061: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 \
        prev_state=R ==> next_comm=millstream next_pid=7 next_prio=120
  millstream-7 [000] d.s.. 1.000101: sched_waking: comm=ms-device pid=8 prio=120 target_cpu=001
  <idle>-0 [001] d..2. 1.000151: sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 \
        prev_state=R ==> next_comm=ms-device next_pid=8 next_prio=120
";

    #[test]
    fn a_try_is_cut_at_its_wake_ups() {
        let found = stations(&parse(TRY), 8, 7);
        let rounded: Vec<_> = found.iter().map(|one| one.map(f64::round)).collect();
        assert_eq!(rounded, [[10.0, 20.0, 30.0, 40.0, 50.0]]);
        let twice = stations(&parse(&TRY.repeat(2)), 8, 7);
        assert_eq!(twice.len(), 2);
    }

    #[test]
    fn an_exchange_without_the_timer_is_no_try() {
        let rest: String = TRY.lines().skip(1).map(|line| format!("{line}\n")).collect();
        assert!(stations(&parse(&rest), 8, 7).is_empty());
        // The other way round, nothing fits.
        assert!(stations(&parse(TRY), 7, 8).is_empty());
    }

    #[test]
    fn a_try_without_an_answer_ends_at_the_next_one() {
        let lines: Vec<&str> = TRY.lines().collect();
        let cut = lines[..5].join("\n") + "\n" + TRY;
        assert_eq!(stations(&parse(&cut), 8, 7).len(), 1);
    }
}
