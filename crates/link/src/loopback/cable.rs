//! What joins the ends: its state, and how a sleeping end is woken.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use rustix::event::{EventfdFlags, eventfd};

/// What tests do to an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum CableState {
    /// Frames pass.
    Up,
    /// The interface is down: both ends get `NetworkDown`.
    Down,
    /// The interface was deleted: both ends get `NotFound`.
    Gone,
}

/// The cable between the ends of a [`pair`](super::pair), to be pulled by tests.
#[derive(Debug, Clone)]
pub struct Cable {
    state: Arc<AtomicU8>,
    bells: Vec<Arc<Bell>>,
}

impl Cable {
    pub(super) fn new(bells: Vec<Arc<Bell>>) -> Self {
        Self { state: Arc::new(AtomicU8::new(CableState::Up as u8)), bells }
    }

    /// Changes its state; both ends notice with their next call, and sleepers wake.
    pub fn set(&self, state: CableState) {
        self.state.store(state as u8, Ordering::SeqCst);
        for bell in &self.bells {
            bell.news();
        }
    }

    /// The error that frames meet now, if any.
    pub(super) fn check(&self) -> io::Result<()> {
        match self.state.load(Ordering::Relaxed) {
            0 => Ok(()),
            1 => Err(io::ErrorKind::NetworkDown.into()),
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }
}

/// A descriptor that is readable while its receiver has something to look at. Costs nothing as
/// long as nobody has asked for the descriptor.
#[derive(Debug)]
pub(super) struct Bell {
    fd: OwnedFd,
    /// The receiver found nothing and may sleep: the next news must ring.
    armed: AtomicBool,
    /// Somebody polls the descriptor.
    polled: AtomicBool,
}

impl Bell {
    pub fn new() -> io::Result<Self> {
        let fd = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        Ok(Self { fd, armed: AtomicBool::new(true), polled: AtomicBool::new(false) })
    }

    /// Something was published. True if that took a system call.
    pub fn news(&self) -> bool {
        // SeqCst, as in `arm`: either this thread sees the arming, or the receiver sees the news.
        std::sync::atomic::fence(Ordering::SeqCst);
        let ring = self.armed.load(Ordering::Relaxed) && self.armed.swap(false, Ordering::SeqCst);
        if ring && self.polled.load(Ordering::Relaxed) {
            // It can only fail where it would wait: at 2⁶⁴ - 1 news that nobody took.
            let _ = rustix::io::write(&self.fd, &1u64.to_ne_bytes());
            return true;
        }
        false
    }

    /// The receiver found nothing: the descriptor is to be quiet until there is news, and the
    /// receiver has to look once more.
    pub fn arm(&self) {
        if self.armed.load(Ordering::Relaxed) {
            return;
        }
        if self.polled.load(Ordering::Relaxed) {
            let _ = rustix::io::read(&self.fd, &mut [0u8; 8]);
        }
        self.armed.store(true, Ordering::SeqCst);
        std::sync::atomic::fence(Ordering::SeqCst);
    }

    /// The descriptor; from now on it is rung.
    pub fn poll_fd(&self) -> BorrowedFd<'_> {
        if !self.polled.swap(true, Ordering::SeqCst) {
            // There may be something already: whoever polls looks once.
            self.armed.store(true, Ordering::SeqCst);
            self.news();
        }
        self.fd.as_fd()
    }
}
