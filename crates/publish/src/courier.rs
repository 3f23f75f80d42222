//! The courier: the thread that takes messages from the queue to the outlet.

use crate::ledger::Account;
use crate::outlet::{Outcomes, Outlet, OutletError};
use crate::queue::QueueExit;
use crate::{DropCause, publications::Status};
use millstream_ring::Doorbell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Pause between two looks for the graph's end while the outlet is away.
const LOOK: Duration = Duration::from_millis(20);
/// The longest sleep without work, for keep-alives and for a stop.
const IDLE: Duration = Duration::from_millis(250);
/// The first pause before a new try to connect, which doubles up to the second.
const BACK_OFF: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(5)];
/// Connections in a row without any acknowledgement, after which the oldest message is taken as
/// the reason. From the second on it goes alone.
const FRUITLESS_MAX: u32 = 5;

/// What the block and the courier share.
pub(crate) struct Shared {
    pub account: Account,
    pub status: Status,
    pub bell: Doorbell,
    /// Whether the outlet is away.
    pub away: AtomicBool,
    /// Whether the graph has ended by an error: the courier gives up at once.
    pub abandoned: AtomicBool,
}

pub(crate) struct Courier {
    shared: Arc<Shared>,
    queue: QueueExit,
    outlet: Box<dyn Outlet>,
    /// How long it goes on after the graph's end.
    linger: Duration,
    /// When the graph's end was seen.
    ended: Option<Instant>,
    /// Connections in a row without an acknowledgement.
    fruitless: u32,
    /// The number of next messages of which one may have ended a connection: they go one by one.
    suspects: u64,
    /// Whether a pause was left because the graph had ended.
    hurried: bool,
    /// Whether people know that the outlet is away.
    told: bool,
}

impl Courier {
    pub fn new(
        shared: Arc<Shared>,
        queue: QueueExit,
        outlet: Box<dyn Outlet>,
        linger: Duration,
    ) -> Self {
        Self {
            shared,
            queue,
            outlet,
            linger,
            ended: None,
            fruitless: 0,
            suspects: 0,
            hurried: false,
            told: false,
        }
    }

    /// Checks the outlet before the graph runs.
    pub fn check(&mut self) -> Result<(), OutletError> {
        self.outlet.check()
    }

    /// Works until the graph has ended and all is acknowledged, or the time for that has passed.
    pub fn run(mut self) -> Result<(), OutletError> {
        let mut back_off = BACK_OFF[0];
        while !self.is_over() {
            match self.outlet.open() {
                Ok(()) => {
                    self.shared.account.connections.add(1);
                    let acknowledged = self.shared.account.acknowledged.get();
                    self.shared.away.store(false, Ordering::Relaxed);
                    let result = self.serve();
                    self.shared.away.store(true, Ordering::Relaxed);
                    let Err(error) = result else { break };
                    let progress = self.shared.account.acknowledged.get() > acknowledged;
                    if progress {
                        back_off = BACK_OFF[0];
                    }
                    self.fail(&error, !progress);
                    self.rewind(progress);
                }
                Err(error) => self.fail(&error, true),
            }
            let hurries = self.rest(back_off);
            back_off = if hurries { BACK_OFF[0] } else { (back_off * 2).min(BACK_OFF[1]) };
        }
        let left = self.queue.clear();
        self.shared.account.drop(DropCause::AtEnd, left);
        if self.shared.abandoned.load(Ordering::Relaxed) {
            // The part of a file remains.
            return Ok(());
        }
        self.outlet.close()
    }

    /// Serves one connection until it ends, or until all is done.
    fn serve(&mut self) -> Result<(), OutletError> {
        while !self.is_over() {
            let longest = self.outlet.message_bytes_max();
            // One that waits in the outlet for each message must not keep it from its end.
            while !self.is_over() {
                let Some(message) = self.queue.next() else { break };
                if self.suspects > 0 && self.queue.sent() > 0 {
                    break;
                }
                if message.len() > longest {
                    if self.queue.sent() > 0 {
                        // The queue removes messages in their order.
                        break;
                    }
                    self.queue.remove(1);
                    self.shared.account.drop(DropCause::TooLarge, 1);
                    continue;
                }
                if !self.outlet.push(message) {
                    break;
                }
                self.queue.mark_sent();
            }
            let Outcomes { acknowledged, refused } = self.outlet.exchange(Instant::now())?;
            self.queue.remove(acknowledged + refused);
            self.suspects = self.suspects.saturating_sub(acknowledged + refused);
            self.shared.account.acknowledged.add(acknowledged);
            self.shared.account.drop(DropCause::Refused, refused);
            let has_work = self.queue.has_next() || self.queue.sent() > 0;
            if self.told && (acknowledged > 0 || !has_work) {
                self.told = false;
                self.shared.status.tell("the connection is there");
            }
            if has_work {
                std::thread::sleep(self.outlet.pause());
            } else {
                self.sleep(IDLE)?;
                // What woke it is often the first of several.
                std::thread::sleep(self.outlet.pause());
            }
        }
        Ok(())
    }

    /// Sleeps until a message or the other side wakes it.
    fn sleep(&self, most: Duration) -> Result<(), OutletError> {
        let descriptor = self.outlet.descriptor();
        let work = || self.queue.has_next() || self.queue.is_ended();
        self.shared.bell.wait_unless(work, descriptor.as_slice(), Some(most))?;
        Ok(())
    }

    /// Notes an error. People are told of the first one of an outage.
    fn fail(&mut self, error: &OutletError, is_outage: bool) {
        self.shared.status.fail(error);
        if is_outage && !std::mem::replace(&mut self.told, true) {
            self.shared.status.tell(&format!("{error}; the sink tries again, and messages wait"));
        }
    }

    /// Waits before the next try, unless the graph ends: the time after that may be shorter than
    /// the pause, so the first pause of it is left once. Returns whether it was.
    fn rest(&mut self, pause: Duration) -> bool {
        let until = Instant::now() + pause;
        while Instant::now() < until && !self.is_over() {
            if self.queue.is_ended() && !std::mem::replace(&mut self.hurried, true) {
                return true;
            }
            std::thread::sleep(LOOK.min(pause));
        }
        false
    }

    /// Prepares for a new connection, on which all is sent again that was not acknowledged.
    fn rewind(&mut self, progress: bool) {
        let sent = self.queue.sent();
        self.shared.account.resent.add(sent);
        self.queue.rewind();
        if !self.outlet.may_choke() {
            return;
        }
        self.fruitless = if progress || sent == 0 { 0 } else { self.fruitless + 1 };
        if self.fruitless > 0 {
            self.suspects = self.suspects.max(sent);
        }
        if self.fruitless == FRUITLESS_MAX {
            self.fruitless = 0;
            self.suspects -= 1;
            self.queue.remove(1);
            self.shared.account.drop(DropCause::Refused, 1);
        }
    }

    /// Whether nothing remains to be done, or the time for it has passed.
    fn is_over(&mut self) -> bool {
        if self.shared.abandoned.load(Ordering::Relaxed) || self.queue.is_done() {
            return true;
        }
        if !self.queue.is_ended() {
            return false;
        }
        let ended = *self.ended.get_or_insert_with(Instant::now);
        ended.elapsed() >= self.linger
    }
}
