//! The receiver: a thread that waits at a port.

use std::io;
use std::net::SocketAddrV4;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use millstream_cpu::usage::{thread_cpu_time, thread_sleeps};
use millstream_link::port::{Port, PortOptions};

use super::Delivered;
use crate::packets::end::{EndAddress, SLEEP_MS};
use crate::packets::job::JobResult;
use crate::packets::plan::EndPlan;
use millstream_cpu::alarm::now_ns;

/// A port of any link, whose wait mode is in the link string.
pub(in crate::packets) struct ListenEnd {
    port: Port,
}

/// Least time between two readings of the thread's costs, nanoseconds: they are system calls.
const LOOK_NS: u64 = 5_000_000;

/// How long a packet may be on its way: a kernel thread that delivers it may wait for a CPU, on a
/// busy machine for more than 200 ms.
const DRAIN: Duration = Duration::from_secs(1);

/// The costs of the thread at one moment.
#[derive(Debug, Clone, Copy, Default)]
struct Spent {
    at_ns: u64,
    cpu: Duration,
    sleeps: u64,
}

impl Spent {
    fn now() -> Self {
        Self { at_ns: now_ns(), cpu: thread_cpu_time(), sleeps: thread_sleeps() }
    }
}

impl ListenEnd {
    /// Opens it.
    ///
    /// # Errors
    /// The link's, with the remedy.
    pub fn open(end: &EndPlan) -> Result<Self, String> {
        let local = SocketAddrV4::new(end.address, 0);
        let port = millstream_net::open(&end.way.link, local, &PortOptions::default());
        Ok(Self { port: port.map_err(|error| error.to_string())? })
    }

    pub fn address(&self) -> EndAddress {
        EndAddress { mac: [0; 6], udp: self.port.local }
    }

    /// Receives until the stop request.
    ///
    /// # Errors
    /// The link's.
    pub fn play(&mut self, stop: &AtomicBool) -> io::Result<JobResult> {
        let mut delivered = Delivered::default();
        let (mut first, mut last) = (None, Spent::default());
        let rx = &mut *self.port.rx;
        loop {
            // Before the look: what was sent before the stop request is on its way by then.
            let last_look = stop.load(Ordering::Relaxed);
            let wait = if last_look { DRAIN } else { Duration::from_millis(SLEEP_MS as u64) };
            let count = rx.recv_batch(wait)?;
            if count == 0 && last_look {
                break;
            }
            let now_ns = now_ns();
            for index in 0..count {
                let Some(sent_ns) = rx.datagram(index).payload.first_chunk() else { continue };
                let delay_ns = now_ns.saturating_sub(u64::from_le_bytes(*sent_ns));
                delivered.delays.record(delay_ns);
            }
            if count > 0 && now_ns - last.at_ns >= LOOK_NS {
                last = Spent::now();
                first.get_or_insert(last);
            }
        }
        if let Some(first) = first.filter(|first: &Spent| first.at_ns < last.at_ns) {
            let seconds = (last.at_ns - first.at_ns) as f64 / 1e9;
            delivered.cpu_share = Some((last.cpu - first.cpu).as_secs_f64() / seconds);
            delivered.sleeps_hz = Some((last.sleeps - first.sleeps) as f64 / seconds);
        }
        let came = delivered.delays.count();
        Ok(JobResult { total: came, came, waited: Some(delivered), ..JobResult::default() })
    }
}
