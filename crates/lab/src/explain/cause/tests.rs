use super::*;
use millstream_host::trace::parse;

/// The thread is 7 on CPU 1; its deadline is at 1 s.
fn explained(trace: &str, done_us: f64) -> Explanation {
    let trace: String = trace
        .lines()
        .map(|line| {
            let (who, rest) = line.trim().split_once('@').unwrap();
            let (at, what) = rest.split_once(' ').unwrap();
            let at_us: f64 = at.parse().unwrap();
            format!("{who} d..2. {:.6}: {what}\n", (1e6 + at_us) / 1e6)
        })
        .collect();
    let outlier = Outlier {
        thread: 7,
        cpu: 1,
        deadline_us: 1e6,
        done_us: 1e6 + done_us,
        guest: true,
        steal_ms: 0.0,
        works: true,
    };
    let found = explain(&parse(&trace), &outlier);
    let sum: f64 = found.shares.iter().map(|share| share.us).sum();
    assert!((sum - done_us).abs() < 1e-3 || found.cause == LateCause::Unknown, "{found:#?}");
    found
}

const SLEEPS: &str = "me-7 [001] @-500 sched_switch: prev_comm=me prev_pid=7 prev_prio=9 \
                      prev_state=S ==> next_comm=swapper/1 next_pid=0 next_prio=120";
const WOKEN: &str = "<idle>-0 [001] @3 sched_waking: comm=me pid=7 prio=9 target_cpu=001";

fn runs(at: u32, from: &str) -> String {
    let (name, pid) = from.split_once('-').unwrap();
    format!(
        "{from} [001] @{at} sched_switch: prev_comm={name} prev_pid={pid} prev_prio=120 \
         prev_state=R ==> next_comm=me next_pid=7 next_prio=9"
    )
}

#[test]
fn a_rival_is_named_with_its_class() {
    let hog = "swapper/1-0 [001] @-100 sched_switch: prev_comm=swapper/1 prev_pid=0 \
               prev_prio=120 prev_state=R ==> next_comm=hog next_pid=8 next_prio=4";
    let woken = "hog-8 [001] @3 sched_waking: comm=me pid=7 prio=9 target_cpu=001";
    let found = explained(&[SLEEPS, hog, woken, &runs(4000, "hog-8")].join("\n"), 4010.0);
    assert_eq!((found.cause, &*found.who), (LateCause::Rival, "hog (8), real time 95"));
    assert!((found.shares[0].us - 3997.0).abs() < 1e-3);
}

#[test]
fn soft_interrupts_and_their_thread_are_one_cause() {
    let steps = [
        SLEEPS,
        "x-8 [001] @-50 softirq_entry: vec=3 [action=NET_RX]",
        "x-8 [001] @3 sched_waking: comm=me pid=7 prio=9 target_cpu=001",
        "x-8 [001] @900 softirq_exit: vec=3 [action=NET_RX]",
        "x-8 [001] @901 sched_switch: prev_comm=x prev_pid=8 prev_prio=120 prev_state=R ==> \
         next_comm=ksoftirqd/1 next_pid=16 next_prio=120",
        &runs(1400, "ksoftirqd/1-16"),
    ];
    let found = explained(&steps.join("\n"), 1410.0);
    assert_eq!((found.cause, &*found.who), (LateCause::SoftInterrupt, "NET_RX"));
}

#[test]
fn an_interrupt_that_holds_the_timer_back_is_named() {
    let steps = [
        SLEEPS,
        "x-0 [001] @-5 irq_handler_entry: irq=36 name=disk",
        "x-0 [001] @700 irq_handler_exit: irq=36 ret=handled",
        "x-0 [001] @701 sched_waking: comm=me pid=7 prio=9 target_cpu=001",
        &runs(705, "swapper/1-0"),
    ];
    let found = explained(&steps.join("\n"), 710.0);
    assert_eq!((found.cause, &*found.who), (LateCause::Interrupt, "irq 36 disk"));
}

#[test]
fn a_timer_that_comes_late_for_no_reason_is_the_hypervisors() {
    let woken = "<idle>-0 [001] @2500 sched_waking: comm=me pid=7 prio=9 target_cpu=001";
    let found = explained(&[SLEEPS, woken, &runs(2505, "swapper/1-0")].join("\n"), 2510.0);
    assert_eq!(found.cause, LateCause::HypervisorSteal);
    assert!(found.evidence.contains(&"0 interrupts on CPU 1 meanwhile".to_owned()));
}

