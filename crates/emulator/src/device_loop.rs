//! The device thread: it sleeps until a datagram or a deadline, and then advances the device.

use crate::device::EmulatedDevice;
use crate::faults::{AfterFaults, DeviceFaults};
use crate::links::Links;
use crate::mailbox::DeviceCommand;
use crate::time::monotonic_ns;
use rustix::thread::set_current_timer_slack;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::time::Duration;

/// The longest sleep: commands and the stop flag wait no longer than this.
const NAP_MAX_NS: u64 = 20_000_000;

/// Sleeps longer than this end at their time, nanoseconds. Shorter ones, between the packets of a
/// stream, may end up to 50 µs later (the kernel's default), so that one wake-up sends several.
const PRECISE_NAP_NS: u64 = 100_000;

/// The batches of datagrams that are taken at once when the thread is late.
const BATCHES_BEHIND: usize = 64;

/// The body of the device thread: sleeps until a datagram or the next deadline, then advances the
/// device.
pub(crate) fn device_loop(
    mut device: EmulatedDevice,
    mut links: Links,
    orders: &Receiver<DeviceCommand>,
    faults: &DeviceFaults,
    stop: &AtomicBool,
) {
    let (mut slack, mut heard_ns) = (TimerSlack::default(), 0);
    while !stop.load(Ordering::Relaxed) {
        let fault_ns = match faults.apply(&mut device, monotonic_ns()) {
            AfterFaults::Run(next_ns) => next_ns,
            AfterFaults::Stall(until_ns) => {
                sleep_until(until_ns, stop);
                continue;
            }
        };
        let silent = faults.is_silent(monotonic_ns());
        let deadline_ns = if silent { u64::MAX } else { device.advance(monotonic_ns()) };
        let kept_ns = device.release().map_or(u64::MAX, |left| left.as_nanos() as u64);
        let left_ns = deadline_ns.min(fault_ns).saturating_sub(monotonic_ns());
        let nap_ns = left_ns.min(kept_ns).min(NAP_MAX_NS);
        slack.set(nap_ns > PRECISE_NAP_NS);
        let failures = links.wait(Duration::from_nanos(nap_ns));
        if failures > 0 {
            // The interface may be gone, and may come back.
            (0..failures).for_each(|_| device.note_deaf());
            std::thread::sleep(Duration::from_millis(1));
        }
        // Commands come first: the mailbox has the reason.
        let mut obeyed = false;
        while let Ok(order) = orders.try_recv() {
            if let DeviceCommand::Speak(generation) = order {
                faults.protocol.set(generation.protocol);
            }
            device.execute(order);
            obeyed = true;
        }
        if silent {
            device.note_unheard(links.lent());
            continue;
        }
        let now_ns = monotonic_ns();
        // When this thread got its core later than requested, datagrams that queued up meanwhile
        // count as on time: a machine too busy for the radio must not look like a late host.
        // But not as earlier than those before them: a stop would come before a time that was read.
        let came_ns = if obeyed { now_ns } else { now_ns.min(deadline_ns.max(heard_ns)) };
        heard_ns = came_ns;
        let batches = if came_ns == now_ns { 1 } else { BATCHES_BEHIND };
        let heard = links.each(batches, |payload, source| device.receive(payload, source, came_ns));
        if heard.is_err() {
            device.note_deaf();
        }
        device.note_losses(links.queue_drops());
    }
    device.close(links.queue_drops());
}

/// How late the kernel may wake this thread from a sleep (timer slack, prctl(2)).
#[derive(Default)]
struct TimerSlack {
    precise: bool,
}

impl TimerSlack {
    /// Sets it to a nanosecond or to the default; a call only when it changes.
    fn set(&mut self, precise: bool) {
        if self.precise != precise {
            self.precise = precise;
            // Without it sleeps are only less precise.
            let _ = set_current_timer_slack(precise.then_some(NonZeroU64::MIN));
        }
    }
}

fn sleep_until(until_ns: u64, stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        let left_ns = until_ns.saturating_sub(monotonic_ns());
        if left_ns == 0 {
            break;
        }
        std::thread::sleep(Duration::from_nanos(left_ns.min(NAP_MAX_NS)));
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use millstream_link::port::{Capabilities, Datagram, PortRx};
    use std::io;
    use std::net::{Ipv4Addr, SocketAddrV4};
    use std::sync::Arc;
    use std::sync::mpsc::channel;

    /// A port whose interface disappears after one batch; it sets the stop flag of the radio
    /// slightly later.
    pub(crate) struct FailedPort {
        looks: u32,
        stop: Arc<AtomicBool>,
    }

    impl FailedPort {
        /// Returns the port's receiving side, and the flag that it sets.
        pub(crate) fn new() -> (Box<Self>, Arc<AtomicBool>) {
            let stop = Arc::new(AtomicBool::new(false));
            (Box::new(Self { looks: 0, stop: stop.clone() }), stop)
        }

        /// The number of its failed polls.
        pub(crate) const FAILURES: u64 = 4;
    }

    impl PortRx for FailedPort {
        fn capabilities(&self) -> Capabilities {
            Capabilities::new(1, 1)
        }
        fn recv_batch(&mut self, _: Duration) -> io::Result<usize> {
            self.looks += 1;
            self.stop.store(self.looks == 5, Ordering::Relaxed);
            if self.looks == 1 { Ok(1) } else { Err(io::ErrorKind::NetworkDown.into()) }
        }
        fn datagram(&self, _: usize) -> Datagram<'_> {
            Datagram { payload: &[0], source: SocketAddrV4::new(Ipv4Addr::LOCALHOST, 1) }
        }
        fn queue_drops(&self) -> u64 {
            0
        }
    }

    #[test]
    fn a_port_that_cannot_be_heard_is_counted_whether_it_fails_at_once_or_between_batches() {
        let bench = crate::device::test_bench::Bench::new();
        let counters = bench.counters.clone();
        let (deaf, stop) = FailedPort::new();
        let (_orders, inbox) = channel();
        let faults = DeviceFaults::new(1e6, 1.0);
        device_loop(bench.device, Links::new(vec![deaf]), &inbox, &faults, &stop);
        // Whether the second poll was one between batches depends on the scheduling of this thread.
        assert_eq!(counters.snapshot().chdr_receive_errors, FailedPort::FAILURES);
    }
}
