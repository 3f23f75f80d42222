//! The caller's settings stay as they are.

use rustix::thread::{CpuSet, sched_getaffinity};

use crate::role::{exchange, open};

#[test]
fn affinity_and_signals_of_the_caller_stay_as_they_were() {
    crate::run("manners", "");
}

/// The properties of a process that DPDK tends to change.
#[derive(Debug, PartialEq)]
struct Own {
    affinity: Vec<usize>,
    /// `SigBlk`, `SigIgn` and `SigCgt` of this thread (proc(5)).
    signals: Vec<String>,
}

impl Own {
    fn now() -> Self {
        let set: CpuSet = sched_getaffinity(None).expect("it can be asked");
        let affinity = (0..1024).filter(|cpu| set.is_set(*cpu)).collect();
        let status = std::fs::read_to_string("/proc/thread-self/status").expect("proc is there");
        let signals = status.lines().filter(|line| line.starts_with("Sig"));
        let signals = signals.filter(|line| !line.starts_with("SigQ")).map(str::to_owned).collect();
        Self { affinity, signals }
    }
}

/// Runs pinned to a CPU and in a real-time class, like many threads that open links; opens two
/// links at once, in one process.
pub fn play() {
    let all = Own::now().affinity;
    let first = *all.last().expect("there is a CPU");
    millstream_cpu::thread::pin_current_thread(first).expect("it is allowed");
    // Without the right to it, in the ordinary class.
    let _ = millstream_cpu::sched::set_current_thread(millstream_cpu::sched::Class::Fifo(1));
    let before = Own::now();
    let mut links = ["dpdk:ring0", "dpdk:ring1"]
        .map(|link| open(link).unwrap_or_else(|error| panic!("{error}")));
    assert_eq!(Own::now(), before, "after the start");
    for link in &mut links {
        exchange(&mut **link);
        exchange(&mut **link);
        assert!(link.counters().rx_frames > 0, "{:?}", link.counters());
    }
    assert_eq!(Own::now(), before, "after frames have passed");
    drop(links);
    let again = open("dpdk:ring0").unwrap_or_else(|error| panic!("{error}"));
    drop(again);
    assert_eq!(Own::now(), before, "after links were closed and opened");
    threads_are_nobodys(&all);
}

/// Checks that threads started by DPDK leave signals to the application's threads, run wherever the
/// process may, and do not have the scheduling class of the thread that opened the link.
fn threads_are_nobodys(cpus: &[usize]) {
    let tasks = std::fs::read_dir("/proc/self/task").expect("proc is there");
    let mut seen = 0;
    for task in tasks.flatten() {
        let read = |file| std::fs::read_to_string(task.path().join(file)).unwrap_or_default();
        if !read("comm").starts_with("eal-") {
            continue;
        }
        let status = read("status");
        let blocked = status.lines().find_map(|line| line.strip_prefix("SigBlk:")).unwrap_or("0");
        let blocked = u64::from_str_radix(blocked.trim(), 16).expect("a mask");
        for signal in [libc::SIGPIPE, libc::SIGINT, libc::SIGTERM, libc::SIGUSR1] {
            assert!(blocked >> (signal - 1) & 1 == 1, "{} takes {signal}", read("comm"));
        }
        let thread = task.file_name().to_str().and_then(|name| name.parse().ok());
        let thread = rustix::process::Pid::from_raw(thread.expect("a number"));
        let set = sched_getaffinity(thread).expect("it can be asked");
        let may: Vec<_> = (0..1024).filter(|cpu| set.is_set(*cpu)).collect();
        assert_eq!(may, cpus, "{} runs elsewhere", read("comm"));
        // The 41st field, of which two come before the name (proc(5)).
        let stat = read("stat");
        let class = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(38));
        assert_eq!(class, Some("0"), "{} is not of the ordinary class", read("comm"));
        seen += 1;
    }
    assert!(seen > 0, "EAL has threads of its own");
}
