//! The traffic that shares a port with the probes, and the probes' waits by the frames' times.

use serde::Serialize;

use super::waits::{WaitShare, Waits};
use super::wire::{CREDIT, frame_ns};

/// The assignment of traffic to ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PortTopology {
    /// The probes have one port, bulk another.
    Separate,
    /// One port, without bulk.
    Shared,
    /// One port with bulk, in the order of arrival.
    Bulk,
    /// One port with bulk, probes first.
    Priority,
}

/// Large frames of another sender.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Bulk {
    /// Bytes of each frame, Ethernet header included, check sequence not.
    pub frame_bytes: usize,
    /// The offered load, as a share of the port's rate. Below 1, a burst comes when the one before
    /// it has left; from 1 on all come by the clock, and the queue is full.
    pub share: f64,
    /// Frames that come at once.
    pub burst: u32,
}

/// One measurement.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PortCase {
    /// The assignment of traffic to ports.
    pub topology: PortTopology,
    /// Bits per second of each port.
    pub rate_bps: f64,
    /// The bulk; unused where the port has no other traffic.
    pub bulk: Bulk,
    /// Largest number of waiting packets where they are sent in order of arrival.
    pub queue: u32,
}

/// The longest wait of a probe for other frames.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Bound {
    /// Frames before it.
    pub frames: u32,
    /// Their time, nanoseconds.
    pub wait_ns: f64,
    /// The origin of that number.
    pub by: QueueLimit,
}

/// The limit on the frames before a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum QueueLimit {
    /// There are no frames.
    Nothing,
    /// A burst has no more, and the next comes when it has left.
    Burst,
    /// The queue takes no more.
    Queue,
    /// The frame on the wire, which cannot be interrupted.
    Wire,
}

impl PortCase {
    /// Time of a bulk frame on the wire, nanoseconds.
    #[must_use]
    pub fn frame_ns(&self) -> f64 {
        frame_ns(self.rate_bps, self.bulk.frame_bytes)
    }

