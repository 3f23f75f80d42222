//! The registration of a port on its link, and the end of it: pending datagrams are sent first
//! where possible.

use std::net::SocketAddrV4;
use std::sync::Arc;
use std::time::Duration;

use crate::port::Shares;

use super::clock::now_ns;
use super::kernel::Reservation;
use super::served::OpenLink;

/// The interval at which a closing port checks whether it has nothing left to send.
const CLOSING_LOOK_EVERY: Duration = Duration::from_micros(100);

/// The registration of a port on its link; dropped with the port's last half.
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
        // The link may close here; an open of the same link waits for that.
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
