//! The holder of a CPU, and the activity of a thread meanwhile, from trace events.

use millstream_host::trace::{TraceEvent, TraceEventKind};
use serde::Serialize;

/// The holder of a CPU.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Holder {
    /// A thread.
    Thread {
        /// Its number; 0: the CPU is idle.
        tid: i32,
        /// Its name.
        name: String,
        /// Its priority as the kernel counts, where the trace shows it.
        priority: Option<i32>,
    },
    /// An interrupt: `irq 36 virtio1-req.0`, `local timer`.
    Interrupt(String),
    /// A soft interrupt: `NET_RX`.
    Soft(String),
}

/// The activity of the late thread.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ThreadActivity {
    /// It waits for its timer.
    Sleeping,
    /// A signal or a debugger has stopped it.
    Stopped,
    /// It waits for the kernel, mostly for a page from disk, and cannot be interrupted.
    Blocked,
    /// It is ready to run.
    Ready,
    /// It has the CPU, except for interrupts.
    Running,
}

/// A stretch of time without a change of either.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TimeSpan {
    /// Start, microseconds.
    pub from_us: f64,
    /// End, microseconds.
    pub to_us: f64,
    /// The holder of the CPU.
    pub holder: Holder,
    /// The activity of the thread.
    pub doing: ThreadActivity,
}

impl TimeSpan {
    /// Its length.
    #[must_use]
    pub fn us(&self) -> f64 {
        self.to_us - self.from_us
    }
}

/// The state of one CPU and one thread, updated by events.
struct State {
    base: Holder,
    /// Interrupts over it, the last one on top.
    over: Vec<Holder>,
    doing: ThreadActivity,
}

impl State {
    /// The state before the first event: every line names the thread that ran.
    fn before(events: &[TraceEvent], cpu: usize, thread: i32) -> Option<Self> {
        let first = events.iter().find(|event| event.cpu == cpu)?;
        let doing = events.iter().find_map(|event| match &event.what {
            TraceEventKind::Waking { thread: woken, .. } if *woken == thread => {
                Some(ThreadActivity::Sleeping)
            }
            TraceEventKind::Switch { next, .. } if *next == thread => Some(ThreadActivity::Ready),
            _ if event.thread == thread => Some(ThreadActivity::Running),
            _ => None,
        });
        Some(Self {
            base: runs(first),
            over: Vec::new(),
            doing: doing.unwrap_or(ThreadActivity::Sleeping),
        })
    }

    fn holder(&self) -> &Holder {
        self.over.last().unwrap_or(&self.base)
    }

    fn take(&mut self, event: &TraceEvent, cpu: usize, thread: i32) {
        match &event.what {
            TraceEventKind::Waking { thread: woken, .. }
                if *woken == thread && self.doing != ThreadActivity::Running =>
            {
                self.doing = ThreadActivity::Ready;
            }
            TraceEventKind::Switch { previous, state, next, .. } => {
                if *next == thread {
                    self.doing = ThreadActivity::Running;
                } else if *previous == thread {
                    self.doing = left(state);
                }
            }
            _ => {}
        }
        if event.cpu == cpu {
            self.update(event);
        }
    }

    /// Applies an event of the CPU.
    fn update(&mut self, event: &TraceEvent) {
        match &event.what {
            TraceEventKind::Switch { next, next_name, next_priority, .. } => {
                // The kernel does not switch threads within an interrupt: a missing end was lost.
                self.over.clear();
                let (name, priority) = (next_name.clone(), Some(*next_priority));
                self.base = Holder::Thread { tid: *next, name, priority };
            }
            TraceEventKind::InterruptEntry(name) => self.over.push(Holder::Interrupt(name.clone())),
            TraceEventKind::SoftEntry(name) => self.over.push(Holder::Soft(name.clone())),
            TraceEventKind::InterruptExit => {
                self.end(|holder| matches!(holder, Holder::Interrupt(_)))
            }
            TraceEventKind::SoftExit => self.end(|holder| matches!(holder, Holder::Soft(_))),
            _ => {}
        }
    }

    /// Ends the topmost of a kind, and those above it, whose ends were lost.
    fn end(&mut self, is_it: impl Fn(&Holder) -> bool) {
        if let Some(place) = self.over.iter().rposition(is_it) {
            self.over.truncate(place);
        }
    }
}

fn runs(event: &TraceEvent) -> Holder {
    Holder::Thread { tid: event.thread, name: event.name.clone(), priority: None }
}

