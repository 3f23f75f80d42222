//! A lock for a thing that one thread uses for long and others command.
//!
//! A read waits for samples while it holds its stream. A command of another thread (stop, close, a
//! new rate) announces itself, and the read lets it pass between two slices of its wait. A lock
//! alone would let the reading thread take it again at once.
//!
//! Another read waits in a line, no longer than its own time-out.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a read or write holds its stream before it lets commands pass.
pub(crate) const HOLD_MAX: Duration = Duration::from_millis(5);

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
    line: TurnLine,
}

/// How a slice of a long use ended, and what comes then.
pub(crate) enum SliceEnd<R> {
    /// The use is over.
    Done(R),
    /// Another slice.
    Again,
    /// Another slice, when a command has been there or after this time.
    Sleep(Duration),
}

impl<T> Turns<T> {
    pub fn new(thing: T) -> Self {
        let (commands, turn) = (AtomicUsize::new(0), Condvar::new());
        Self { thing: Mutex::new(thing), commands, turn, line: TurnLine::default() }
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

    /// Runs a long use, slice by slice. Returns `None` if another one runs until `until`, or until
    /// `over` says that this one has become pointless.
    pub fn slices<R>(
        &self,
        until: Instant,
        over: impl Fn() -> bool,
        mut slice: impl FnMut(&mut T) -> SliceEnd<R>,
    ) -> Option<R> {
        let _turn = self.line.wait(until, over)?;
        let mut thing = self.thing.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            while self.commands.load(Ordering::Relaxed) > 0 {
                let woken = self.turn.wait_timeout(thing, AGAIN);
                thing = woken.unwrap_or_else(PoisonError::into_inner).0;
            }
            match slice(&mut thing) {
                SliceEnd::Done(result) => return Some(result),
                SliceEnd::Again => {}
                SliceEnd::Sleep(time) => {
                    let woken = self.turn.wait_timeout(thing, time);
                    thing = woken.unwrap_or_else(PoisonError::into_inner).0;
                }
            }
        }
    }
}

/// Long uses that wait for each other, in the order in which they came.
#[derive(Debug, Default)]
pub struct TurnLine {
    state: Mutex<LineState>,
    moved: Condvar,
}

#[derive(Debug, Default)]
struct LineState {
    busy: bool,
    next: u64,
    waiting: VecDeque<u64>,
}

/// The turn of a long use, which ends when it is dropped.
#[derive(Debug)]
pub struct LineTurn<'a>(&'a TurnLine);

impl TurnLine {
    /// Takes the turn if nobody has it or waits for it.
    pub fn take(&self) -> Option<LineTurn<'_>> {
        let mut state = self.lock();
        let free = !state.busy && state.waiting.is_empty();
        state.busy |= free;
        free.then(|| LineTurn(self))
    }

    /// Waits for the turn. Returns `None` when it does not come until `until`, or when `over` says
    /// that it has become pointless.
    pub fn wait(&self, until: Instant, over: impl Fn() -> bool) -> Option<LineTurn<'_>> {
        if let Some(turn) = self.take() {
            return Some(turn);
        }
        let mut state = self.lock();
        let own = state.next;
        state.next += 1;
        state.waiting.push_back(own);
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let first = !state.busy && state.waiting.front() == Some(&own);
            if first || left.is_zero() || over() {
                state.waiting.retain(|one| *one != own);
                state.busy |= first;
                self.moved.notify_all();
                return first.then(|| LineTurn(self));
            }
            let woken = self.moved.wait_timeout(state, left.min(HOLD_MAX));
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn lock(&self) -> MutexGuard<'_, LineState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for LineTurn<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.busy = false;
        if !state.waiting.is_empty() {
            self.0.moved.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Far longer than any step takes.
    const HOUR: Duration = Duration::from_secs(3600);

    fn hour() -> Instant {
        Instant::now() + HOUR
    }

    #[test]
    fn a_command_passes_a_long_use_at_its_next_slice() {
        let turns = Turns::new(0_u64);
        std::thread::scope(|scope| {
            let long = scope.spawn(|| {
                turns.slices(
                    hour(),
                    || false,
                    |count| {
                        if *count >= 1000 {
                            return SliceEnd::Done(());
                        }
                        std::thread::sleep(Duration::from_millis(1));
                        SliceEnd::Again
                    },
                );
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
                turns.slices(
                    hour(),
                    || false,
                    |woken| {
                        if *woken { SliceEnd::Done(()) } else { SliceEnd::Sleep(HOUR) }
                    },
                );
                begin.elapsed()
            });
            std::thread::sleep(Duration::from_millis(20));
            turns.command(|woken| *woken = true);
            assert!(long.join().unwrap() < Duration::from_secs(30));
        });
    }

    /// The first use waits for a command; the others give up at their own time, or when they have
    /// become pointless; the last one comes after the first.
    #[test]
    fn a_second_use_waits_no_longer_than_it_wants() {
        let turns = Turns::new(false);
        let use_until = |until: Instant, over: &dyn Fn() -> bool| {
            let slice =
                |ends: &mut bool| if *ends { SliceEnd::Done(()) } else { SliceEnd::Sleep(HOUR) };
            turns.slices(until, over, slice)
        };
        std::thread::scope(|scope| {
            let first = scope.spawn(|| use_until(hour(), &|| false));
            while !turns.line.lock().busy {
                std::thread::yield_now();
            }
            assert_eq!(use_until(Instant::now(), &|| false), None);
            assert_eq!(use_until(Instant::now() + HOLD_MAX, &|| false), None);
            let calls = AtomicUsize::new(0);
            let third_call = || calls.fetch_add(1, Ordering::Relaxed) == 2;
            assert_eq!(use_until(hour(), &third_call), None);
            assert!(turns.line.lock().waiting.is_empty());
            let last = scope.spawn(|| use_until(hour(), &|| false));
            while turns.line.lock().waiting.is_empty() {
                std::thread::yield_now();
            }
            turns.command(|ends| *ends = true);
            assert_eq!((first.join().unwrap(), last.join().unwrap()), (Some(()), Some(())));
        });
        assert!(!turns.line.lock().busy);
    }

    #[test]
    fn a_use_that_panics_leaves_the_line_free() {
        let turns = Turns::new(());
        let panics =
            || turns.slices(hour(), || false, |()| -> SliceEnd<()> { panic!("on purpose") });
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(panics));
        assert!(outcome.is_err());
        assert_eq!(turns.slices(Instant::now(), || false, |()| SliceEnd::Done(7)), Some(7));
    }
}
