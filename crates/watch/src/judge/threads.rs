//! What the threads of a program did while samples were lost.

use std::collections::VecDeque;

use super::cause::LossCause;
use crate::reading::{HopReading, ThreadReading, ThreadWait};

/// Shorter waits are usual.
const WAIT_MIN_NS: u64 = 500_000;

/// What kept a program from reading or sending, as far as it is known.
#[derive(Debug)]
pub(super) struct Story {
    pub cause: LossCause,
    pub sentences: Vec<String>,
    pub tid: Option<u32>,
    /// How long it was kept, nanoseconds; the whole time for a stopped program.
    pub kept_ns: u64,
}

/// Returns what the threads of a process did from one time to another. Where threads were seen to
/// read this socket, only theirs counts.
pub(super) fn story(
    readings: &[&HopReading],
    waits: &VecDeque<ThreadWait>,
    process: (u32, u64),
    time: (u64, u64),
) -> Story {
    let (pid, inode) = process;
    let (from_ns, until_ns) = time;
    let mut story =
        Story { cause: LossCause::ProgramSlow, sentences: vec![], tid: None, kept_ns: 0 };
    let reads = |thread: &&ThreadReading| thread.pid == pid && thread.reads == Some(inode);
    let of_process = |thread: &&ThreadReading| thread.pid == pid;
    let is_known = readings.iter().any(|one| one.threads.iter().any(|thread| reads(&thread)));
    let is_reader = |thread: &&ThreadReading| {
        of_process(thread) && (!is_known || known(readings, thread.tid, inode))
    };
    let all = || readings.iter().flat_map(|one| one.threads.iter().filter(is_reader));
    if let Some(thread) = all().find(|thread| thread.state == 'T' || thread.state == 't') {
        story.sentences.push(format!(
            "The program was stopped (state {}): its thread {} ({}) did not run.",
            thread.state, thread.name, thread.tid
        ));
        (story.cause, story.tid) = (LossCause::ThreadStopped, Some(thread.tid));
        story.kept_ns = until_ns.saturating_sub(from_ns);
        return story;
    }
    let overlap =
        |wait: &ThreadWait| wait.until_ns.min(until_ns).saturating_sub(wait.from_ns.max(from_ns));
    let of_reader = |wait: &&ThreadWait| all().any(|thread| thread.tid == wait.tid);
    let longest = waits.iter().filter(of_reader).max_by_key(|wait| overlap(wait));
    if let Some(wait) = longest.filter(|wait| overlap(wait) >= WAIT_MIN_NS) {
        let name = all().find(|thread| thread.tid == wait.tid).map_or("", |one| &one.name);
        let instead = wait
            .instead
            .as_ref()
            .map_or(String::new(), |(tid, name)| format!(", which ran {name} ({tid})"));
        story.sentences.push(format!(
            "Thread {name} ({}) was ready and waited {:.1} ms for CPU {}{instead}.",
            wait.tid,
            ms(wait.until_ns.saturating_sub(wait.from_ns)),
            wait.cpu
        ));
        (story.cause, story.tid) = (LossCause::ThreadWaited, Some(wait.tid));
        story.kept_ns = overlap(wait);
        return story;
    }
    let (Some(first), Some(last)) = (readings.first(), readings.last()) else { return story };
    for thread in last.threads.iter().filter(is_reader) {
        let Some(before) = first.threads.iter().find(|one| one.tid == thread.tid) else { continue };
        let delay = thread.run_delay_ns.zip(before.run_delay_ns);
        let delay_ns = delay.map_or(0, |(now, before)| now.saturating_sub(before));
        let faults = thread.major_faults.saturating_sub(before.major_faults);
        let time_ms = ms(last.at_ns.saturating_sub(first.at_ns));
        let (name, tid) = (&thread.name, thread.tid);
        if delay_ns >= WAIT_MIN_NS && delay_ns > story.kept_ns {
            story.sentences = vec![format!(
                "Thread {name} ({tid}) was ready and waited {:.1} ms of {time_ms:.0} ms for a CPU \
                 (CPU {} at last).",
                ms(delay_ns),
                thread.cpu
            )];
            (story.cause, story.tid) = (LossCause::ThreadWaited, Some(tid));
            story.kept_ns = delay_ns;
        } else if story.cause == LossCause::ProgramSlow && (faults > 0 || thread.state == 'D') {
            story.sentences = vec![format!(
                "Thread {name} ({tid}) waited for a disk: {faults} page faults in {time_ms:.0} ms."
            )];
            (story.cause, story.tid) = (LossCause::ThreadDisk, Some(tid));
        }
    }
    let stolen = last.stolen_ns.zip(first.stolen_ns);
    let stolen_ns = stolen.map_or(0, |(now, before)| now.saturating_sub(before));
    if stolen_ns >= WAIT_MIN_NS {
        story
            .sentences
            .push(format!("The hypervisor took {:.1} ms of this machine's CPUs.", ms(stolen_ns)));
    }
    story.tid = story.tid.or_else(|| all().find(reads).map(|thread| thread.tid));
    story
}

/// Returns whether a thread was seen to read a socket.
fn known(readings: &[&HopReading], tid: u32, inode: u64) -> bool {
    let mut threads = readings.iter().flat_map(|one| &one.threads);
    threads.any(|thread| thread.tid == tid && thread.reads == Some(inode))
}

/// Returns milliseconds.
pub(super) fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}
