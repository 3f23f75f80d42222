//! The renewals of one claim, without a socket and without a clock.
//!
//! The owner passes in the bytes of the connection, its end, and the time, and does what the
//! returned [`RenewalStep`] says. One renewal that gets no answer is tolerated, because the device
//! may be busy; after two the device has dropped the claim by itself.

use std::io;
use std::net::SocketAddrV4;
use std::time::Duration;

use millstream_mpm::{ClientEnd, ConnectionFault};
use rmpv::Value;

use super::{CALL_TIMEOUT, RECLAIM_PERIOD, RpcError};

/// The time limit of a connection that is opened again.
const CONNECT_TIMEOUT: Duration = CALL_TIMEOUT;

/// What the owner of a [`Renewal`] has to do.
#[derive(Debug)]
pub enum RenewalStep {
    /// Send these bytes on the connection.
    Send(Vec<u8>),
    /// Give the connection up and open a new one, then report how that ended.
    Connect,
    /// The claim is lost.
    Lost(RpcError),
    /// The claim was given back, or the device drops it by itself. Nothing more is to be done.
    Over,
}

/// The state of a claim.
#[derive(Debug)]
enum RenewalState {
    /// The last renewal was answered; the next one is due at this time.
    Held { next: Duration },
    /// A renewal was sent under this id.
    Renewing { id: u32, until: Duration },
    /// The connection broke, and another one is being opened.
    Connecting { cause: io::Error, until: Duration, unanswered: bool },
    /// The claim is being given back, by a call of this id.
    Releasing { id: u32, until: Duration },
    /// It is lost or given back.
    Over,
}

/// The renewals of one claim. Times are those of any clock that does not jump.
#[derive(Debug)]
pub struct Renewal {
    address: SocketAddrV4,
    token: Value,
    state: RenewalState,
    /// The renewal before this one got no answer.
    missed: bool,
    next_id: u32,
    /// The connection without its socket.
    end: ClientEnd,
}

impl Renewal {
    /// Creates it for a claim that was given at `now` on a connection whose next call is `next_id`.
    pub fn new(
        end: ClientEnd,
        address: SocketAddrV4,
        token: Value,
        next_id: u32,
        now: Duration,
    ) -> Self {
        let state = RenewalState::Held { next: now + RECLAIM_PERIOD };
        Self { address, token, state, missed: false, next_id, end }
    }

    /// Returns when [`Self::at`] is to be called next; `None` once it is over.
    pub fn due(&self) -> Option<Duration> {
        match self.state {
            RenewalState::Held { next } => Some(next),
            RenewalState::Renewing { until, .. }
            | RenewalState::Connecting { until, .. }
            | RenewalState::Releasing { until, .. } => Some(until),
            RenewalState::Over => None,
        }
    }

    /// Does what is due at this time.
    pub fn at(&mut self, now: Duration) -> Option<RenewalStep> {
        if self.due().is_none_or(|due| now < due) {
            return None;
        }
        match std::mem::replace(&mut self.state, RenewalState::Over) {
            RenewalState::Held { .. } => Some(self.renew(now)),
            RenewalState::Renewing { .. } if self.missed => {
                let timeout_ms = CALL_TIMEOUT.as_millis() as u64;
                let method = "reclaim".to_owned();
                Some(self.lose(RpcError::Timeout { method, address: self.address, timeout_ms }))
            }
            RenewalState::Renewing { .. } => {
                self.missed = true;
                self.state = RenewalState::Held { next: now + RECLAIM_PERIOD };
                None
            }
            RenewalState::Connecting { cause, .. } => Some(self.lose_connection(cause)),
            RenewalState::Releasing { .. } => Some(RenewalStep::Over),
            RenewalState::Over => None,
        }
    }

