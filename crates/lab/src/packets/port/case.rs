//! What shares a port with the probes, and how long they wait for it by the frames' times.

use serde::Serialize;

use super::wire::frame_ns;

/// Who has which port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Topology {
    /// The probes have a port, bulk another one.
    Separate,
    /// One port, nothing else on it.
    Shared,
    /// One port with bulk, in the order of arrival.
    Bulk,
    /// One port with bulk, probes first.
    Priority,
}

/// Large frames that others send.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Bulk {
    /// Bytes of each frame, Ethernet header included, check sequence not.
    pub frame_bytes: usize,
    /// What is offered, as a share of what the port can carry. Below 1, a burst comes when the one
    /// before it has left; from 1 on all come by the clock, and the queue is full.
    pub share: f64,
    /// Frames that come at once.
    pub burst: u32,
}

/// One measurement.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Case {
    /// Who has which port.
    pub topology: Topology,
    /// Bits per second of each port.
    pub rate_bps: f64,
    /// The bulk; unused where nothing else is on the port.
    pub bulk: Bulk,
    /// Packets that wait at most where they are sent as they come.
    pub queue: u32,
}

/// The longest that a probe can wait for other frames.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Bound {
    /// Frames before it.
    pub frames: u32,
    /// Their time, nanoseconds.
    pub wait_ns: f64,
    /// Whose number that is.
    pub by: Limit,
}

/// What limits how many frames a probe finds before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Limit {
    /// There are none.
    Nothing,
    /// A burst has no more, and the next comes when it has left.
    Burst,
    /// The queue takes no more.
    Queue,
    /// The one on the wire, which nobody interrupts.
    Wire,
}

impl Case {
    /// Time of a bulk frame on the wire, nanoseconds.
    #[must_use]
    pub fn frame_ns(&self) -> f64 {
        frame_ns(self.rate_bps, self.bulk.frame_bytes)
    }

