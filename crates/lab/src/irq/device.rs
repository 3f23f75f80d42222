//! The imitated device: converter, transfer and capture clock in one loop that wakes early enough
//! for every edge.

use std::fs::File;
use std::hint::spin_loop;
use std::io::{self, Write};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::Duration;

use super::board::{BLOCKS, SharedBoard, command};
use millstream_cpu::alarm::now_ns;

/// The tick of its clock, nanoseconds.
const TICK_NS: f64 = 10.0;
/// The rate of its clock: 40 ppm fast, as crystals are.
const RATE: f64 = 1.0 + 40e-6;
/// Its clock when the host's is 0, nanoseconds.
const OFFSET_NS: f64 = 7.7e12;
/// It spins from this long before an edge, and sleeps until then.
const AWAKE_NS: u64 = 150_000;
/// A driver that has not started a transfer after this many periods has missed it.
const PATIENCE_PERIODS: u64 = 20;

/// It spins this long after a query, then sleeps.
const ATTENTIVE_NS: u64 = 50_000_000;
/// One sleep.
const NAP: Duration = Duration::from_micros(500);

/// Raises the interrupt line, an eventfd.
fn raise(line: &mut File) -> io::Result<()> {
    line.write_all(&1u64.to_ne_bytes())
}

/// The device's clock at a time of the host's, ticks.
fn ticks(host_ns: u64) -> u64 {
    ((host_ns as f64 + OFFSET_NS) * RATE / TICK_NS) as u64
}

/// Serves a board until the END command.
///
/// # Errors
/// The kernel's, when an interrupt cannot be raised.
pub fn serve(board: &SharedBoard, line: &mut File) -> io::Result<()> {
    let mut asked_ns = now_ns();
    loop {
        match board.command.load(Acquire) {
            command::CONVERT if board.finished.load(Relaxed) == 0 => {
                convert(board, line)?;
                board.finished.store(1, Release);
                asked_ns = now_ns();
            }
            command::END => return Ok(()),
            _ if answer(board) => asked_ns = now_ns(),
            // The next query comes at once, or much later.
            _ if now_ns() - asked_ns > ATTENTIVE_NS => std::thread::sleep(NAP),
            _ => spin_loop(),
        }
    }
}

/// Answers a pending clock query.
fn answer(board: &SharedBoard) -> bool {
    let question = board.question.load(Acquire);
    let is_new = question != board.answered.load(Relaxed);
    if is_new {
        board.answer_ticks.store(ticks(now_ns()), Relaxed);
        board.answered.store(question, Release);
    }
    is_new
}

fn convert(board: &SharedBoard, line: &mut File) -> io::Result<()> {
    let period_ns = board.period_ns.load(Relaxed).max(1);
    let two = board.interrupts.load(Relaxed) == 2;
    let mut edge_ns = now_ns() + period_ns;
    let mut number = 0;
    for _ in 0..board.count.load(Relaxed) {
        wait_until(edge_ns, AWAKE_NS.min(period_ns / 3));
        if board.command.load(Relaxed) != command::CONVERT {
            break;
        }
        let truth_ns = now_ns();
        let edge_ticks = ticks(truth_ns);
        // After a stall of the device itself the clock continues from now.
        edge_ns = edge_ns.max(truth_ns.saturating_sub(period_ns)) + period_ns;
        if number - board.consumed.load(Acquire) >= BLOCKS as u64 - 1 {
            board.overruns.fetch_add(1, Relaxed);
            continue;
        }
        let next = number + 1;
        let block = board.block(next);
        block.edge_ticks.store(edge_ticks, Relaxed);
        block.truth_ns.store(truth_ns, Relaxed);
        block.converted_ticks.store(0, Relaxed);
        if two {
            block.converted_ticks.store(ticks(now_ns()), Release);
            raise(line)?;
            if !transfer_is_started(board, next, truth_ns + PATIENCE_PERIODS * period_ns) {
                board.overruns.fetch_add(1, Relaxed);
                continue;
            }
        }
        for (place, sample) in (number * block.samples.len() as u64..).zip(&block.samples) {
            sample.store(place, Relaxed);
        }
        // A reader that sees this block complete sees that the next one is not yet converted.
        board.block(next + 1).converted_ticks.store(0, Relaxed);
        block.raised_ticks.store(ticks(now_ns()), Relaxed);
        block.number.store(next, Release);
        raise(line)?;
        number = next;
    }
    Ok(())
}

fn wait_until(at_ns: u64, awake_ns: u64) {
    let left_ns = at_ns.saturating_sub(now_ns());
    if left_ns > awake_ns {
        std::thread::sleep(Duration::from_nanos(left_ns - awake_ns));
    }
    while now_ns() < at_ns {
        spin_loop();
    }
}

/// Waits for the driver's doorbell, which hardware would see at once.
fn transfer_is_started(board: &SharedBoard, number: u64, until_ns: u64) -> bool {
    while board.transfers.load(Acquire) < number {
        if now_ns() > until_ns || board.command.load(Relaxed) != command::CONVERT {
            return false;
        }
        spin_loop();
    }
    true
}