/// The activity of a thread that leaves the CPU in a state of `sched_switch`.
fn left(state: &str) -> ThreadActivity {
    match state.chars().next() {
        Some('R') => ThreadActivity::Ready,
        Some('T' | 't') => ThreadActivity::Stopped,
        Some('D') => ThreadActivity::Blocked,
        _ => ThreadActivity::Sleeping,
    }
}

/// Adds the switches that some kernels do not record (6.18: from idle). Every line names the
/// running thread: an idle CPU with another thread in its next event has switched at its last event
/// before.
fn completed(events: &[TraceEvent], cpu: usize) -> Vec<TraceEvent> {
    let mut complete: Vec<TraceEvent> = Vec::with_capacity(events.len());
    // The last event of the idle CPU, if no thread ran after it.
    let mut idle_at: Option<usize> = None;
    let mut lost = Vec::new();
    for event in events {
        if event.cpu == cpu {
            if let Some(place) = idle_at.filter(|_| event.thread != 0) {
                lost.push((place, event.thread, event.name.clone()));
            }
            let next = match event.what {
                TraceEventKind::Switch { next, .. } => next,
                _ => event.thread,
            };
            idle_at = (next == 0).then_some(complete.len());
        }
        complete.push(event.clone());
    }
    for (place, next, next_name) in lost.into_iter().rev() {
        let priority = complete[..=place].iter().rev().find_map(|event| match event.what {
            TraceEventKind::Waking { thread, priority } if thread == next => priority,
            _ => None,
        });
        let (previous, state) = (0, "R".to_owned());
        // 120 is the ordinary class.
        let next_priority = priority.unwrap_or(120);
        let what = TraceEventKind::Switch { previous, state, next, next_name, next_priority };
        let switch = TraceEvent { what, thread: 0, ..complete[place].clone() };
        complete.insert(place + 1, switch);
    }
    complete
}

