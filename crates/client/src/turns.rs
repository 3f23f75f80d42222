//! A lock for a thing that one thread uses for long and others command.
//!
//! A read waits for samples while it holds its stream. A command of another thread (stop, close, a
//! new rate) announces itself, and the read lets it pass between two slices of its wait. A lock
//! alone would let the reading thread take it again at once.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// How long a read or write holds its stream before it lets commands pass.
pub(crate) const SLICE: Duration = Duration::from_millis(5);

/// The longest wait of a read or write while its stream does not run, whatever its time-out:
/// clients ask with time-outs of minutes, and end after they have stopped the stream.
pub(crate) const IDLE_MAX: Duration = Duration::from_millis(50);

/// Longer than any real time-out.
pub(crate) const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);

/// The longest time that a waiting thread trusts in being woken.
const AGAIN: Duration = Duration::from_millis(1);

/// The lock. A panic of a holder does not make it unusable.
#[derive(Debug)]
pub(crate) struct Turns<T> {
    thing: Mutex<T>,
    commands: AtomicUsize,
    turn: Condvar,
}

/// What comes after a slice of a long use.
pub(crate) enum Next<R> {
    /// The use is over.
    Done(R),
    /// Another slice.
    Again,
    /// Another slice, when a command has been there or after this time.
    Sleep(Duration),
}

impl<T> Turns<T> {
    pub fn new(thing: T) -> Self {
        Self { thing: Mutex::new(thing), commands: AtomicUsize::new(0), turn: Condvar::new() }
    }

    /// Runs a command, before the next slice of a long use.
    pub fn command<R>(&self, run: impl FnOnce(&mut T) -> R) -> R {
        self.commands.fetch_add(1, Ordering::Relaxed);
        let mut thing = self.thing.lock().unwrap_or_else(PoisonError::into_inner);
        self.commands.fetch_sub(1, Ordering::Relaxed);
        let result = run(&mut thing);
        drop(thing);
        self.turn.notify_all();
        result
    }

    /// Runs a long use, slice by slice.
    pub fn slices<R>(&self, mut slice: impl FnMut(&mut T) -> Next<R>) -> R {
        let mut thing = self.thing.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            while self.commands.load(Ordering::Relaxed) > 0 {
                let woken = self.turn.wait_timeout(thing, AGAIN);
                thing = woken.unwrap_or_else(PoisonError::into_inner).0;
            }
            match slice(&mut thing) {
                Next::Done(result) => return result,
                Next::Again => {}
                Next::Sleep(time) => {
                    let woken = self.turn.wait_timeout(thing, time);
                    thing = woken.unwrap_or_else(PoisonError::into_inner).0;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn a_command_passes_a_long_use_at_its_next_slice() {
        let turns = Turns::new(0_u64);
        std::thread::scope(|scope| {
            let long = scope.spawn(|| {
                turns.slices(|count| {
                    if *count >= 1000 {
                        return Next::Done(());
                    }
                    std::thread::sleep(Duration::from_millis(1));
                    Next::Again
                });
            });
            let begin = Instant::now();
            for _ in 0..10 {
                turns.command(|count| *count += 100);
            }
            // Without announcements the use takes its lock again for seconds.
            assert!(begin.elapsed() < Duration::from_secs(2), "{:?}", begin.elapsed());
            long.join().unwrap();
        });
        assert_eq!(turns.command(|count| *count), 1000);
    }

    #[test]
    fn a_sleeping_use_wakes_for_a_command() {
        let turns = Turns::new(false);
        std::thread::scope(|scope| {
            let long = scope.spawn(|| {
                let begin = Instant::now();
                turns.slices(|woken| {
                    if *woken { Next::Done(()) } else { Next::Sleep(Duration::from_secs(60)) }
                });
                begin.elapsed()
            });
            std::thread::sleep(Duration::from_millis(20));
            turns.command(|woken| *woken = true);
            assert!(long.join().unwrap() < Duration::from_secs(30));
        });
    }
}
