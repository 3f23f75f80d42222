//! The sender of packets with launch times.

use std::io;
use std::net::SocketAddrV4;
use std::sync::atomic::{AtomicBool, Ordering};

use millstream_cpu::usage::thread_cpu_time;
use millstream_link::launch::LaunchClock;
use millstream_link::port::{Port, PortOptions};

use super::{LaunchPlan, LaunchSent, LaunchVia, MARK_BYTES, mark};
use crate::packets::end::{EndAddress, HEADER_BYTES};
use crate::packets::job::JobResult;
use crate::packets::plan::EndPlan;
use millstream_cpu::alarm::{now_ns, sleep_to};

/// From the beginning to the first launch time, beside the lead, nanoseconds.
const START_NS: u64 = 20_000_000;
/// After the last launch time, for reports of the queue, nanoseconds.
const SETTLE_NS: u64 = 100_000_000;

/// A port of the kernel's UDP.
pub(in crate::packets) struct LaunchEnd {
    port: Port,
    payload_bytes: usize,
}

impl LaunchEnd {
    /// Opens it.
    ///
    /// # Errors
    /// The link's, with the remedy.
    pub fn open(end: &EndPlan, via: LaunchVia) -> Result<Self, String> {
        let local = SocketAddrV4::new(end.address, 0);
        let port = millstream_net::open(via.link(), local, &PortOptions::default());
        let port = port.map_err(|error| error.to_string())?;
        let payload_bytes = end.frame_bytes.saturating_sub(HEADER_BYTES).max(MARK_BYTES);
        Ok(Self { port, payload_bytes })
    }

    pub fn address(&self) -> EndAddress {
        EndAddress { mac: [0; 6], udp: self.port.local }
    }

    /// Sends all packets, unless it must stop.
    ///
    /// # Errors
    /// The link's.
    pub fn play(&mut self, plan: &LaunchPlan, stop: &AtomicBool) -> io::Result<JobResult> {
        // Otherwise the kernel may add 50 us to every sleep.
        // SAFETY: a plain number for the calling thread.
        unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1usize) };
        let (lead_ns, batch) = match plan.via {
            LaunchVia::Thread => (0, 1),
            _ => (plan.lead_ns, plan.batch.max(1)),
        };
        let mut train = vec![0; batch * self.payload_bytes];
        let start_ns = now_ns() + START_NS + lead_ns;
        let due_ns = |number: u64| start_ns + number * plan.interval_ns;
        let (before, mut sent) = (thread_cpu_time(), 0);
        while sent < plan.count && !stop.load(Ordering::Relaxed) {
            sleep_to(due_ns(sent) - lead_ns)?;
            let count = (plan.count - sent).min(batch as u64);
            let train = &mut train[..count as usize * self.payload_bytes];
            self.send(plan, train, due_ns(sent))?;
            sent += count;
        }
        let cpu_s = (thread_cpu_time() - before).as_secs_f64();
        sleep_to(due_ns(sent) + SETTLE_NS)?;
        let refusals = self.port.tx.launch().map(|launch| launch.refusals()).unwrap_or_default();
        let launched = Some(LaunchSent { sent, refusals, cpu_s });
        Ok(JobResult { total: sent, launched, ..JobResult::default() })
    }

    /// Sends a batch whose first packet is due at a time of the monotonic clock.
    fn send(&mut self, plan: &LaunchPlan, train: &mut [u8], due_ns: u64) -> io::Result<()> {
        let (bytes, gap_ns, to) = (self.payload_bytes, plan.interval_ns, plan.to.udp);
        let mut fill = |clock, at_ns: u64| {
            for (index, payload) in train.chunks_exact_mut(bytes).enumerate() {
                mark(payload, clock, at_ns + index as u64 * gap_ns);
            }
        };
        match self.port.tx.launch() {
            None => {
                fill(LaunchClock::Monotonic, due_ns);
                self.port.tx.send(train, to)
            }
            Some(launch) => {
                let clock = launch.clock();
                // How far that clock is ahead now: only CLOCK_TAI can be set.
                let ahead_ns = clock.now_ns().wrapping_sub(LaunchClock::Monotonic.now_ns());
                let at_ns = due_ns.wrapping_add(ahead_ns);
                fill(clock, at_ns);
                launch.send_spaced(train, bytes, to, at_ns, gap_ns)
            }
        }
    }
}
