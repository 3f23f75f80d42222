//! A port's place on its link, and how it is left: nothing that was sent is lost without need.

use std::net::SocketAddrV4;
use std::sync::Arc;
use std::time::Duration;

use crate::port::Shares;

use super::clock::now_ns;
use super::kernel::Reservation;
use super::served::OpenLink;

/// How often a port that closes looks whether it has nothing left to send.
const CLOSING_LOOK_EVERY: Duration = Duration::from_micros(100);

/// A port's place on its link; dropped with the port's last half.
pub(super) struct Registration {
    pub link: Option<Arc<OpenLink>>,
    pub local: SocketAddrV4,
    pub shares: Shares,
    pub reservation: Option<Reservation>,
}

impl Drop for Registration {
    fn drop(&mut self) {
        let Some(link) = self.link.take() else { return };
        let port = self.local.port();
        let began = now_ns();
        while let Ok(allowed) = link.with(move |host| host.closing_ns(port, now_ns())) {
            if now_ns() - began >= allowed {
                break;
            }
            std::thread::sleep(CLOSING_LOOK_EVERY);
        }
        // The link may close here: whoever opens it again waits for that.
        let gate = Arc::clone(&link.gate);
        let _turn = gate.lock();
        let _ = link.with(move |host| host.remove(port));
        drop(self.reservation.take());
        let mut budget = link.budget();
        budget.receive += self.shares.receive;
        budget.transmit += self.shares.transmit;
        budget.ports.remove(&port);
        drop(budget);
        drop(link);
    }
}
