//! The budget of a packet as text: calls, copies, wake-ups and delay.

use super::text::{Side, calls, or_dash};
use crate::table::Table;
use millstream_lab::packets::{PacketBudget, PacketTable, RowResults};

/// What the columns mean, and why one can have no figure.
const LEGEND: &str = "\
Copies follow from how a link works, and a port counts those that it adds; - where a driver
  decides. Wake-ups are those of all threads of the process. The delay is the time from the call
  that sends a packet to its delivery, with the time in all queues: give a --packet-rate below the
  highest, or they are full. It is measured for the workload `drop` only.
";

/// The budgets of the measured rows.
pub fn table(table: &PacketTable) -> String {
    let median = |line: &RowResults, of: fn(&PacketBudget) -> Option<f64>| {
        line.taken.median(|run| of(&run.budget))
    };
    let copies = |line: &RowResults, of: fn(&PacketBudget) -> Option<f64>| {
        or_dash(median(line, of).map(|copies| format!("{copies:.2}")))
    };
    let delay = |line: &RowResults, of: fn(&PacketBudget) -> Option<f64>| {
        or_dash(median(line, of).map(|us| format!("{us:.1}")))
    };
    let wakeups = |line: &RowResults, side: Side| {
        let per_packet = line.taken.median(|run| {
            let side = side(run);
            (side.packets > 0).then_some(side.wakeups_per_packet)
        });
        or_dash(per_packet.map(|wakeups| format!("{wakeups:.3}")))
    };
    let shown = table.lines.iter().filter(|line| !line.taken.runs.is_empty());
    let rows = Table::of(shown)
        .left("", |line| &line.name)
        .right("calls\nsend", |line| calls(line, |run| &run.sender))
        .right("/packet\nrecv", |line| calls(line, |run| &run.receiver))
        .right("copies\nsend", |line| copies(line, |budget| budget.sender_copies))
        .right("/packet\nrecv", |line| copies(line, |budget| budget.receiver_copies))
        .right("wake-ups\nsend", |line| wakeups(line, |run| &run.sender))
        .right("/packet\nrecv", |line| wakeups(line, |run| &run.receiver))
        .right("delay us\nmedian", |line| delay(line, |budget| budget.delay_median_us))
        .right("\np99", |line| delay(line, |budget| budget.delay_p99_us))
        .text();
    format!("\nbudget of a packet, frames of {} bytes\n{rows}  {LEGEND}", table.frame_bytes)
}
