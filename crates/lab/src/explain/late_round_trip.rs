//! Explains a late round trip: cuts its way where one side wakes the other, and explains each leg
//! by the CPU of the side that the other waits for.

use super::cause::{Outlier, explain};
use millstream_host::trace::{TraceEvent, TraceEventKind};
use millstream_measure::explained::{Explanation, LateCause, Share};

/// A late round trip.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct LateRoundTrip {
    /// The asking thread, and the answering one.
    pub threads: [i32; 2],
    /// When the question was due, microseconds of the trace's clock.
    pub due_us: f64,
    /// When the answer came.
    pub back_us: f64,
    /// Whether the machine is a guest.
    pub guest: bool,
}

/// Explains it. Sides that never sleep are not woken: then the whole way belongs to the asking
/// side.
pub(super) fn explain_way(events: &[TraceEvent], way: &LateRoundTrip) -> Explanation {
    let (mut parts, mut evidence) = (Vec::new(), Vec::new());
    for (index, (thread, from_us, to_us)) in legs(events, way).into_iter().enumerate() {
        let Some(cpu) = place(events, thread, to_us) else { continue };
        let outlier = Outlier {
            thread,
            cpu,
            deadline_us: from_us,
            done_us: to_us,
            guest: way.guest,
            steal_ms: 0.0,
            works: true,
        };
        let leg = explain(events, &outlier);
        let name = ["the way there", "the side that answers", "the way back"][index];
        evidence.push(format!("{name}: {:.0} us, {}", leg.late_us, leg.cause.name()));
        parts.extend(leg.shares.into_iter().map(|share| named(share, index, cpu)));
    }
    Explanation::of(way.back_us - way.due_us, parts, evidence)
}

/// Splits the way: from the question to the wake-up of the other side, from there to the wake-up of
/// the asking side, and the rest.
fn legs(events: &[TraceEvent], way: &LateRoundTrip) -> Vec<(i32, f64, f64)> {
    let [asker, answerer] = way.threads;
    let woken = |thread: i32, from_us: f64| {
        let is_it = |event: &&TraceEvent| {
            (from_us..=way.back_us).contains(&event.at_us)
                && matches!(event.what, TraceEventKind::Waking { thread: w, .. } if w == thread)
        };
        events.iter().find(is_it).map(|event| event.at_us)
    };
    let there = woken(answerer, way.due_us);
    let back = there.and_then(|there| woken(asker, there));
    match there.zip(back) {
        Some((there, back)) => {
            vec![(asker, way.due_us, there), (answerer, there, back), (asker, back, way.back_us)]
        }
        None => vec![(asker, way.due_us, way.back_us)],
    }
}

/// The last CPU of a thread before a moment.
fn place(events: &[TraceEvent], thread: i32, until_us: f64) -> Option<usize> {
    let is_its = |event: &&TraceEvent| match event.what {
        TraceEventKind::Switch { next, .. } if next == thread => true,
        _ => event.thread == thread,
    };
    let before = events.iter().rev().filter(|event| event.at_us <= until_us);
    before.chain(events).find(is_its).map(|event| event.cpu)
}

/// A share of a leg under a name that is unique among the legs.
fn named(share: Share, leg: usize, cpu: usize) -> Share {
    let Share { cause, who, us } = share;
    match cause {
        LateCause::OwnWork => {
            let side = if leg == 1 { "the side that answers" } else { "the side that asks" };
            Share { cause, who: side.to_owned(), us }
        }
        // The asking side sleeps until the answer: its CPU was not taken from it.
        LateCause::HypervisorSteal | LateCause::Silence if leg == 0 => {
            Share { cause: LateCause::Unknown, who: "on its way".to_owned(), us }
        }
        LateCause::HypervisorSteal | LateCause::Silence => Share { cause, who, us },
        _ => Share { cause, who: format!("{who}, on CPU {cpu}"), us },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_host::trace::parse;

    /// Thread 7 asks on CPU 0, 8 answers on CPU 1, and a rival delays 8.
    const TRACE: &str = "\
  me-7    [000] d..2. 0.999000: sched_switch: prev_comm=x prev_pid=3 prev_prio=120 prev_state=R \
        ==> next_comm=me next_pid=7 next_prio=49
  rival-9 [001] d..2. 0.999500: sched_switch: prev_comm=you prev_pid=8 prev_prio=49 prev_state=S \
        ==> next_comm=rival next_pid=9 next_prio=40
  me-7    [000] d.s2. 1.000010: sched_waking: comm=you pid=8 prio=49 target_cpu=001
  me-7    [000] d..2. 1.000020: sched_switch: prev_comm=me prev_pid=7 prev_prio=49 prev_state=S \
        ==> next_comm=x next_pid=3 next_prio=120
  rival-9 [001] d..2. 1.000900: sched_switch: prev_comm=rival prev_pid=9 prev_prio=40 \
        prev_state=S ==> next_comm=you next_pid=8 next_prio=49
  you-8   [001] d.s2. 1.000920: sched_waking: comm=me pid=7 prio=49 target_cpu=000
  x-3     [000] d..2. 1.000940: sched_switch: prev_comm=x prev_pid=3 prev_prio=120 prev_state=R \
        ==> next_comm=me next_pid=7 next_prio=49
  me-7    [000] d..2. 1.000960: sched_waking: comm=you pid=8 prio=49 target_cpu=001
";

    #[test]
    fn each_leg_is_explained_where_it_is_waited_for() {
        let way = LateRoundTrip { threads: [7, 8], due_us: 1e6, back_us: 1_000_950.0, guest: true };
        let found = explain_way(&parse(TRACE), &way);
        assert_eq!(
            (found.cause, &*found.who),
            (LateCause::Rival, "rival (9), real time 59, on CPU 1")
        );
        let sum: f64 = found.shares.iter().map(|share| share.us).sum();
        assert!((sum - 950.0).abs() < 1.0, "{found:#?}");
        assert!((found.shares[0].us - 890.0).abs() < 1.0, "{found:#?}");
        assert_eq!(found.evidence[1], "the side that answers: 910 us, rival thread");
    }

    #[test]
    fn sides_that_wake_nobody_have_one_leg() {
        let way =
            LateRoundTrip { threads: [7, 99], due_us: 1e6, back_us: 1_000_015.0, guest: true };
        let found = explain_way(&parse(TRACE), &way);
        assert_eq!((found.cause, found.evidence.len()), (LateCause::OwnWork, 1), "{found:#?}");
    }
}
