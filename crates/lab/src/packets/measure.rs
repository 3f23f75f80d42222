//! One measurement of one row.

use std::time::Duration;

use serde::Serialize;

use super::budget::PacketBudget;
use super::end::EndAddress;
use super::job::{JobResult, Role, SideJob};
use super::limit::{LimitFigures, LimitingResource, limit};
use super::plan::{Carriage, EndPlan, PacketWait, Span, Workload};
use super::rows::{Half, PathRow};
use super::testbed::{StageError, Testbed};
use super::window::WindowCounts;

/// The results of one measurement of one row.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RowMeasurement {
    /// Packets per second at the counting side: the receiver, the side that returns packets, or the
    /// sender where there is no receiver.
    pub rate_pps: f64,
    /// The sender's window.
    pub sender: WindowCounts,
    /// The receiver's window.
    pub receiver: WindowCounts,
    /// Packets sent in the whole run.
    pub sent: u64,
    /// Packets received in the whole run.
    pub received: u64,
    /// Packets returned to the sender.
    pub returned: u64,
    /// Packets lost or refused, by cause, both sides.
    pub events: Vec<(String, u64)>,
    /// Lost, and counted by neither side.
    pub unaccounted: u64,
    /// Copies and delays of a packet.
    pub budget: PacketBudget,
    /// The limiting resource.
    pub limit: LimitingResource,
}

/// The parameters of a row's measurement.
#[derive(Debug, Clone, Copy)]
pub struct How {
    /// The workload.
    pub workload: Workload,
    /// Bytes of each as an Ethernet frame.
    pub frame_bytes: usize,
    /// Times.
    pub span: Span,
    /// Packets per second offered; `None`: as many as the link takes.
    pub rate_pps: Option<f64>,
    /// The most packets of one call of the sender, and of a receiving socket of the kernel; links
    /// with smaller batches give fewer.
    pub batch_max: usize,
    /// Whether some packets carry the time at which they were sent, so that delays are known.
    pub stamped: bool,
    /// Whether the kernel counts system calls.
    pub trace: bool,
    /// SCHED_FIFO at this priority.
    pub fifo: Option<u32>,
}

/// Measures a row once.
///
/// # Errors
/// [`StageError::Refused`] when the row cannot be measured here.
pub fn measure(
    stage: &mut Testbed,
    row: &PathRow,
    how: &How,
) -> Result<RowMeasurement, StageError> {
    let places = stage.places().clone();
    let job = |half: &Half, index: usize, role| SideJob {
        end: EndPlan { batch_max: how.batch_max, ..half.at(&places[index], how.frame_bytes) },
        role,
        trace: how.trace,
        fifo: how.fifo,
    };
    let passive = match how.workload {
        Workload::Drop => {
            job(&row.passive, 1, Role::Receive { span: how.span, stamped: how.stamped })
        }
        Workload::Swap => job(&row.passive, 1, Role::Turn(how.span)),
        // A socket without a reader: datagrams end there, frames at the interface.
        Workload::Transmit => {
            job(&Half::new(Carriage::Kernel, "", PacketWait::Block), 1, Role::Hold)
        }
    };
    let drain = how.workload == Workload::Swap;
    let active = |to: EndAddress| {
        let How { span, rate_pps, batch_max, .. } = *how;
        let stamped = how.stamped && how.workload == Workload::Drop;
        job(&row.active, 0, Role::Transmit { span, to, rate_pps, batch_max, drain, stamped })
    };
    let longest = Duration::from_nanos(how.span.total_ns());
    let [sender, receiver] = stage.play(&passive, active, longest)?;
    Ok(judge(how, sender, receiver))
}

fn judge(how: &How, sender: JobResult, receiver: JobResult) -> RowMeasurement {
    let received = if how.workload == Workload::Swap { receiver.came } else { receiver.total };
    let counted = match how.workload {
        Workload::Transmit => sender.counted,
        _ => receiver.counted,
    };
    let seen = LimitFigures {
        sent: sender.total,
        received: if how.workload == Workload::Transmit { sender.total } else { received },
        ring_losses: ring_losses(&receiver.events),
        sender_blocked: sender.counted.idle_share,
        sender_cpu: sender.counted.cpus(),
        // A side that does not receive has no work.
        receiver_idle: match how.workload {
            Workload::Transmit => 1.0,
            _ => receiver.counted.idle_share,
        },
        receiver_cpu: receiver.counted.cpus(),
        paced: how.rate_pps.is_some(),
    };
    let budget = PacketBudget::of(how.workload, &sender, &receiver);
    let lost = seen.sent.saturating_sub(seen.received);
    let named = ring_losses(&receiver.events) + named_losses(&sender.events, &SENT_IN_VAIN);
    let prefix = |side: &str, events: Vec<(String, u64)>| {
        let named = events.into_iter().map(|(name, count)| (format!("{side} {name}"), count));
        named.collect::<Vec<_>>()
    };
    let mut events = prefix("sender", sender.events);
    events.extend(prefix("receiver", receiver.events));
    RowMeasurement {
        rate_pps: counted.rate(),
        sender: sender.counted,
        receiver: receiver.counted,
        sent: sender.total,
        received,
        returned: sender.returned,
        events,
        unaccounted: lost.saturating_sub(named),
        budget,
        limit: limit(&seen),
    }
}

/// Losses because a receiver was slow.
const RECEIVED_LATE: [&str; 5] =
    ["socket_queue_full", "port_queue_full", "rx_ring_full", "rx_starved", "rx_dropped"];
/// Losses of the sender.
const SENT_IN_VAIN: [&str; 3] = ["unsent", "tx_dropped", "tx_invalid"];

/// Packets that a receiver knows to be lost because it was slow.
fn ring_losses(events: &[(String, u64)]) -> u64 {
    named_losses(events, &RECEIVED_LATE)
}

fn named_losses(events: &[(String, u64)], names: &[&str]) -> u64 {
    let lost = events.iter().filter(|(name, _)| names.contains(&name.as_str()));
    lost.map(|(_, count)| count).sum()
}
