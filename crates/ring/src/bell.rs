//! The wake-up of a thread in poll(2): an eventfd(2), or its contract under `loom`.

#[cfg(not(loom))]
pub(crate) use kernel::Bell;
#[cfg(loom)]
pub(crate) use model::Bell;

#[cfg(not(loom))]
mod kernel {
    use crate::doorbell::DESCRIPTORS_MAX;
    use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
    use rustix::io::Errno;
    use std::io;
    use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
    use std::time::Duration;

    #[derive(Debug)]
    pub(crate) struct Bell(OwnedFd);

    impl Bell {
        pub(crate) fn new() -> io::Result<Self> {
            Ok(Self(eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?))
        }

        pub(crate) fn ring(&self) {
            // It fails only when the count would overflow, and then it is readable anyway.
            let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
        }

        pub(crate) fn silence(&self) {
            // It fails where it is already silent.
            let _ = rustix::io::read(&self.0, &mut [0; 8]);
        }

        /// Returns the descriptor, readable from a ring to the next silencing.
        pub(crate) fn fd(&self) -> BorrowedFd<'_> {
            self.0.as_fd()
        }

        /// Sleeps until it was rung, a descriptor is ready, or the time is up; silences it.
        pub(crate) fn poll(
            &self,
            others: &[BorrowedFd<'_>],
            timeout: Option<Duration>,
        ) -> io::Result<()> {
            let timeout = timeout.map(|timeout| Timespec {
                tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: timeout.subsec_nanos().into(),
            });
            let mut polls: [PollFd<'_>; DESCRIPTORS_MAX + 1] = std::array::from_fn(|index| {
                // Slots beyond the last descriptor are not handed to the kernel.
                match others.get(index.wrapping_sub(1)) {
                    Some(other) => PollFd::from_borrowed_fd(*other, PollFlags::IN),
                    None => PollFd::new(&self.0, PollFlags::IN),
                }
            });
            match poll(&mut polls[..=others.len()], timeout.as_ref()) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            if polls[0].revents().contains(PollFlags::IN) {
                self.silence();
            }
            Ok(())
        }
    }
}

#[cfg(loom)]
mod model {
    use loom::sync::{Condvar, Mutex};
    use std::io;

    /// The readable state, and whether another descriptor is ready.
    #[derive(Debug, Default)]
    pub(crate) struct Bell {
        ready: Mutex<(bool, bool)>,
        condition: Condvar,
    }

    impl Bell {
        pub(crate) fn new() -> io::Result<Self> {
            Ok(Self::default())
        }

        pub(crate) fn ring(&self) {
            self.ready.lock().unwrap().0 = true;
            self.condition.notify_one();
        }

        pub(crate) fn silence(&self) {
            self.ready.lock().unwrap().0 = false;
        }

        pub(crate) fn is_ready(&self) -> bool {
            self.ready.lock().unwrap().0
        }

        /// Sleeps until it was rung, and leaves it readable.
        pub(crate) fn sleep(&self) {
            let mut ready = self.ready.lock().unwrap();
            while !ready.0 {
                ready = self.condition.wait(ready).unwrap();
            }
        }

        pub(crate) fn disturb(&self) {
            self.ready.lock().unwrap().1 = true;
            self.condition.notify_one();
        }

        pub(crate) fn poll(&self) {
            let mut ready = self.ready.lock().unwrap();
            while *ready == (false, false) {
                ready = self.condition.wait(ready).unwrap();
            }
            *ready = (false, false);
        }
    }
}