    /// Takes received bytes.
    pub fn received(&mut self, bytes: &[u8], now: Duration) -> Option<RenewalStep> {
        if matches!(self.state, RenewalState::Over) {
            return None;
        }
        self.end.receive(bytes);
        loop {
            let (id, outcome) = match self.end.next_answer() {
                Ok(None) => return None,
                Ok(Some(answer)) => answer,
                Err(fault) => return Some(self.confused(&fault)),
            };
            match self.state {
                RenewalState::Renewing { id: asked, .. } if id == u64::from(asked) => {
                    self.state = RenewalState::Held { next: now + RECLAIM_PERIOD };
                    self.missed = false;
                    if let Err(message) = outcome {
                        let (method, address) = ("reclaim".to_owned(), self.address);
                        return Some(self.lose(RpcError::Remote { method, address, message }));
                    }
                }
                RenewalState::Releasing { id: asked, .. } if id == u64::from(asked) => {
                    self.state = RenewalState::Over;
                    return Some(RenewalStep::Over);
                }
                // An older id belongs to a call that was given up.
                _ => {}
            }
        }
    }

    /// Moves bytes to send that are no call behind those in `unsent`; there may be some behind
    /// [`Self::received`].
    pub fn drain_into(&mut self, unsent: &mut Vec<u8>) {
        self.end.drain_into(unsent);
    }

    /// Notes that the connection broke.
    pub fn broke(&mut self, cause: io::Error, now: Duration) -> Option<RenewalStep> {
        self.end = ClientEnd::new(self.end.kind(), self.address);
        match self.state {
            RenewalState::Over => None,
            // A device that is not told drops the claim by itself.
            RenewalState::Releasing { .. } => {
                self.state = RenewalState::Over;
                Some(RenewalStep::Over)
            }
            _ if self.missed => Some(self.lose_connection(cause)),
            _ => {
                let until = now + CONNECT_TIMEOUT;
                let unanswered = matches!(self.state, RenewalState::Renewing { .. });
                self.state = RenewalState::Connecting { cause, until, unanswered };
                Some(RenewalStep::Connect)
            }
        }
    }

    /// Notes whether the new connection could be opened. The claim belongs to the token, not to the
    /// connection, so it is renewed there at once.
    pub fn connected(&mut self, is_open: bool, now: Duration) -> Option<RenewalStep> {
        match std::mem::replace(&mut self.state, RenewalState::Over) {
            RenewalState::Connecting { unanswered, .. } if is_open => {
                self.missed |= unanswered;
                Some(self.renew(now))
            }
            RenewalState::Connecting { cause, .. } => Some(self.lose_connection(cause)),
            other => {
                self.state = other;
                None
            }
        }
    }

    /// Gives the claim back.
    pub fn release(&mut self, now: Duration) -> RenewalStep {
        let is_open =
            matches!(self.state, RenewalState::Held { .. } | RenewalState::Renewing { .. });
        if !is_open {
            self.state = RenewalState::Over;
            return RenewalStep::Over;
        }
        self.call("unclaim", |id| RenewalState::Releasing { id, until: now + CALL_TIMEOUT })
    }

    fn renew(&mut self, now: Duration) -> RenewalStep {
        self.call("reclaim", |id| RenewalState::Renewing { id, until: now + CALL_TIMEOUT })
    }

    /// Makes a call, and waits for its answer in the state that `then` names.
    fn call(&mut self, method: &str, then: impl Fn(u32) -> RenewalState) -> RenewalStep {
        let id = self.next_id;
        self.next_id = id.wrapping_add(1);
        self.state = then(id);
        match self.end.call(id, method, vec![self.token.clone()], CALL_TIMEOUT) {
            Ok(()) => {
                let mut bytes = Vec::new();
                self.end.drain_into(&mut bytes);
                RenewalStep::Send(bytes)
            }
            Err(fault) => self.confused(&fault),
        }
    }

    fn lose(&mut self, error: RpcError) -> RenewalStep {
        self.state = RenewalState::Over;
        RenewalStep::Lost(error)
    }

    fn lose_connection(&mut self, source: io::Error) -> RenewalStep {
        let (method, address) = ("reclaim".to_owned(), self.address);
        self.lose(RpcError::Broken { method, address, source })
    }

    fn confused(&mut self, fault: &ConnectionFault) -> RenewalStep {
        if matches!(self.state, RenewalState::Releasing { .. }) {
            self.state = RenewalState::Over;
            return RenewalStep::Over;
        }
        let (method, address) = ("reclaim".to_owned(), self.address);
        self.lose(RpcError::Protocol { method, address, what: fault.to_string() })
    }
}

#[cfg(test)]
#[path = "renewal_tests.rs"]
mod tests;
