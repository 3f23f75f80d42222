//! One measurement over a port.

use std::time::{Duration, Instant};

use millstream_host::netlink::{PortShape, QueueOrder, Queued};

use super::wire::{CREDIT, LEAST, OVERHEAD};
use super::{PortCase, PortTopology};
use crate::packets::job::{BulkPlan, Role, RoundTrips, SideJob};
use crate::packets::plan::{Carriage, EndPlan, PacketWait};
use crate::packets::round_trips::{PATIENCE, Round, trip};
use crate::packets::rows::{Half, PathRow};
use crate::packets::testbed::{ActivePort, ActivePorts, StageError, Testbed};

/// `TC_PRIO_INTERACTIVE` (`linux/pkt_sched.h`): the first band of `pfifo_fast`, open to any user.
const FIRST_BAND: u32 = 6;
/// The wait for a full queue: this and twice the time that it should take.
const FILLS_AT_LEAST: Duration = Duration::from_secs(5);
/// Interval of its checks.
const LOOK: Duration = Duration::from_millis(10);

/// The parameters of probes.
#[derive(Debug, Clone, Copy)]
pub struct Probing {
    /// Bytes of each as an Ethernet frame.
    pub frame_bytes: usize,
    /// Number of probes.
    pub count: u64,
    /// Probes per second, by the clock.
    pub rate_pps: f64,
    /// SCHED_FIFO at this priority, both sides; bulk is ordinary.
    pub fifo: Option<u32>,
}

/// The results.
#[derive(Debug, Clone)]
pub struct PortFigures {
    /// Round trips.
    pub trips: RoundTrips,
    /// The counts of the queue of the bulk's port.
    pub queued: Queued,
    /// Frames of bulk that were offered.
    pub offered: u64,
    /// Share of the time for which that port was busy, by its sent frames and their times.
    pub busy: f64,
}

/// Measures a case once.
///
/// # Errors
/// [`StageError`] when a side ended or refused, or the kernel cannot shape a port.
pub fn through(
    stage: &mut Testbed,
    ports: &mut ActivePorts,
    case: &PortCase,
    how: &Probing,
) -> Result<PortFigures, StageError> {
    let order = match case.topology {
        PortTopology::Priority => QueueOrder::Priority,
        _ => QueueOrder::Arrival { limit: case.queue },
    };
    let shape = |order| PortShape {
        rate_bps: case.rate_bps as u64,
        overhead: OVERHEAD,
        least: LEAST,
        credit: CREDIT,
        order,
    };
    ports.shape(ActivePort::First, &shape(order))?;
    ports.shape(ActivePort::Second, &shape(QueueOrder::Arrival { limit: case.queue }))?;
    // With spinning, the asking side follows the clock, and its CPU is awake when an answer comes.
    let asks = Half::new(Carriage::Kernel, "udp", PacketWait::Spin);
    let row = PathRow {
        name: case.name(),
        active: Half { priority: Some(FIRST_BAND), ..asks },
        passive: Half::new(Carriage::Kernel, "udp", PacketWait::Block),
    };
    let Probing { frame_bytes, count, rate_pps, fifo } = *how;
    // Beside its own time, a probe takes at most as long as it waits for others.
    let patience = PATIENCE + 2 * Duration::from_secs_f64(case.bound().wait_ns / 1e9);
    let rate_pps = Some(rate_pps);
    let round = Round { frame_bytes, count, rate_pps, load_pps: None, fifo, patience };
    let port = match case.topology {
        PortTopology::Separate => ActivePort::Second,
        PortTopology::Shared | PortTopology::Bulk | PortTopology::Priority => ActivePort::First,
    };
    let mut measure = |ports: &ActivePorts| {
        if case.topology == PortTopology::Bulk && case.is_full() {
            until_full(ports, port, case)?;
        }
        let (begun, before) = (Instant::now(), ports.queued(port)?);
        let trips = trip(stage, &row, &round, None)?;
        let (seconds, queued) = (begun.elapsed().as_secs_f64(), ports.queued(port)?);
        let bytes = queued.bytes - before.bytes;
        let frames = bytes as f64 / case.bulk.frame_bytes as f64;
        let busy = frames * case.frame_ns() / 1e9 / seconds;
        Ok(PortFigures { trips, queued, offered: 0, busy })
    };
    if case.topology == PortTopology::Shared {
        return measure(ports);
    }
    let (found, outcome) = ports.beside(&bulk(case, port), measure)?;
    Ok(PortFigures { offered: outcome.total, ..found })
}

/// Waits until the queue drops: then it is full.
fn until_full(ports: &ActivePorts, port: ActivePort, case: &PortCase) -> Result<(), StageError> {
    let patience = FILLS_AT_LEAST + 2 * Duration::from_secs_f64(case.fills_s());
    let begun = Instant::now();
    while ports.queued(port)?.drops == 0 {
        if ports.is_ended() {
            return Err(StageError::Ended);
        }
        if begun.elapsed() > patience {
            return Err(StageError::Refused(format!(
                "{}: the queue of {} packets was not full after {:.0} s, so bulk does not come as \
                 fast as it should; give a lower --link-rate, a larger --share or a smaller \
                 --queue",
                case.name(),
                case.queue,
                patience.as_secs_f64()
            )));
        }
        std::thread::sleep(LOOK);
    }
    Ok(())
}

/// The job of the other process.
fn bulk(case: &PortCase, port: ActivePort) -> SideJob {
    let end = EndPlan {
        way: Half::new(Carriage::Kernel, "", PacketWait::Block),
        address: port.address(),
        frame_bytes: case.bulk.frame_bytes,
        batch_max: usize::MAX,
    };
    let plan = BulkPlan {
        to: port.nobody(),
        burst: case.bulk.burst,
        period_ns: case.period_ns() as u64,
        by_clock: case.is_full(),
    };
    SideJob { end, role: Role::Bulk(plan), trace: false, fifo: None }
}
