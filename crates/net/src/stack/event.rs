//! What happened that somebody may want to know. Bounded: what nobody fetches is counted.

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddrV4};

use millstream_wire::ethernet::Mac;

const EVENTS_MAX: usize = 64;

/// Something that happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// Another station has the address that we were about to use: we do not use it.
    AddressTaken {
        /// The address.
        address: Ipv4Addr,
        /// Who has it.
        mac: Mac,
    },
    /// Another station uses our address, too.
    AddressConflict {
        /// The address.
        address: Ipv4Addr,
        /// Who else has it.
        mac: Mac,
    },
    /// Nobody has registered the port that a datagram of ours was for.
    PortUnreachable {
        /// Our port.
        from: u16,
        /// Where it went.
        to: SocketAddrV4,
    },
    /// A datagram of ours is longer than some link on its way carries.
    TooLong {
        /// Our port.
        from: u16,
        /// Where it went.
        to: SocketAddrV4,
        /// Largest IP packet that passes, bytes; 0 if that was not said.
        mtu: u16,
    },
    /// A neighbour did not answer.
    NeighbourLost {
        /// Its address.
        address: Ipv4Addr,
    },
}

#[derive(Debug)]
pub(super) struct Events {
    queue: VecDeque<Event>,
    lost: u64,
}

impl Events {
    pub(super) fn new() -> Events {
        Events { queue: VecDeque::with_capacity(EVENTS_MAX), lost: 0 }
    }

    /// Adds an event, unless it is the last one again.
    pub(super) fn push(&mut self, event: Event) {
        if self.queue.back() == Some(&event) {
            return;
        }
        if self.queue.len() == EVENTS_MAX {
            self.lost += 1;
            return;
        }
        self.queue.push_back(event);
    }

    pub(super) fn take(&mut self) -> Option<Event> {
        self.queue.pop_front()
    }

    pub(super) fn lost(&self) -> u64 {
        self.lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_fetches_is_counted_and_bounded() {
        let mut events = Events::new();
        let lost = |last| Event::NeighbourLost { address: Ipv4Addr::new(10, 0, 0, last) };
        (0..=255).for_each(|last| events.push(lost(last)));
        assert_eq!(events.lost(), 256 - EVENTS_MAX as u64);
        assert_eq!(events.take(), Some(lost(0)));
        let mut again = Events::new();
        (0..10).for_each(|_| again.push(lost(1)));
        assert_eq!((again.take(), again.take()), (Some(lost(1)), None));
    }
}
