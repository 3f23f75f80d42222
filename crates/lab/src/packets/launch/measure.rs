//! One measurement of launch times.

use std::time::Duration;

use millstream_host::netlink::Queued;

use super::{LaunchArrivals, LaunchPlan, LaunchSent, LaunchVia};
use crate::packets::job::{Role, SideJob};
use crate::packets::plan::{Carriage, EndPlan, PacketWait};
use crate::packets::rows::Half;
use crate::packets::testbed::{StageError, Testbed};

/// The parameters of a measurement.
#[derive(Debug, Clone, Copy)]
pub struct Launching {
    /// Bytes of each packet as an Ethernet frame.
    pub frame_bytes: usize,
    /// Number of packets.
    pub count: u64,
    /// From launch time to launch time.
    pub interval: Duration,
    /// How long before the first launch time of a batch the sender hands it over.
    pub lead: Duration,
    /// Packets of a batch.
    pub batch: usize,
    /// A packet within this time of its launch time is in time.
    pub tolerance: Duration,
    /// SCHED_FIFO at this priority, both sides.
    pub fifo: Option<u32>,
}

/// The results.
#[derive(Debug, Clone, Default)]
pub struct LaunchFigures {
    /// The sender's.
    pub sent: LaunchSent,
    /// The receiver's.
    pub arrived: LaunchArrivals,
    /// The counts of the queue; `None` where there is none that knows launch times.
    pub queued: Option<Queued>,
}

impl LaunchFigures {
    /// Returns the packets that the queue dropped: those that it reported, or those that it
    /// counted, if they are more.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        let counted = self.queued.as_ref().map_or(0, |queued| u64::from(queued.drops));
        counted.max(self.sent.refusals.total())
    }

    /// Returns the packets that neither arrived nor were dropped by the queue.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.sent.sent.saturating_sub(self.arrived.offsets.count() + self.dropped())
    }
}

/// Measures once.
///
/// # Errors
/// [`StageError::Refused`] where the kernel has no such queue, or refuses launch times.
pub fn launch(
    stage: &mut Testbed,
    via: LaunchVia,
    how: &Launching,
) -> Result<LaunchFigures, StageError> {
    stage.launch_queue(via.queue(how.tolerance))?;
    let places = stage.places().clone();
    let nanoseconds = |time: Duration| time.as_nanos() as u64;
    let job = |index: usize, role| SideJob {
        end: EndPlan {
            way: Half::new(Carriage::Kernel, via.link(), PacketWait::Block),
            address: places[index].address,
            frame_bytes: how.frame_bytes,
            batch_max: usize::MAX,
        },
        role,
        trace: false,
        fifo: how.fifo,
    };
    let active = |to| {
        let (count, batch) = (how.count, how.batch);
        let (interval_ns, lead_ns) = (nanoseconds(how.interval), nanoseconds(how.lead));
        job(0, Role::Launch(LaunchPlan { to, via, count, interval_ns, lead_ns, batch }))
    };
    let longest = how.interval.mul_f64(how.count as f64) + how.lead + Duration::from_secs(1);
    let passive = job(1, Role::Arrive { tolerance_ns: nanoseconds(how.tolerance) });
    let [sender, receiver] = stage.play(&passive, active, longest)?;
    Ok(LaunchFigures {
        sent: sender.launched.unwrap_or_default(),
        arrived: receiver.arrived.unwrap_or_default(),
        queued: stage.launch_counts()?,
    })
}