/// The stretches of `cpu` and `thread` between two moments, without gaps; empty where the trace
/// does not reach back to the first of them.
#[must_use]
pub fn stretches(
    events: &[TraceEvent],
    cpu: usize,
    thread: i32,
    (from_us, to_us): (f64, f64),
) -> Option<Vec<TimeSpan>> {
    let oldest = events.iter().find(|event| event.cpu == cpu)?;
    if oldest.at_us > from_us {
        return None;
    }
    let events = &completed(events, cpu);
    let mut state = State::before(events, cpu, thread)?;
    let mut found: Vec<TimeSpan> = Vec::new();
    let mut begun_us = from_us;
    let mut close = |state: &State, begun_us: f64, at_us: f64| {
        if at_us <= begun_us {
            return;
        }
        let (holder, doing) = (state.holder().clone(), state.doing);
        match found.last_mut() {
            Some(last) if last.holder == holder && last.doing == doing => last.to_us = at_us,
            _ => found.push(TimeSpan { from_us: begun_us, to_us: at_us, holder, doing }),
        }
    };
    for event in events.iter().take_while(|event| event.at_us < to_us) {
        if event.at_us > from_us {
            close(&state, begun_us, event.at_us);
            begun_us = event.at_us.max(begun_us);
        }
        state.take(event, cpu, thread);
    }
    close(&state, begun_us, to_us);
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_host::trace::parse;

    /// A wake-up that an interrupt, its soft interrupt and a rival delay.
    const TRACE: &str = "\
  rival-8  [001] d..2. 1.000000: sched_switch: prev_comm=me prev_pid=7 prev_prio=9 prev_state=S \
        ==> next_comm=rival next_pid=8 next_prio=120
  rival-8  [001] d.h.. 1.000100: irq_handler_entry: irq=36 name=disk
  rival-8  [000] d..2. 1.000150: sched_waking: comm=me pid=7 prio=9 target_cpu=001
  rival-8  [001] d.h.. 1.000200: irq_handler_exit: irq=36 ret=handled
  rival-8  [001] d.h.. 1.000200: softirq_entry: vec=4 [action=BLOCK]
  rival-8  [001] d.h.. 1.000250: softirq_exit: vec=4 [action=BLOCK]
  rival-8  [001] d..2. 1.000300: sched_switch: prev_comm=rival prev_pid=8 prev_prio=120 \
        prev_state=R ==> next_comm=me next_pid=7 next_prio=9
";

    fn of(from_us: f64, to_us: f64) -> Option<Vec<(f64, f64, String, ThreadActivity)>> {
        let found = stretches(&parse(TRACE), 1, 7, (from_us, to_us))?;
        let name = |holder: &Holder| match holder {
            Holder::Thread { name, .. } | Holder::Interrupt(name) | Holder::Soft(name) => {
                name.clone()
            }
        };
        let one =
            |one: &TimeSpan| (one.from_us.round(), one.to_us.round(), name(&one.holder), one.doing);
        Some(found.iter().map(one).collect())
    }

    #[test]
    fn a_wake_up_is_cut_where_anything_changes() {
        let found = of(1_000_050.0, 1_000_310.0).unwrap();
        let expected = [
            (1_000_050.0, 1_000_100.0, "rival", ThreadActivity::Sleeping),
            (1_000_100.0, 1_000_150.0, "irq 36 disk", ThreadActivity::Sleeping),
            (1_000_150.0, 1_000_200.0, "irq 36 disk", ThreadActivity::Ready),
            (1_000_200.0, 1_000_250.0, "BLOCK", ThreadActivity::Ready),
            (1_000_250.0, 1_000_300.0, "rival", ThreadActivity::Ready),
            (1_000_300.0, 1_000_310.0, "me", ThreadActivity::Running),
        ];
        let expected = expected.map(|(from, to, name, doing)| (from, to, name.to_owned(), doing));
        assert_eq!(found, expected);
        let sum: f64 = found.iter().map(|one| one.1 - one.0).sum();
        assert!((sum - 260.0).abs() < 1e-6);
    }

    #[test]
    fn a_trace_that_begins_too_late_says_nothing() {
        assert_eq!(of(999_999.0, 1_000_310.0), None);
        assert_eq!(stretches(&[], 1, 7, (0.0, 1.0)), None);
        assert_eq!(stretches(&parse(TRACE), 5, 7, (1e6, 2e6)), None, "another CPU");
    }

    /// As 6.18 records it: without switches from idle.
    const FROM_IDLE: &str = "\
  <idle>-0  [001] d..2. 1.000000: sched_switch: prev_comm=me prev_pid=7 prev_prio=9 prev_state=S \
        ==> next_comm=swapper/1 next_pid=0 next_prio=120
  <idle>-0  [001] d.h.. 1.000100: local_timer_entry: vector=236
  <idle>-0  [001] d.h.. 1.000105: sched_waking: comm=hog pid=8 prio=1 target_cpu=001
  <idle>-0  [001] d.h.. 1.000110: local_timer_exit: vector=236
  hog-8     [001] d.h.. 1.000200: local_timer_entry: vector=236
  hog-8     [001] d.h.. 1.000205: sched_waking: comm=me pid=7 prio=9 target_cpu=001
  hog-8     [001] d.h.. 1.000210: local_timer_exit: vector=236
  hog-8     [001] d..2. 1.000900: sched_switch: prev_comm=hog prev_pid=8 prev_prio=1 \
        prev_state=S ==> next_comm=me next_pid=7 next_prio=9
";

    #[test]
    fn a_switch_from_idle_that_is_not_told_is_seen_by_who_runs_next() {
        let found = stretches(&parse(FROM_IDLE), 1, 7, (1_000_205.0, 1_000_900.0)).unwrap();
        let hog = |stretch: &&TimeSpan| {
            let hog = Holder::Thread { tid: 8, name: "hog".to_owned(), priority: Some(1) };
            stretch.holder == hog && stretch.doing == ThreadActivity::Ready
        };
        let us: f64 = found.iter().filter(hog).map(TimeSpan::us).sum();
        assert!((us - 690.0).abs() < 1.0, "{found:#?}");
        let before = stretches(&parse(FROM_IDLE), 1, 7, (1_000_050.0, 1_000_200.0)).unwrap();
        let idle = Holder::Thread { tid: 0, name: "swapper/1".to_owned(), priority: Some(120) };
        assert_eq!((&before[0].holder, before[0].to_us.round()), (&idle, 1_000_100.0));
        assert_eq!(before.last().unwrap().from_us.round(), 1_000_110.0, "{before:#?}");
    }

    #[test]
    fn states_of_a_thread_are_told_apart() {
        let states = ["R", "R+", "S", "I", "T", "t", "D", "D|K", ""].map(left);
        use ThreadActivity::{Blocked, Ready, Sleeping, Stopped};
        let expected =
            [Ready, Ready, Sleeping, Sleeping, Stopped, Stopped, Blocked, Blocked, Sleeping];
        assert_eq!(states, expected);
    }
}
