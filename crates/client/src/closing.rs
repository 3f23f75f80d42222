//! Ends of streams and radios: a radio that does not answer takes seconds, and not every caller
//! waits for it.

use std::net::Ipv4Addr;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The longest wait of a drop. A radio that answers is told within it, also where the program ends
/// behind the drop.
const DROP_WAIT: Duration = Duration::from_millis(200);

/// The name of the threads that end something.
const THREAD: &str = "millstream-end";

/// Radios of this process that are about to be released.
static RELEASES: (Mutex<Vec<Ipv4Addr>>, Condvar) = (Mutex::new(Vec::new()), Condvar::new());

/// A release that is under way.
pub(crate) struct ReleaseGuard(Ipv4Addr);

impl ReleaseGuard {
    pub fn new(address: Ipv4Addr) -> Self {
        Self::radios().push(address);
        Self(address)
    }

    /// Waits until nothing has yet to release the radio at `address`, but no longer than `timeout`:
    /// a program that drops a radio, or does not wait for its close, may open it at once.
    pub fn wait_for_others(address: Ipv4Addr, timeout: Duration) {
        let is_held = |radios: &mut Vec<_>| radios.contains(&address);
        drop(RELEASES.1.wait_timeout_while(Self::radios(), timeout, is_held));
    }

    fn radios() -> MutexGuard<'static, Vec<Ipv4Addr>> {
        RELEASES.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ReleaseGuard {
    fn drop(&mut self) {
        let mut radios = Self::radios();
        if let Some(place) = radios.iter().position(|radio| *radio == self.0) {
            radios.swap_remove(place);
        }
        RELEASES.1.notify_all();
    }
}

/// The ends that drops have begun.
#[derive(Debug, Default)]
pub(crate) struct Closings {
    under_way: Mutex<usize>,
    ended: Condvar,
}

/// One that is under way.
struct ClosingGuard(Arc<Closings>);

impl Closings {
    /// Drops `thing` on a thread of its own, and waits for it, but not long. Without a thread it is
    /// dropped here.
    pub fn end<T: Send + 'static>(self: &Arc<Self>, thing: T) {
        // The last stream ends its radio on such a thread already.
        if std::thread::current().name() == Some(THREAD) {
            return drop(thing);
        }
        *self.lock() += 1;
        let guard = ClosingGuard(Arc::clone(self));
        let work = move || {
            drop(thing);
            drop(guard);
        };
        // What the thread would have done is done by the drop of `work` if there is none.
        drop(std::thread::Builder::new().name(THREAD.to_owned()).spawn(work));
        self.wait(DROP_WAIT);
    }

    /// Waits until none is under way; returns false if that takes longer than `timeout`.
    pub fn wait(&self, timeout: Duration) -> bool {
        let waited = self.ended.wait_timeout_while(self.lock(), timeout, |count| *count > 0);
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }

    fn lock(&self) -> MutexGuard<'_, usize> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ClosingGuard {
    fn drop(&mut self) {
        *self.0.lock() -= 1;
        self.0.ended.notify_all();
    }
}

/// Closes `thing` and waits for it up to `timeout`; returns whether it is closed. Otherwise a
/// thread goes on with it.
pub(crate) fn close_within<T: Send + Sync + ?Sized + 'static>(
    thing: &Arc<T>,
    close: fn(&T),
    timeout: Duration,
) -> bool {
    let (ended, end) = sync_channel(1);
    let kept = Arc::clone(thing);
    let work = move || {
        close(&kept);
        drop(kept);
        // Nobody waits any more, perhaps.
        let _ = ended.send(());
    };
    match std::thread::Builder::new().name(THREAD.to_owned()).spawn(work) {
        Ok(_) => end.recv_timeout(timeout).is_ok(),
        Err(_) => {
            close(thing);
            true
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Receiver, channel};

    /// Far longer than any step takes, so that a failing test ends.
    const PATIENCE: Duration = Duration::from_secs(30);

    /// Its drop takes until the other end is gone.
    struct Slow(Receiver<()>);

    impl Drop for Slow {
        fn drop(&mut self) {
            assert!(self.0.recv().is_err());
        }
    }

    #[test]
    fn a_drop_goes_on_without_its_caller() {
        let closings = Arc::new(Closings::default());
        assert!(closings.wait(Duration::ZERO));
        let (stuck, other) = channel();
        closings.end(Slow(other));
        assert!(!closings.wait(Duration::ZERO), "it is under way");
        drop(stuck);
        assert!(closings.wait(PATIENCE));
    }

    #[test]
    fn a_radio_that_is_being_released_is_waited_for() {
        let [radio, other] = [77, 78].map(|last| Ipv4Addr::new(127, 250, 0, last));
        ReleaseGuard::wait_for_others(radio, PATIENCE);
        let (twice, guard) = (ReleaseGuard::new(radio), ReleaseGuard::new(radio));
        ReleaseGuard::wait_for_others(other, PATIENCE);
        drop(twice);
        let ends = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(50));
            drop(guard);
        });
        ReleaseGuard::wait_for_others(radio, PATIENCE);
        assert!(!ReleaseGuard::radios().contains(&radio));
        ends.join().unwrap();
    }

    #[test]
    fn a_close_is_waited_for_no_longer_than_asked() {
        let (stuck, other) = channel::<()>();
        let slow = Arc::new(Mutex::new(other));
        let close = |slow: &Mutex<Receiver<()>>| drop(slow.lock().map(|slow| slow.recv()));
        assert!(!close_within(&slow, close, Duration::from_millis(1)));
        drop(stuck);
        assert!(close_within(&slow, close, PATIENCE));
    }
}
