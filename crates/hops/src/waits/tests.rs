use std::process::Command;
use std::sync::mpsc;
use std::thread;
use std::time::{Instant, SystemTime};

use millstream_cpu::sched::{Class, set_current_thread};
use millstream_cpu::thread::{allowed_cpus, confine, pin_current_thread};
use rustix::process::{Pid, Signal, kill_process};
use rustix::thread::gettid;

use super::*;

/// `None`, with a reason, where programs are not allowed.
fn open(threshold: Duration) -> Option<WaitWatch> {
    match WaitWatch::open(threshold) {
        Err(error) if !matches!(error, ProbeError::Refused(_)) => {
            eprintln!("skipped: {error}");
            None
        }
        opened => Some(opened.unwrap()),
    }
}

fn now() -> u64 {
    SystemTime::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64
}

fn tid() -> u32 {
    gettid().as_raw_nonzero().get() as u32
}

/// Waits until `done` is true of the waits so far.
fn wait_for(watch: &mut WaitWatch, done: impl Fn(&[ThreadWait]) -> bool) -> Vec<ThreadWait> {
    let (start, mut waits) = (Instant::now(), Vec::new());
    while !done(&waits) {
        assert!(start.elapsed() < Duration::from_secs(30), "{waits:?}");
        watch.read(&mut waits);
        thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(watch.missed(), 0);
    waits
}

/// A thread becomes ready on the last CPU while a busy one runs there for 20 ms; with `moves` it is
/// then moved to another CPU, and the busy one goes on until it has run.
fn wait_behind_a_busy_thread(moves: bool) {
    let Some(mut watch) = open(WaitWatch::THRESHOLD) else { return };
    let cpus = allowed_cpus().unwrap();
    let (cpu, other) = (cpus.iter().last().unwrap(), cpus.iter().next().unwrap());
    if moves && cpu == other {
        eprintln!("skipped: there is one CPU");
        return;
    }
    let (wake, woken) = mpsc::channel::<()>();
    let (tell, told) = mpsc::channel();
    let (run, has_run) = mpsc::channel();
    let (say, said) = mpsc::channel();
    let (end, ended) = mpsc::channel::<()>();
    let reader = thread::spawn(move || {
        pin_current_thread(cpu).unwrap();
        tell.send(tid()).unwrap();
        woken.recv().unwrap();
        run.send(now()).unwrap();
    });
    let reader_tid = told.recv().unwrap();
    watch.watch_threads(&[reader_tid]).unwrap();
    let (call, sleeps) = (format!("/proc/self/task/{reader_tid}/syscall"), libc::SYS_futex);
    let start = Instant::now();
    // It sleeps for the channel, and not to be pinned or for its output.
    while !std::fs::read_to_string(&call).unwrap().starts_with(&format!("{sleeps} ")) {
        assert!(start.elapsed() < Duration::from_secs(30), "it does not sleep");
        thread::yield_now();
    }
    let busy = thread::Builder::new().name("neighbour".to_owned()).spawn(move || {
        pin_current_thread(cpu).unwrap();
        if set_current_thread(Class::Fifo(10)).is_err() {
            return say.send(None).unwrap();
        }
        let sent = now();
        wake.send(()).unwrap();
        let start = Instant::now();
        while start.elapsed() < Duration::from_millis(20) {}
        let left = now();
        let ran = moves.then(|| {
            confine(reader_tid, &[other].into_iter().collect()).unwrap();
            std::iter::repeat_with(|| has_run.try_recv()).find_map(Result::ok).unwrap()
        });
        let ran = ran.unwrap_or_else(|| has_run.recv().unwrap());
        say.send(Some((tid(), sent, left, ran))).unwrap();
        // Its name can be asked for until it ends.
        ended.recv().unwrap();
    });
    let Some((busy_tid, sent, left, ran)) = said.recv().unwrap() else {
        eprintln!("skipped: a thread cannot have a real-time class here");
        return;
    };
    reader.join().unwrap();
    let long = |wait: &ThreadWait| wait.until_ns - wait.from_ns > 19_000_000;
    let waits = wait_for(&mut watch, |waits| waits.iter().any(long));
    let wait = waits.iter().find(|wait| long(wait)).unwrap();
    // It slept before; between the clocks of two calls is little.
    assert!(wait.from_ns + 1_000_000 > sent && wait.from_ns < left, "{wait:?} {sent} {left}");
    assert!(wait.until_ns + 1_000_000 > left && wait.until_ns < ran + 1_000_000, "{wait:?} {ran}");
    assert_eq!((wait.tid, wait.cpu as usize), (reader_tid, cpu));
    assert_eq!(wait.instead, Some((busy_tid, "neighbour".to_owned())), "{waits:?}");
    end.send(()).unwrap();
    busy.unwrap().join().unwrap();
}

#[test]
fn a_thread_behind_a_busy_one_is_told_with_the_name_of_that_one() {
    wait_behind_a_busy_thread(false);
}

#[test]
fn a_thread_that_is_moved_away_from_a_busy_one_waited_for_that_one() {
    wait_behind_a_busy_thread(true);
}

#[test]
fn a_stopped_thread_does_not_wait_and_a_thread_that_is_not_watched_is_not_told() {
    let Some(mut watch) = open(Duration::ZERO) else { return };
    let mut child = Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
    let pid = Pid::from_child(&child);
    watch.watch_threads(&[child.id()]).unwrap();
    kill_process(pid, Signal::STOP).unwrap();
    let start = Instant::now();
    let state = format!("/proc/{}/stat", child.id());
    while !std::fs::read_to_string(&state).unwrap().contains(") T ") {
        assert!(start.elapsed() < Duration::from_secs(30), "it does not stop");
    }
    let stopped = now();
    thread::sleep(Duration::from_millis(50));
    let went_on = now();
    kill_process(pid, Signal::CONT).unwrap();
    let after = |wait: &ThreadWait| wait.until_ns > went_on;
    let waits = wait_for(&mut watch, |waits| waits.iter().any(after));
    let during = |wait: &&ThreadWait| wait.from_ns < went_on && wait.until_ns > stopped + 1_000_000;
    assert_eq!(waits.iter().find(during), None);
    assert!(waits.iter().all(|wait| wait.tid == child.id()));

    watch.watch_threads(&[]).unwrap();
    watch.read(&mut Vec::new());
    thread::sleep(Duration::from_millis(50));
    let mut none = Vec::new();
    watch.read(&mut none);
    assert_eq!(none, []);
    child.kill().unwrap();
    child.wait().unwrap();
}
