//! Datagrams for which sockets had no room: their counters, less what the kernel named packet by
//! packet.

use super::drops::Drops;
use crate::account::CaptureAccount;
use crate::reading::{HopReading, SocketReading};
use crate::verdict::Hop;

/// The most sockets that are followed.
const SOCKETS_MAX: usize = 1 << 12;

/// Datagrams that a socket's counter shows, and that were not named.
#[derive(Debug)]
pub(super) struct CountedLoss {
    pub socket: SocketReading,
    pub packets: u64,
    pub from_ns: u64,
    pub until_ns: u64,
}

/// What a socket's counter said last.
#[derive(Debug)]
struct Counted {
    socket: SocketReading,
    /// What was counted and not named yet; below zero what was named and not counted yet.
    balance: i64,
    /// The balance one reading before.
    before: i64,
    /// Between which readings it was counted.
    grew: (u64, u64),
    is_there: bool,
}

/// The sockets of one host.
#[derive(Debug, Default)]
pub(super) struct Sockets {
    counted: Vec<Counted>,
    read_ns: Option<u64>,
}

impl Sockets {
    /// Returns when the last reading was taken that has been counted.
    pub fn read_ns(&self) -> u64 {
        self.read_ns.unwrap_or(0)
    }

    /// Takes the next reading, once all packets that were dropped before it are known.
    pub fn read(
        &mut self,
        reading: &HopReading,
        drops: &Drops,
        account: &CaptureAccount,
    ) -> Vec<CountedLoss> {
        let mut losses = Vec::new();
        let before_ns = self.read_ns.replace(reading.at_ns);
        for one in &mut self.counted {
            one.is_there = false;
        }
        for socket in &reading.sockets {
            let at = self.counted.iter().position(|one| one.socket.inode == socket.inode);
            let Some(before_ns) = before_ns else {
                self.follow(socket, socket.dropped);
                continue;
            };
            let Some(at) = at else {
                // One that was opened meanwhile has counted nothing else.
                let is_new = account.flows().iter().any(|flow| {
                    let began = flow.captured_ns().is_some_and(|(first, _)| first >= before_ns);
                    socket.receives(flow.key().destination) && began
                });
                self.follow(socket, if is_new { 0 } else { socket.dropped });
                if let Some(one) = self.counted.last_mut().filter(|_| is_new) {
                    one.count(socket, drops, account, (before_ns, reading.at_ns));
                }
                continue;
            };
            let one = &mut self.counted[at];
            one.is_there = true;
            losses.extend(one.count(socket, drops, account, (before_ns, reading.at_ns)));
        }
        self.counted.retain_mut(|one| {
            if !one.is_there {
                losses.extend(one.rest());
            }
            one.is_there
        });
        losses
    }

    /// Returns what was counted last: no reading follows.
    pub fn finish(&mut self) -> Vec<CountedLoss> {
        self.counted.iter_mut().filter_map(Counted::rest).collect()
    }

    fn follow(&mut self, socket: &SocketReading, dropped: u64) {
        if self.counted.len() < SOCKETS_MAX {
            let socket = SocketReading { dropped, ..socket.clone() };
            self.counted.push(Counted {
                socket,
                balance: 0,
                before: 0,
                grew: (0, 0),
                is_there: true,
            });
        }
    }
}

impl Counted {
    /// Counts up to a reading. What the reading before had and this one has yet is a loss: packets
    /// are named and counted at nearly the same moment.
    fn count(
        &mut self,
        socket: &SocketReading,
        drops: &Drops,
        account: &CaptureAccount,
        time: (u64, u64),
    ) -> Option<CountedLoss> {
        let grown = match (socket.dropped, self.socket.dropped) {
            (now, before) if now >= before => now - before,
            // It has 32 bits.
            (now, before) if before > 1 << 31 => now.saturating_add(1 << 32).saturating_sub(before),
            (now, _) => now,
        };
        let named: u64 = drops
            .between(time.0, time.1)
            .filter(|one| one.hop == Hop::Socket && socket.receives(one.packet.destination))
            .filter(|one| socket.remote.is_none_or(|remote| remote == one.packet.source))
            .filter(|one| account.place_of(&one.packet).is_some())
            .map(|one| one.count())
            .sum();
        let (earlier, before) = (self.before, self.balance);
        self.balance = before.saturating_add(grown as i64).saturating_sub(named as i64);
        // What remains on one side for three readings is no matter of moments; for two it may be,
        // with a packet on the edge of each.
        let settled = match (earlier, before, self.balance) {
            (earlier, before, now) if earlier > 0 && before > 0 && now > 0 => {
                earlier.min(before).min(now)
            }
            (earlier, before, now) if earlier < 0 && before < 0 && now < 0 => {
                earlier.max(before).max(now)
            }
            _ => 0,
        };
        self.before = before - settled;
        let loss = u64::try_from(settled).ok().filter(|packets| *packets > 0);
        let loss = loss.map(|packets| self.loss(packets));
        self.balance -= settled;
        if grown > 0 {
            self.grew = time;
        }
        self.socket = socket.clone();
        loss
    }

    fn loss(&self, packets: u64) -> CountedLoss {
        let (socket, (from_ns, until_ns)) = (self.socket.clone(), self.grew);
        CountedLoss { socket, packets, from_ns, until_ns }
    }

    fn rest(&mut self) -> Option<CountedLoss> {
        let packets = u64::try_from(std::mem::take(&mut self.balance)).ok()?;
        (packets > 0).then(|| self.loss(packets))
    }
}
