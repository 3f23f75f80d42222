//! A descriptor that is readable when something came.
//!
//! A packet socket itself says "readable" for as long as its youngest frame is lent, also when
//! there is nothing new: whoever sleeps on it would not sleep. An epoll instance that watches it
//! edge-triggered (epoll(7)) only knows arrivals.

use std::cell::Cell;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{Timespec, epoll};

#[derive(Debug)]
pub(super) struct Wake {
    epoll: OwnedFd,
    /// Somebody may sleep on it, so that what it knows must be taken out once there is nothing.
    asked: Cell<bool>,
    /// The socket is watched. It is not before somebody asks: each frame costs the sender a call
    /// of the watcher.
    watching: Cell<bool>,
}

/// What had happened.
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

    /// The descriptor; none if the system has no room to watch one more.
    pub fn poll_fd(&self, socket: BorrowedFd<'_>) -> Option<BorrowedFd<'_>> {
        if !self.watching.get() {
            let flags = epoll::EventFlags::IN | epoll::EventFlags::ET;
            epoll::add(&self.epoll, socket, epoll::EventData::new_u64(0), flags).ok()?;
            self.watching.set(true);
        }
        self.asked.set(true);
        Some(self.epoll.as_fd())
    }

    /// The ring is empty: makes the descriptor quiet, if somebody has asked for it since. The ring
    /// must be looked at once more, and if something is there, [`Wake::again`] called.
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

    /// There was something after all: has the descriptor look at the socket anew.
    pub fn again(&self, socket: BorrowedFd<'_>) -> io::Result<()> {
        let flags = epoll::EventFlags::IN | epoll::EventFlags::ET;
        Ok(epoll::modify(&self.epoll, socket, epoll::EventData::new_u64(0), flags)?)
    }
}
