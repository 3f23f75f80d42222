//! A descriptor that is readable when frames have arrived.
//!
//! A packet socket itself is "readable" as long as its youngest frame is lent, even when there is
//! nothing new, so a thread could not sleep on it. An epoll instance that watches it edge-triggered
//! (epoll(7)) reports arrivals only.

use std::cell::Cell;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{Timespec, epoll};

#[derive(Debug)]
pub(super) struct Wake {
    epoll: OwnedFd,
    /// The descriptor has been requested, so its events must be taken out once there is nothing to
    /// receive.
    asked: Cell<bool>,
    /// The socket is watched. It is watched only from the first request on: each frame costs the
    /// sender a call of the watcher.
    watching: Cell<bool>,
}

/// The events that had happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WakeReason {
    Nothing,
    Arrival,
    Trouble,
}

impl Wake {
    pub fn new() -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        Ok(Self { epoll, asked: Cell::new(false), watching: Cell::new(false) })
    }

    /// Returns the descriptor; `None` if the system has no room to watch one more.
    pub fn poll_fd(&self, socket: BorrowedFd<'_>) -> Option<BorrowedFd<'_>> {
        if !self.watching.get() {
            let flags = epoll::EventFlags::IN | epoll::EventFlags::ET;
            epoll::add(&self.epoll, socket, epoll::EventData::new_u64(0), flags).ok()?;
            self.watching.set(true);
        }
        self.asked.set(true);
        Some(self.epoll.as_fd())
    }

    /// Resets the descriptor, because the ring is empty, if it has been requested since. The ring
    /// must then be polled once more, and [`Wake::again`] called if something is there.
    pub fn quiet(&self, syscalls: &mut u64) -> WakeReason {
        if !self.asked.replace(false) {
            return WakeReason::Nothing;
        }
        *syscalls += 1;
        let mut events = [MaybeUninit::<epoll::Event>::uninit(); 1];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        match epoll::wait(&self.epoll, &mut events, Some(&now)) {
            Ok((events, _)) => match events.first().map(|event| event.flags) {
                Some(flags) if flags.contains(epoll::EventFlags::ERR) => WakeReason::Trouble,
                Some(_) => WakeReason::Arrival,
                None => WakeReason::Nothing,
            },
            Err(_) => WakeReason::Nothing,
        }
    }

    /// Makes the descriptor check the socket again, because there was something after all.
    pub fn again(&self, socket: BorrowedFd<'_>) -> io::Result<()> {
        let flags = epoll::EventFlags::IN | epoll::EventFlags::ET;
        Ok(epoll::modify(&self.epoll, socket, epoll::EventData::new_u64(0), flags)?)
    }
}
