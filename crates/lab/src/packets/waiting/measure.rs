//! One measurement of a wait mode.

use std::time::Duration;

use millstream_ring::Wait;

use super::{Delivered, TickPlan, link_with};
use crate::packets::job::{Role, SideJob};
use crate::packets::plan::{Carriage, PacketWait};
use crate::packets::rows::Half;
use crate::packets::testbed::{StageError, Testbed};

/// Bytes of each packet as an Ethernet frame.
const FRAME_BYTES: usize = 64;

/// A wait mode on a link, at a rate.
#[derive(Debug, Clone, PartialEq)]
pub struct WaitCase {
    /// The link, without interface and wait mode.
    pub link: String,
    /// The wait mode.
    pub wait: Wait,
    /// Packets per second.
    pub rate_pps: f64,
}

/// The results.
#[derive(Debug, Clone, Default)]
pub struct WaitFigures {
    /// Packets that were sent.
    pub sent: u64,
    /// What the waiting thread saw and took.
    pub delivered: Delivered,
}

/// Measures once, for `span`.
///
/// # Errors
/// [`StageError::Refused`] where the link cannot be opened.
pub fn wait(
    stage: &mut Testbed,
    case: &WaitCase,
    span: Duration,
    fifo: Option<u32>,
) -> Result<WaitFigures, StageError> {
    let places = stage.places().clone();
    let (rate_pps, span_ns) = (case.rate_pps, span.as_nanos() as u64);
    let job = |half: &Half, index: usize, role| SideJob {
        end: half.at(&places[index], FRAME_BYTES),
        role,
        trace: false,
        fifo,
    };
    let sender = Half::new(Carriage::Kernel, "udp", PacketWait::Spin);
    let active = |to| job(&sender, 0, Role::Tick(TickPlan { to, rate_pps, span_ns }));
    let receiver = link_with(&case.link, case.wait);
    let receiver = Half::new(Carriage::Port, &receiver, PacketWait::Block);
    let [ticks, waits] = stage.play(&job(&receiver, 1, Role::Listen), active, span)?;
    Ok(WaitFigures { sent: ticks.total, delivered: waits.waited.unwrap_or_default() })
}
