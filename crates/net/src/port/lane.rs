//! One UDP port's rings: its user at one end, the driver of the link at the other.
//!
//! ```text
//!               arrivals ─────▶                    departures ──────▶
//!   driver ◀──── returns        user's RxEnd          TxEnd of user        driver
//!                                                  ◀─────────────── free
//! ```
//!
//! Frames circulate. A port holds at most a fixed share of the link's frames, and each ring has
//! room for that share, so a ring is never full: a datagram beyond the share is a drop of this port
//! alone.

use std::net::SocketAddrV4;
use std::sync::Arc;

use millstream_link::frame::{Frame, FrameMemory};
use millstream_ring::spsc::{Receiver, Sender, channel};

use super::state::PortState;

/// A part of a received datagram, on its way to the user. Parts of one datagram follow each other.
#[derive(Debug)]
pub(crate) struct Arrival {
    /// Its `continues` flag is set when the next arrival belongs to the same datagram.
    pub frame: Frame,
    /// The start of the payload in the frame.
    pub offset: u32,
    /// Bytes of payload in this frame.
    pub bytes: u32,
    pub source: SocketAddrV4,
}

/// A part of a datagram to send; the first one has room for headers in front of the payload.
#[derive(Debug)]
pub(crate) struct Departure {
    /// Its `continues` flag is set when the next departure belongs to the same datagram.
    pub frame: Frame,
    /// The destination. `None`: the frame comes back unused.
    pub to: Option<SocketAddrV4>,
    /// Bytes of the whole payload.
    pub payload_bytes: u32,
}

/// The number of frames that a port may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shares {
    /// Received frames, on their way, lent, or on their way back.
    pub receive: usize,
    /// Frames to transmit, until the link has them.
    pub transmit: usize,
}

/// The ends of the user's halves.
pub(crate) struct Ends {
    pub rx: RxEnd,
    pub tx: TxEnd,
}

/// The receiving user's ends.
pub(crate) struct RxEnd {
    pub arrivals: Receiver<Arrival>,
    pub returns: Sender<Frame>,
    pub memory: Arc<FrameMemory>,
    pub state: Arc<PortState>,
}

/// The sending user's ends.
pub(crate) struct TxEnd {
    pub departures: Sender<Departure>,
    pub free: Receiver<Frame>,
    /// The most frames of the sender.
    pub frames: usize,
    pub memory: Arc<FrameMemory>,
    pub state: Arc<PortState>,
}

/// The driver's ends. Dropping them notifies both users that the port has no driver any more.
pub(crate) struct Lane {
    /// Its bound address.
    pub local: SocketAddrV4,
    pub state: Arc<PortState>,
    arrivals: Sender<Arrival>,
    returns: Receiver<Frame>,
    departures: Receiver<Departure>,
    free: Sender<Frame>,
    /// Arrivals of this step.
    staged: Vec<Arrival>,
    shares: Shares,
    /// The used part of the shares.
    held: Shares,
}

impl Lane {
    /// Creates the rings of a port with such shares of the frames in `memory`.
    pub fn new(local: SocketAddrV4, shares: Shares, memory: &Arc<FrameMemory>) -> (Self, Ends) {
        let state = Arc::new(PortState::default());
        let (arrivals, arrivals_out) = channel(shares.receive);
        let (returns_in, returns) = channel(shares.receive);
        let (departures_in, departures) = channel(shares.transmit);
        let (free, free_out) = channel(shares.transmit);
        let rx = RxEnd {
            arrivals: arrivals_out,
            returns: returns_in,
            memory: Arc::clone(memory),
            state: Arc::clone(&state),
        };
        let tx = TxEnd {
            departures: departures_in,
            free: free_out,
            frames: shares.transmit,
            memory: Arc::clone(memory),
            state: Arc::clone(&state),
        };
        let staged = Vec::with_capacity(shares.receive);
        let held = Shares { receive: 0, transmit: 0 };
        let lane = Self { local, state, arrivals, returns, departures, free, staged, shares, held };
        (lane, Ends { rx, tx })
    }

    /// Whether there is room for a datagram of `parts` frames.
    pub fn has_room(&self, parts: usize) -> bool {
        self.held.receive + parts <= self.shares.receive
    }

    /// Stages a part of a datagram for which there [is room](Self::has_room).
    pub fn stage(&mut self, arrival: Arrival) {
        debug_assert!(self.staged.len() < self.staged.capacity(), "beyond its share");
        self.held.receive += 1;
        self.staged.push(arrival);
    }

    /// Hands over the staged arrivals and wakes the user; frames that no user will read go to
    /// `back`.
    pub fn hand_over(&mut self, back: &mut Vec<Frame>) {
        if self.staged.is_empty() {
            return;
        }
        self.arrivals.push_batch(&mut self.staged);
        // The share fits the ring, so this happens only when the receive half is closed.
        self.held.receive -= self.staged.len();
        back.extend(self.staged.drain(..).map(|arrival| arrival.frame));
        self.state.rx_waiter.notify();
    }

    /// Appends at most `count` frames that the user has given back.
    pub fn take_returns(&mut self, back: &mut Vec<Frame>, max: usize) {
        self.held.receive -= self.returns.pop_batch(back, max);
    }

    /// Takes the next part to send, if there is one.
    pub fn next_departure(&mut self) -> Option<Departure> {
        let departure = self.departures.pop()?;
        self.held.transmit -= 1;
        Some(departure)
    }

    /// Whether there is something to send.
    pub fn has_departures(&self) -> bool {
        self.departures.available() > 0
    }

    /// Returns how many further frames the sender may hold.
    pub fn wants_free(&self) -> usize {
        self.shares.transmit - self.held.transmit
    }

    /// Moves frames from `frames` to the sender and wakes it.
    pub fn give_free(&mut self, frames: &mut Vec<Frame>) {
        let given = self.free.push_batch(frames);
        if given > 0 {
            self.held.transmit += given;
            self.state.tx_waiter.notify();
        }
    }

    /// Takes back every frame that the closed port held, apart from departures, which come first
    /// ([`Lane::next_departure`]). Returns the number of missing frames: a loan that leaked.
    pub fn wind_up(&mut self, back: &mut Vec<Frame>) -> usize {
        self.take_returns(back, usize::MAX);
        let mut unseen = Vec::new();
        self.held.receive -= self.arrivals.reclaim(&mut unseen);
        back.extend(unseen.into_iter().map(|arrival| arrival.frame));
        self.held.transmit -= self.free.reclaim(back);
        self.held.receive + self.held.transmit
    }

    /// Returns the received and free frames on loan to the port's user.
    pub fn held(&self) -> Shares {
        self.held
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        self.state.abandon();
    }
}