#[test]
fn a_rival_that_cannot_be_preempted_may_have_held_the_timer_back() {
    let rival = "swapper/1-0 [001] @-100 sched_switch: prev_comm=swapper/1 prev_pid=0 \
                 prev_prio=120 prev_state=R ==> next_comm=worker next_pid=8 next_prio=120";
    let woken = "worker-8 [001] @1100 sched_waking: comm=me pid=7 prio=9 target_cpu=001";
    let steps = |at| [SLEEPS, rival, woken, &runs(at, "worker-8")].join("\n");
    let found = explained(&steps(1800), 1810.0);
    assert_eq!((found.cause, &*found.who), (LateCause::Rival, "worker (8), interrupts off"));
    let found = explained(&steps(1110), 1120.0);
    assert_eq!(found.cause, LateCause::HypervisorSteal, "it was in user space");
}

#[test]
fn pages_of_its_own_are_told_from_its_work() {
    let mut steps = vec![SLEEPS.to_owned(), WOKEN.to_owned(), runs(10, "swapper/1-0")];
    let fault = |at| format!("me-7 [001] @{at} page_fault_user: address=0x1 ip=0x2 error_code=0x6");
    steps.extend((1..=100).map(|number| fault(number * 10)));
    let found = explained(&steps.join("\n"), 1300.0);
    assert_eq!(found.cause, LateCause::PageFault);
    assert!((found.shares[0].us - 1000.0).abs() < 1.0, "{:?}", found.shares);
    assert!(found.evidence.contains(&"100 page faults of its own".to_owned()));
    let work = explained(&steps[..4].join("\n"), 1300.0);
    assert_eq!(work.cause, LateCause::OwnWork, "one fault is no storm");
}

#[test]
fn a_thread_that_was_stopped_is_told_from_one_that_sleeps() {
    let steps = [
        SLEEPS,
        "sh-9 [000] @-40 signal_generate: sig=19 errno=0 code=0 comm=me pid=7 grp=1 res=0",
        "sh-9 [000] @-39 sched_waking: comm=me pid=7 prio=9 target_cpu=001",
        "<idle>-0 [001] @-35 sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 \
         prev_state=R ==> next_comm=me next_pid=7 next_prio=9",
        "me-7 [001] @-30 sched_switch: prev_comm=me prev_pid=7 prev_prio=9 prev_state=T ==> \
         next_comm=swapper/1 next_pid=0 next_prio=120",
        "sh-9 [000] @5000 signal_generate: sig=18 errno=0 code=0 comm=me pid=7 grp=1 res=0",
        "sh-9 [000] @5001 sched_waking: comm=me pid=7 prio=9 target_cpu=001",
        &runs(5010, "swapper/1-0"),
    ];
    let found = explained(&steps.join("\n"), 5020.0);
    assert_eq!(found.cause, LateCause::Stopped);
    assert!(found.evidence.contains(&"signal 18 from sh (9)".to_owned()), "{found:?}");
}

#[test]
fn a_timer_on_another_cpu_is_told() {
    let steps = [
        SLEEPS,
        "x-3 [000] @2 hrtimer_expire_entry: hrtimer=0 function=hrtimer_wakeup now=1",
        "x-3 [000] @3 sched_waking: comm=me pid=7 prio=9 target_cpu=001",
        &runs(600, "swapper/1-0"),
    ];
    let found = explained(&steps.join("\n"), 610.0);
    assert_eq!((found.cause, &*found.who), (LateCause::TimerMigration, "CPU 0"));
}

#[test]
fn a_change_of_clock_is_told() {
    let clock = "me-7 [001] @20 cpu_frequency: state=800000 cpu_id=1";
    let found = explained(&[SLEEPS, WOKEN, &runs(10, "swapper/1-0"), clock].join("\n"), 900.0);
    assert_eq!(found.cause, LateCause::Frequency);
}

#[test]
fn a_trace_that_begins_too_late_names_nobody() {
    let found = explained(WOKEN, 100.0);
    assert_eq!((found.cause, found.shares.len()), (LateCause::Unknown, 0));
}