    /// Whether more is offered than the port can carry.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.bulk.share >= 1.0
    }

    /// From burst to burst, nanoseconds.
    #[must_use]
    pub fn period_ns(&self) -> f64 {
        self.frame_ns() * f64::from(self.bulk.burst) / self.bulk.share
    }

    /// The longest wait.
    #[must_use]
    pub fn bound(&self) -> Bound {
        let (frames, by) = match self.topology {
            Topology::Separate | Topology::Shared => (0, Limit::Nothing),
            Topology::Priority => (1, Limit::Wire),
            Topology::Bulk if self.is_full() || self.bulk.burst > self.queue => {
                (self.queue, Limit::Queue)
            }
            Topology::Bulk => (self.bulk.burst, Limit::Burst),
        };
        Bound { frames, wait_ns: f64::from(frames) * self.frame_ns(), by }
    }

    /// The wait that a `quantile` of the probes does not exceed, where bulk keeps the port busy for
    /// the share `busy` of the time, nanoseconds.
    ///
    /// A probe comes at any moment alike. Work before it falls from the bound to nothing while the
    /// port is busy, at one nanosecond a nanosecond; so it is uniform then. In a full queue it
    /// lies between all but one of the frames and all.
    #[must_use]
    pub fn wait_ns(&self, busy: f64, quantile: f64) -> f64 {
        let Bound { wait_ns, by, .. } = self.bound();
        match by {
            Limit::Nothing => 0.0,
            Limit::Queue if self.is_full() => wait_ns - self.frame_ns() * (1.0 - quantile),
            _ if busy <= 0.0 => 0.0,
            _ => wait_ns * (1.0 - (1.0 - quantile) / busy.min(1.0)).max(0.0),
        }
    }

    /// The name in tables and records.
    #[must_use]
    pub fn name(&self) -> String {
        let mbit = self.rate_bps / 1e6;
        let Bulk { share, burst, .. } = self.bulk;
        let who = match self.topology {
            Topology::Separate => return format!("{mbit} Mbit/s, bulk on another port"),
            Topology::Shared => return format!("{mbit} Mbit/s, nothing beside"),
            Topology::Bulk => "bulk",
            Topology::Priority => "priority, bulk",
        };
        let by = if burst > 1 { format!(" by {burst}") } else { String::new() };
        format!("{mbit} Mbit/s, {who} {:.0} %{by}", share * 100.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_dsp::noise::Noise;

    fn case(topology: Topology, share: f64, burst: u32) -> Case {
        let bulk = Bulk { frame_bytes: 1514, share, burst };
        Case { topology, rate_bps: 1e8, bulk, queue: 50 }
    }

    #[test]
    fn bounds_are_frames_times_their_time() {
        use Topology::{Bulk, Priority, Separate, Shared};
        for (topology, share, burst, frames, by) in [
            (Separate, 1.1, 16, 0, Limit::Nothing),
            (Shared, 0.8, 16, 0, Limit::Nothing),
            (Bulk, 0.8, 1, 1, Limit::Burst),
            (Bulk, 0.8, 16, 16, Limit::Burst),
            (Bulk, 0.8, 64, 50, Limit::Queue),
            (Bulk, 1.1, 1, 50, Limit::Queue),
            (Priority, 0.8, 16, 1, Limit::Wire),
            (Priority, 1.1, 1, 1, Limit::Wire),
        ] {
            let bound = case(topology, share, burst).bound();
            assert_eq!((bound.frames, bound.by), (frames, by), "{topology:?} {share} {burst}");
            assert!((bound.wait_ns - f64::from(frames) * 123_040.0).abs() < 1e-6);
        }
        assert_eq!(case(Bulk, 0.8, 16).period_ns(), 16.0 * 123_040.0 / 0.8);
    }

    /// Waits of probes at random moments of a port that sends frame by frame, told step by step.
    fn simulated(case: &Case) -> Vec<f64> {
        let (frame_ns, period_ns) = (case.frame_ns(), case.period_ns());
        let mut noise = Noise::new(7);
        let mut waits: Vec<f64> = (0..20_000)
            .map(|_| {
                let at_ns = noise.bits() as f64 / u64::MAX as f64 * period_ns;
                // Frames of the burst leave one after the other from the beginning of the period.
                let ends = (1..=case.bulk.burst).map(|frame| f64::from(frame) * frame_ns);
                let left: Vec<f64> = ends.filter(|end_ns| *end_ns > at_ns).collect();
                let whole =
                    if case.topology == Topology::Priority { left.first() } else { left.last() };
                whole.map_or(0.0, |end_ns| end_ns - at_ns)
            })
            .collect();
        waits.sort_by(f64::total_cmp);
        waits
    }

    #[test]
    fn waits_are_those_of_a_port_simulated_frame_by_frame() {
        for (topology, burst) in
            [(Topology::Bulk, 1), (Topology::Bulk, 16), (Topology::Priority, 1)]
        {
            for share in [0.1, 0.5, 0.8] {
                let case = case(topology, share, burst);
                let waits = simulated(&case);
                for quantile in [0.5, 0.9, 0.99] {
                    let seen = waits[(quantile * waits.len() as f64) as usize];
                    let told = case.wait_ns(share, quantile);
                    let near = 0.03 * case.bound().wait_ns;
                    assert!((seen - told).abs() < near, "{case:?} {quantile}: {seen} {told}");
                }
            }
        }
        // A burst of many keeps the wire as busy as single frames do.
        let (one, many) = (case(Topology::Priority, 0.8, 1), case(Topology::Priority, 0.8, 16));
        assert_eq!(one.wait_ns(0.8, 0.99), many.wait_ns(0.8, 0.99));
    }

    #[test]
    fn a_full_queue_is_never_less_than_all_but_one() {
        let full = case(Topology::Bulk, 1.1, 1);
        let frame_ns = full.frame_ns();
        assert!((full.wait_ns(1.0, 0.0) - 49.0 * frame_ns).abs() < 1e-6);
        assert!((full.wait_ns(1.0, 1.0) - 50.0 * frame_ns).abs() < 1e-6);
        assert!((case(Topology::Priority, 1.1, 1).wait_ns(1.0, 1.0) - frame_ns).abs() < 1e-6);
        assert_eq!(case(Topology::Shared, 1.1, 1).wait_ns(1.0, 1.0), 0.0);
    }
}
