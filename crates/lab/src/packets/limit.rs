//! The limit of a path: named from the observations of both sides.

use serde::{Deserialize, Serialize};

use crate::named::named;

/// The resource that limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LimitingResource {
    /// The offered rate: the sender had no more to send.
    Offered,
    /// The sender's CPU was busy.
    SenderCpu,
    /// The receiver's CPU was busy; the excess was lost.
    ReceiverCpu,
    /// The ring or queue between kernel and receiver was full although the receiver had time.
    ReceiveRing,
    /// The link took nothing although the sender had more: its ring was full because the kernel or
    /// the device behind it was busy.
    Device,
    /// Packets were lost between the two where neither link counts them.
    Kernel,
    /// Almost no packets pass although all are busy: receiving starves the later stages.
    Collapse,
    /// The sender had work, and other processes had its CPU.
    Others,
    /// Both sides had time, and no packet was lost: they waited for each other.
    Unclear,
}

named!(
    LimitingResource,
    9,
    [
        (Offered, "offered rate"),
        (SenderCpu, "sender CPU"),
        (ReceiverCpu, "receiver CPU"),
        (ReceiveRing, "receive ring"),
        (Device, "device/kernel"),
        (Kernel, "kernel between"),
        (Collapse, "COLLAPSE"),
        (Others, "other processes"),
        (Unclear, "unclear"),
    ]
);

/// The observations of both sides, as rates and shares of the measured time.
#[derive(Debug, Clone, Copy, Default)]
pub struct LimitFigures {
    /// Packets that the sender's link took.
    pub sent: u64,
    /// Packets that were received.
    pub received: u64,
    /// Share of packets known to be lost in a full receive ring or queue.
    pub ring_losses: u64,
    /// Share of the time in which the sender's link took nothing.
    pub sender_blocked: f64,
    /// CPU time of the sender over time.
    pub sender_cpu: f64,
    /// Share of the time in which no packet came.
    pub receiver_idle: f64,
    /// CPU time of the receiver over time.
    pub receiver_cpu: f64,
    /// Whether the sender had a fixed rate.
    pub paced: bool,
}

/// A loss below this share is an accident.
const LOSS_SHARE: f64 = 0.02;
/// Ratio of received to sent packets below which the path has collapsed.
const COLLAPSE_SHARE: f64 = 0.05;
/// A CPU with constant demand that gives less than this share has other processes on it.
const DISPLACED_SHARE: f64 = 0.6;
/// A CPU is busy above this share; steal and interrupts take the rest.
const BUSY_SHARE: f64 = 0.85;

/// The limiting resource.
#[must_use]
pub fn limit(seen: &LimitFigures) -> LimitingResource {
    let sent = seen.sent.max(1) as f64;
    let lost = 1.0 - (seen.received as f64 / sent).min(1.0);
    let receiver_busy = seen.receiver_idle < 1.0 - BUSY_SHARE;
    // It had work all the time and did not get its CPU.
    let displaced = receiver_busy && seen.receiver_cpu < DISPLACED_SHARE;
    if lost > 1.0 - COLLAPSE_SHARE {
        return LimitingResource::Collapse;
    }
    if lost > LOSS_SHARE {
        let in_ring = seen.ring_losses as f64 / sent > lost / 2.0;
        return match (receiver_busy, in_ring) {
            _ if displaced => LimitingResource::Others,
            (true, _) => LimitingResource::ReceiverCpu,
            (false, true) => LimitingResource::ReceiveRing,
            (false, false) => LimitingResource::Kernel,
        };
    }
    match () {
        () if seen.paced => LimitingResource::Offered,
        // No packet is lost: a receiver that sleeps between batches delays no other part.
        () if seen.sender_cpu > BUSY_SHARE && seen.sender_blocked <= 0.5 => {
            LimitingResource::SenderCpu
        }
        () if displaced => LimitingResource::Others,
        () if seen.sender_blocked > 0.5 && receiver_busy => LimitingResource::ReceiverCpu,
        () if seen.sender_blocked > 0.5 => LimitingResource::Device,
        () if receiver_busy => LimitingResource::ReceiverCpu,
        () if seen.sender_cpu + seen.sender_blocked < BUSY_SHARE => LimitingResource::Others,
        () => LimitingResource::Unclear,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A path without trouble.
    const CALM: LimitFigures = LimitFigures {
        sent: 1000,
        received: 1000,
        ring_losses: 0,
        sender_blocked: 0.0,
        sender_cpu: 0.3,
        receiver_idle: 0.6,
        receiver_cpu: 0.9,
        paced: false,
    };

    #[test]
    fn each_constructed_case_names_its_cause() {
        let lossy = LimitFigures { received: 700, sender_cpu: 1.0, ..CALM };
        for (seen, expected) in [
            (LimitFigures { sender_cpu: 0.98, ..CALM }, LimitingResource::SenderCpu),
            (
                LimitFigures { sender_cpu: 0.98, receiver_idle: 0.02, receiver_cpu: 0.05, ..CALM },
                LimitingResource::SenderCpu,
            ),
            (
                LimitFigures { sender_cpu: 0.98, sender_blocked: 0.9, ..CALM },
                LimitingResource::Device,
            ),
            (
                LimitFigures { sender_cpu: 0.98, sender_blocked: 0.9, receiver_idle: 0.01, ..CALM },
                LimitingResource::ReceiverCpu,
            ),
            (LimitFigures { receiver_idle: 0.02, ..CALM }, LimitingResource::ReceiverCpu),
            (LimitFigures { receiver_idle: 0.02, ..lossy }, LimitingResource::ReceiverCpu),
            (
                LimitFigures { receiver_idle: 0.02, receiver_cpu: 0.3, ..lossy },
                LimitingResource::Others,
            ),
            (
                LimitFigures { receiver_idle: 0.02, receiver_cpu: 0.3, ..CALM },
                LimitingResource::Others,
            ),
            (LimitFigures { ring_losses: 290, ..lossy }, LimitingResource::ReceiveRing),
            (LimitFigures { ring_losses: 10, ..lossy }, LimitingResource::Kernel),
            (LimitFigures { received: 3, ..lossy }, LimitingResource::Collapse),
            (LimitFigures { paced: true, ..CALM }, LimitingResource::Offered),
            (
                LimitFigures { paced: true, ring_losses: 300, ..lossy },
                LimitingResource::ReceiveRing,
            ),
            (CALM, LimitingResource::Others),
            (
                LimitFigures { sender_cpu: 0.5, sender_blocked: 0.45, ..CALM },
                LimitingResource::Unclear,
            ),
            (LimitFigures { received: 990, sender_cpu: 0.9, ..CALM }, LimitingResource::SenderCpu),
        ] {
            assert_eq!(limit(&seen), expected, "{seen:?}");
        }
    }
}
