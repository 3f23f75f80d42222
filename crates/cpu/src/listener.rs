//! A listening socket whose loop costs no CPU when descriptors run out.
//!
//! accept(2) fails then, and the connection stays in the queue: poll(2) reports it at once, again
//! and again. A [`RestingListener`] does not ask for it until a rest is over.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

/// The time between two tries while the system cannot give a descriptor.
pub const ACCEPT_REST: Duration = Duration::from_millis(200);

/// A listening socket that does not wait; connections that cannot be taken stay in its queue.
#[derive(Debug)]
pub struct RestingListener<L> {
    listener: L,
    rests_until: Option<Instant>,
}

impl<L> RestingListener<L> {
    /// Wraps a socket, which must be non-blocking: [`Self::accept`] takes until none is left.
    pub fn new(listener: L) -> Self {
        Self { listener, rests_until: None }
    }

    /// Returns whether poll(2) should be asked for connections now. While it is not, the caller's
    /// wait must be bounded.
    #[must_use]
    pub fn is_awake(&self) -> bool {
        self.rests_until.is_none_or(|until| Instant::now() >= until)
    }

    /// Takes a connection by `accept`; `None` when there is none, or during a rest.
    pub fn accept<T>(&mut self, mut accept: impl FnMut(&L) -> io::Result<T>) -> Option<T> {
        if !self.is_awake() {
            return None;
        }
        self.rests_until = None;
        loop {
            match accept(&self.listener) {
                Ok(connection) => return Some(connection),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return None,
                // The connection has ended in the queue, or a signal came.
                Err(error) if is_of_one(&error) => {}
                Err(_) => {
                    self.rests_until = Some(Instant::now() + ACCEPT_REST);
                    return None;
                }
            }
        }
    }
}

/// Returns whether an error is about one connection or call, so that the next try differs.
fn is_of_one(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::ConnectionAborted)
}

impl<L: AsFd> AsFd for RestingListener<L> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn without_descriptors_it_tries_once_a_rest() {
        let mut listener = RestingListener::new(());
        let tries = Cell::new(0_u32);
        let mut accept = |code: i32| {
            let _ = listener.accept(|()| -> io::Result<()> {
                tries.set(tries.get() + 1);
                Err(io::Error::from_raw_os_error(code))
            });
            listener.is_awake()
        };
        for code in [libc::EMFILE, libc::ENFILE, libc::ENOBUFS, libc::ENOMEM] {
            let (began, before) = (Instant::now(), tries.get());
            while !accept(code) {}
            let rests = began.elapsed().as_secs_f64() / ACCEPT_REST.as_secs_f64();
            assert!(f64::from(tries.get() - before) <= rests + 1.0, "{code}");
        }
    }

    #[test]
    fn a_connection_that_ended_in_the_queue_does_not_hold_up_the_next() {
        let mut listener = RestingListener::new(());
        let mut answers = [
            Err(io::Error::from_raw_os_error(libc::ECONNABORTED)),
            Err(io::Error::from_raw_os_error(libc::EINTR)),
            Ok(7),
            Err(io::ErrorKind::WouldBlock.into()),
        ]
        .into_iter();
        assert_eq!(listener.accept(|()| answers.next().unwrap()), Some(7));
        assert_eq!(listener.accept(|()| answers.next().unwrap()), None);
        assert!(listener.is_awake(), "an empty queue is no reason for a rest");
    }
}