    /// Whether the offered load exceeds the port's rate.
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
            PortTopology::Separate | PortTopology::Shared => (0, QueueLimit::Nothing),
            PortTopology::Priority => (1, QueueLimit::Wire),
            PortTopology::Bulk if self.is_full() || self.bulk.burst > self.queue => {
                (self.queue, QueueLimit::Queue)
            }
            PortTopology::Bulk => (self.bulk.burst, QueueLimit::Burst),
        };
        Bound { frames, wait_ns: f64::from(frames) * self.frame_ns(), by }
    }

    /// Returns how long probes wait, where bulk makes the port busy for the share `busy` of the
    /// time.
    ///
    /// A probe comes at any moment with equal probability. While the port is busy, the work before
    /// it falls to zero, one nanosecond a nanosecond; so waits are uniform then. A burst is through
    /// sooner by the [`CREDIT`] that the idle port before it gave. In a full queue, which gives
    /// none, waits lie between the time of all frames but one and that of all.
    #[must_use]
    pub fn waits(&self, busy: f64) -> Waits {
        let (frame_ns, busy) = (self.frame_ns(), busy.clamp(0.0, 1.0));
        let (all_ns, credit_ns) = (self.bound().wait_ns, CREDIT.as_nanos() as f64);
        let uniform = |share, from_ns, to_ns| WaitShare { share, from_ns, to_ns };
        Waits(match self.topology {
            PortTopology::Separate | PortTopology::Shared => Vec::new(),
            PortTopology::Bulk if self.is_full() => vec![uniform(1.0, all_ns - frame_ns, all_ns)],
            PortTopology::Bulk => {
                let longest_ns = (all_ns - credit_ns).max(0.0);
                vec![uniform(busy * longest_ns / all_ns, 0.0, longest_ns)]
            }
            PortTopology::Priority if self.is_full() => vec![uniform(busy, 0.0, frame_ns)],
            PortTopology::Priority => {
                // Of a burst, the first frame waited for is shorter by the credit.
                let burst_ns = f64::from(self.bulk.burst) * frame_ns;
                let waiting_ns = (burst_ns - credit_ns).max(0.0);
                let first_ns = waiting_ns % frame_ns;
                let others = busy * (waiting_ns - first_ns) / burst_ns;
                let first = busy * first_ns / burst_ns;
                vec![uniform(others, 0.0, frame_ns), uniform(first, 0.0, first_ns)]
            }
        })
    }

    /// Time that the queue of a [full](Self::is_full) port takes to fill, seconds.
    #[must_use]
    pub fn fills_s(&self) -> f64 {
        f64::from(self.queue) * self.frame_ns() / (self.bulk.share - 1.0) / 1e9
    }

    /// The name in tables and records.
    #[must_use]
    pub fn name(&self) -> String {
        let mbit = self.rate_bps / 1e6;
        let Bulk { share, burst, .. } = self.bulk;
        let who = match self.topology {
            PortTopology::Separate => return format!("{mbit} Mbit/s, bulk on another port"),
            PortTopology::Shared => return format!("{mbit} Mbit/s, nothing beside"),
            PortTopology::Bulk => "bulk",
            PortTopology::Priority => "priority, bulk",
        };
        let by = if burst > 1 { format!(" by {burst}") } else { String::new() };
        // The resolution at which shares are distinguished.
        let percent = (share * 1e6).round() / 1e4;
        format!("{mbit} Mbit/s, {who} {percent} %{by}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_dsp::noise::Noise;

    fn case(topology: PortTopology, share: f64, burst: u32) -> PortCase {
        let bulk = Bulk { frame_bytes: 1514, share, burst };
        PortCase { topology, rate_bps: 1e8, bulk, queue: 50 }
    }

    #[test]
    fn bounds_are_frames_times_their_time() {
        use PortTopology::{Bulk, Priority, Separate, Shared};
        for (topology, share, burst, frames, by) in [
            (Separate, 1.1, 16, 0, QueueLimit::Nothing),
            (Shared, 0.8, 16, 0, QueueLimit::Nothing),
            (Bulk, 0.8, 1, 1, QueueLimit::Burst),
            (Bulk, 0.8, 16, 16, QueueLimit::Burst),
            (Bulk, 0.8, 64, 50, QueueLimit::Queue),
            (Bulk, 1.1, 1, 50, QueueLimit::Queue),
            (Priority, 0.8, 16, 1, QueueLimit::Wire),
            (Priority, 1.1, 1, 1, QueueLimit::Wire),
        ] {
            let bound = case(topology, share, burst).bound();
            assert_eq!((bound.frames, bound.by), (frames, by), "{topology:?} {share} {burst}");
            assert!((bound.wait_ns - f64::from(frames) * 123_040.0).abs() < 1e-6);
        }
        assert_eq!(case(Bulk, 0.8, 16).period_ns(), 16.0 * 123_040.0 / 0.8);
    }

    /// Waits of probes at random moments at a port that sends frame by frame, as a token bucket
    /// does: a frame may leave when the time of all frames before it is over, less the credit.
    fn simulated(case: &PortCase) -> Vec<f64> {
        let (frame_ns, period_ns) = (case.frame_ns(), case.period_ns());
        let credit_ns = CREDIT.as_nanos() as f64;
        let (mut paid_ns, mut frames) = (0.0f64, Vec::new());
        for turn in 0..100 {
            let came_ns = f64::from(turn) * period_ns;
            for _ in 0..case.bulk.burst {
                let left_ns = came_ns.max(paid_ns - credit_ns);
                paid_ns = paid_ns.max(left_ns) + frame_ns;
                // With priority a probe waits for the frames that have left, without it for those
                // that have arrived.
                let first = case.topology == PortTopology::Priority;
                frames.push((if first { left_ns } else { came_ns }, paid_ns - credit_ns));
            }
        }
        let mut noise = Noise::new(7);
        let wait = |at_ns: f64| {
            let before = frames.partition_point(|(from_ns, _)| *from_ns <= at_ns);
            (frames[before - 1].1 - at_ns).max(0.0)
        };
        let mut waits: Vec<f64> = (0..20_000)
            .map(|_| wait(noise.bits() as f64 / u64::MAX as f64 * 100.0 * period_ns))
            .collect();
        waits.sort_by(f64::total_cmp);
        waits
    }

    #[test]
    fn waits_are_those_of_a_port_simulated_frame_by_frame() {
        for topology in [PortTopology::Bulk, PortTopology::Priority] {
            // At 1 Gbit/s two and a half frames are within the credit.
            for (rate_bps, burst, share) in [1e8, 1e9]
                .iter()
                .flat_map(|rate| [1, 2, 16].map(|burst| (*rate, burst)))
                .flat_map(|(rate, burst)| [0.1, 0.5, 0.8].map(|share| (rate, burst, share)))
            {
                let case = PortCase { rate_bps, ..case(topology, share, burst) };
                let (seen, told) = (simulated(&case), case.waits(share));
                for quantile in [0.5, 0.9, 0.99] {
                    let seen = seen[(quantile * seen.len() as f64) as usize];
                    let told = told.quantile_ns(quantile);
                    let near = 0.03 * case.bound().wait_ns;
                    assert!((seen - told).abs() < near, "{case:?} {quantile}: {seen} {told}");
                }
            }
        }
    }

    #[test]
    fn a_full_queue_is_never_less_than_all_but_one() {
        let full = case(PortTopology::Bulk, 1.1, 1);
        let frame_ns = full.frame_ns();
        let [least, most] = [1e-6, 1.0].map(|quantile| full.waits(1.0).quantile_ns(quantile));
        assert!((least - 49.0 * frame_ns).abs() < 1.0, "{least}");
        assert!((most - 50.0 * frame_ns).abs() < 1.0, "{most}");
        let first = case(PortTopology::Priority, 1.1, 1).waits(1.0).quantile_ns(1.0);
        assert!((first - frame_ns).abs() < 1.0, "{first}");
        assert_eq!(case(PortTopology::Shared, 1.1, 1).waits(1.0).quantile_ns(1.0), 0.0);
        // One frame of ten comes too many: 50 of them after 500 frames' time.
        assert!((full.fills_s() - 500.0 * frame_ns / 1e9).abs() < 1e-9);
    }

    #[test]
    fn shares_that_differ_have_names_that_differ() {
        let name = |share| case(PortTopology::Bulk, share, 16).name();
        assert_eq!(name(0.8), "100 Mbit/s, bulk 80 % by 16");
        assert_eq!(name(1.1), "100 Mbit/s, bulk 110 % by 16");
        assert_eq!(name(0.804), "100 Mbit/s, bulk 80.4 % by 16");
    }
}
