//! The picture: each flow with its hops as a row, losses where they occurred.

use super::observer::Observer;
use crate::account::hop_name;
use crate::output::short;
use millstream_watch::{DataFlow, Hop, SocketReading, ThreadReading};
use std::fmt::Write;

/// The hops in the order of the receive direction, and of the transmit direction.
const RECEIVE: [Hop; 7] =
    [Hop::Radio, Hop::Wire, Hop::Card, Hop::Backlog, Hop::Stack, Hop::Socket, Hop::Program];
const TRANSMIT: [Hop; 5] = [Hop::Program, Hop::Stack, Hop::SendQueue, Hop::Wire, Hop::Radio];
/// Cells of a bar.
const BAR: u64 = 20;

/// Returns the lines of the picture, for a terminal of so many columns and rows.
pub fn lines(observer: &Observer, (columns, rows): (usize, usize)) -> Vec<String> {
    let mut lines = vec![line(observer), String::new()];
    if observer.account.flows().is_empty() {
        lines.push("no radio stream passes (CHDR, UDP port 49153; --port adds others)".to_owned());
    }
    for (number, flow) in observer.account.flows().iter().enumerate() {
        if lines.len() + 8 > rows {
            lines.push(format!("and {} more streams", observer.account.flows().len() - number));
            break;
        }
        lines.extend(flow_lines(observer, number, flow));
    }
    let room = rows.saturating_sub(lines.len() + 2);
    let latest: Vec<_> = observer.groups.lines().rev().take(room).collect();
    lines.extend(latest.into_iter().rev());
    for line in &mut lines {
        *line = line.chars().take(columns.saturating_sub(1)).collect();
    }
    lines
}

/// Returns all in one line.
pub fn line(observer: &Observer) -> String {
    let seconds = observer.at_s(Some(observer.shown[1].at_ns)).unwrap_or(0.0);
    let programs: Vec<_> = observer
        .programs
        .iter()
        .map(|program| format!("{} ({})", program.name, program.pid))
        .collect();
    let flows = observer.account.flows().len();
    let mut line = format!("{seconds:.1} s  {flows} streams  {} lost", observer.lost);
    if !programs.is_empty() {
        let _ = write!(line, "  {}", programs.join(", "));
    }
    line
}

fn flow_lines(observer: &Observer, number: usize, flow: &DataFlow) -> Vec<String> {
    let from_radio = observer.account.is_from_radio(flow);
    let (radio, host) = match from_radio {
        true => (flow.key().source, flow.key().destination),
        false => (flow.key().destination, flow.key().source),
    };
    let arrow = if from_radio { "→" } else { "←" };
    let packets_hz = observer.rates_hz.get(number).copied().unwrap_or(0.0);
    let mut heading = format!("radio {radio} {arrow} {host}  {packets_hz:.0} packets/s");
    if let Some(rate_hz) = flow.rate_hz() {
        let _ = write!(heading, ", about {} samples a second", short(rate_hz.round()));
    }
    let hops: &[Hop] = if from_radio { &RECEIVE } else { &TRANSMIT };
    let (mut names, mut counts) = ("  ".to_owned(), "  ".to_owned());
    for (place, hop) in hops.iter().enumerate() {
        let name = hop_name(*hop).replace('_', " ");
        let lost = observer.at_hops.get(&(Some(number), *hop)).copied().unwrap_or(0);
        let lost = if lost == 0 { "·".to_owned() } else { lost.to_string() };
        let width = name.chars().count().max(lost.chars().count());
        let link = if place == 0 { "" } else { " ── " };
        let gap = if place == 0 { "" } else { "    " };
        let _ = write!(names, "{link}{name:^width$}");
        let _ = write!(counts, "{gap}{lost:^width$}");
    }
    let mut lines = vec![heading, names, counts];
    let socket = observer.shown[1].sockets.iter().find(|socket| socket.receives(host));
    if let Some(socket) = socket.filter(|_| from_radio) {
        let share = socket.queued_bytes * BAR / socket.buffer_bytes.max(1);
        let full = share.min(BAR) as usize;
        lines.push(format!(
            "  socket buffer {}{} {} of {} kB",
            "█".repeat(full),
            "░".repeat(BAR as usize - full),
            socket.queued_bytes / 1000,
            socket.buffer_bytes / 1000
        ));
    }
    if let Some(thread) = socket.and_then(|socket| reader(&observer.shown[1].threads, socket)) {
        lines.push(thread_line(observer, thread));
    }
    lines.push(String::new());
    lines
}

/// Returns the thread that reads a socket, or else the busiest one of its program.
fn reader<'a>(threads: &'a [ThreadReading], socket: &SocketReading) -> Option<&'a ThreadReading> {
    let of_program = || threads.iter().filter(|thread| Some(thread.pid) == socket.pid);
    let reads = of_program().find(|thread| thread.reads == Some(socket.inode));
    reads.or_else(|| of_program().max_by_key(|thread| thread.cpu_ns))
}

/// Returns what a thread did since the picture before.
fn thread_line(observer: &Observer, thread: &ThreadReading) -> String {
    let [before, now] = &observer.shown;
    let ThreadReading { name, tid, cpu, state, .. } = thread;
    let mut line = format!("  thread {name} ({tid}) on CPU {cpu}, state {state}");
    let earlier = before.threads.iter().find(|earlier| earlier.tid == *tid);
    let passed_ns = now.at_ns.saturating_sub(before.at_ns).max(1) as f64;
    let share = |now: u64, before: u64| 100.0 * now.saturating_sub(before) as f64 / passed_ns;
    if let Some(earlier) = earlier {
        let _ = write!(line, ", runs {:.0} %", share(thread.cpu_ns, earlier.cpu_ns));
        if let Some((now, before)) = thread.run_delay_ns.zip(earlier.run_delay_ns) {
            let _ = write!(line, ", waits for the CPU {:.1} %", share(now, before));
        }
    }
    line
}
