//! The state that both ends of a port share: its end, its errors and its counters.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};

use millstream_ring::Waiter;

/// Shared by a port's two halves and the driver of its link.
#[derive(Debug, Default)]
pub(crate) struct PortState {
    pub rx_waiter: Waiter,
    pub tx_waiter: Waiter,
    /// The system's error number that ended the port; 0 while it is open.
    fate: AtomicI32,
    /// The error of an earlier datagram; 0 for none. The next send reports it, as a socket reports
    /// ICMP errors.
    send_error: AtomicI32,
    /// The interface is down.
    down: AtomicBool,
    pub counters: PortCounters,
}

/// Events of one port since it was opened.
#[derive(Debug, Default)]
pub(crate) struct PortCounters {
    /// Datagrams handed to the user's ring.
    pub delivered: AtomicU64,
    /// Datagrams lost because the port's share of frames was used up, as its user was slow.
    pub queue_drops: AtomicU64,
    /// Datagrams in several parts that were copied together.
    pub joined: AtomicU64,
    /// Datagrams handed to the link.
    pub sent: AtomicU64,
    /// Datagrams not sent: no such neighbour, no route, too many waiting.
    pub unsent: AtomicU64,
}

/// Adds to a counter that has one writer.
pub(crate) fn bump(counter: &AtomicU64, by: u64) {
    counter.store(counter.load(Ordering::Relaxed) + by, Ordering::Relaxed);
}

impl PortState {
    /// Checks that the port still has a driver.
    pub fn check_alive(&self) -> io::Result<()> {
        match self.fate.load(Ordering::Relaxed) {
            0 => Ok(()),
            errno => Err(io::Error::from_raw_os_error(errno)),
        }
    }

    /// Ends the port with a system's error; later errors are ignored. Wakes both users.
    pub fn end(&self, errno: i32) {
        let _ = self.fate.compare_exchange(0, errno, Ordering::Relaxed, Ordering::Relaxed);
        self.rx_waiter.notify();
        self.tx_waiter.notify();
    }

    /// Ends the port because its driver has gone.
    pub fn abandon(&self) {
        self.end(libc::ENODEV);
    }

    /// Sets whether the interface is down.
    pub fn set_down(&self, down: bool) {
        self.down.store(down, Ordering::Relaxed);
    }

    /// Stores an error for the next send.
    pub fn fail_send(&self, errno: i32) {
        self.send_error.store(errno, Ordering::Relaxed);
    }

    /// Checks that a send is possible; takes the error that an earlier one left.
    pub fn check_send(&self) -> io::Result<()> {
        self.check_alive()?;
        if self.down.load(Ordering::Relaxed) {
            return Err(io::Error::from_raw_os_error(libc::ENETDOWN));
        }
        if self.send_error.load(Ordering::Relaxed) != 0 {
            let errno = self.send_error.swap(0, Ordering::Relaxed);
            return Err(io::Error::from_raw_os_error(errno));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_an_earlier_datagram_is_reported_once() {
        let state = PortState::default();
        state.fail_send(libc::EHOSTUNREACH);
        assert_eq!(state.check_send().unwrap_err().raw_os_error(), Some(libc::EHOSTUNREACH));
        assert!(state.check_send().is_ok());
    }

    #[test]
    fn the_first_reason_to_end_is_the_one_told() {
        let state = PortState::default();
        state.end(libc::ENETDOWN);
        state.abandon();
        assert_eq!(state.check_alive().unwrap_err().raw_os_error(), Some(libc::ENETDOWN));
        assert!(state.rx_waiter.take() && state.tx_waiter.take(), "both are woken");
    }
}
