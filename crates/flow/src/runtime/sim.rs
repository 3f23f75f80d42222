//! A scheduler for tests: it chooses by a seed which thread runs, one at a time, so that a run is
//! reproducible by its seed, however busy the machine is.
//!
//! Threads are real and pass a token on. The thread with the token runs to its next [`point`], the
//! others sleep. Time is virtual: it advances a microsecond with each step, and to the next timeout
//! when every thread waits. If every thread waits without a timeout, no thread can run: this is a
//! deadlock or a lost wake-up, and the test fails with the seed and each thread's wait.

mod shims;
mod tests;

pub(super) use shims::{Condvar, Thread, Waiter, now, point, spawn};

use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use std::cell::RefCell;
use std::fmt::Write;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// A run with more steps is in an endless loop.
const STEPS_MAX: u64 = 2_000_000;
const STEP_NS: u64 = 1000;

thread_local! {
    /// The scheduler of this thread, and the thread's number there.
    static ME: RefCell<Option<(Arc<Sim>, usize)>> = const { RefCell::new(None) };
}

/// Random numbers from a seed.
pub(super) struct Random(SplitMix64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(SplitMix64::seed_from_u64(seed))
    }

    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.0.next_u64() % limit
    }
}

/// The event that a thread waits for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Key {
    /// A wake-up at this address.
    At(usize),
    /// The end of this thread.
    End(usize),
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Status {
    Ready,
    Waits { key: Key, until_ns: Option<u64> },
    Ended,
}

struct Virtual {
    name: String,
    thread: Option<thread::Thread>,
    status: Status,
}

struct State {
    random: Random,
    /// Percentage of steps after which the same thread continues if it can.
    stays: u64,
    threads: Vec<Virtual>,
    now_ns: u64,
    steps: u64,
}

pub(super) struct Sim {
    seed: u64,
    start: Instant,
    state: Mutex<State>,
    /// The thread with the token.
    turn: AtomicUsize,
    /// After a failure threads run freely, so that they can end.
    failed: AtomicBool,
    failure: Mutex<String>,
}

/// Runs `test` and every thread that it starts, scheduled by the seed.
///
/// # Panics
/// With the seed, if no thread can run or the steps do not end.
pub(super) fn simulate<T>(seed: u64, test: impl FnOnce() -> T) -> T {
    struct Leave;
    impl Drop for Leave {
        fn drop(&mut self) {
            ME.with(|me| me.take());
        }
    }

    let mut random = Random::new(seed);
    let stays = [0, 50, 90, 99][random.below(4) as usize];
    let root =
        Virtual { name: "test".into(), thread: Some(thread::current()), status: Status::Ready };
    let state = State { random, stays, threads: vec![root], now_ns: 0, steps: 0 };
    let sim = Arc::new(Sim {
        seed,
        start: Instant::now(),
        state: Mutex::new(state),
        turn: AtomicUsize::new(0),
        failed: AtomicBool::new(false),
        failure: Mutex::new(String::new()),
    });
    ME.with(|me| me.replace(Some((sim, 0))));
    let _leave = Leave;
    test()
}

/// Returns the scheduler of this thread.
fn me() -> Option<(Arc<Sim>, usize)> {
    ME.with(|me| me.borrow().clone())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Sim {
    /// Sets the thread's status; returns when it has the token.
    fn step(&self, me: usize, status: Status) {
        if !self.has_failed() {
            let mut state = lock(&self.state);
            state.threads[me].status = status;
            match state.next(me) {
                Some(next) => {
                    let thread = state.threads[next].thread.clone();
                    drop(state);
                    self.hand_on(next, thread);
                    self.await_turn(me);
                }
                None => {
                    let failure = state.failure(self.seed);
                    drop(state);
                    self.fail(failure);
                }
            }
        }
        if self.has_failed() {
            // The first thread reports the failure, the others run to their ends.
            assert!(me > 0 || thread::panicking(), "{}", lock(&self.failure));
            thread::yield_now();
        }
    }

    fn hand_on(&self, next: usize, thread: Option<thread::Thread>) {
        if self.turn.swap(next, Ordering::AcqRel) != next {
            thread.iter().for_each(thread::Thread::unpark);
        }
    }

    fn await_turn(&self, me: usize) {
        while self.turn.load(Ordering::Acquire) != me && !self.has_failed() {
            thread::park();
        }
    }

    fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Acquire)
    }

    fn fail(&self, failure: String) {
        *lock(&self.failure) = failure;
        self.failed.store(true, Ordering::Release);
        for thread in lock(&self.state).threads.iter().filter_map(|thread| thread.thread.as_ref()) {
            thread.unpark();
        }
    }

    /// Waits for the key, up to the limit.
    fn wait(&self, me: usize, key: Key, limit: Option<Duration>) {
        let now_ns = lock(&self.state).now_ns;
        let until_ns = limit.map(|limit| now_ns.saturating_add(limit.as_nanos() as u64));
        self.step(me, Status::Waits { key, until_ns });
    }

    /// Wakes every thread that waits for the key.
    fn wake(&self, key: Key) {
        for thread in &mut lock(&self.state).threads {
            if matches!(thread.status, Status::Waits { key: other, .. } if other == key) {
                thread.status = Status::Ready;
            }
        }
    }

    /// Registers a new thread and returns its number.
    fn enter(&self, name: String) -> usize {
        let mut state = lock(&self.state);
        state.threads.push(Virtual { name, thread: None, status: Status::Ready });
        state.threads.len() - 1
    }

    fn has_ended(&self, thread: usize) -> bool {
        lock(&self.state).threads[thread].status == Status::Ended
    }

    /// Ends the thread and passes the token on.
    fn end(&self, me: usize) {
        self.wake(Key::End(me));
        let mut state = lock(&self.state);
        state.threads[me].status = Status::Ended;
        let next = state.next(me);
        let thread = next.and_then(|next| state.threads[next].thread.clone());
        let failure = state.failure(self.seed);
        drop(state);
        match next {
            Some(next) => self.hand_on(next, thread),
            None => self.fail(failure),
        }
    }
}

impl State {
    /// Chooses the thread after a step of `me`; `None` if no thread can run, or there were too many
    /// steps.
    fn next(&mut self, me: usize) -> Option<usize> {
        self.steps += 1;
        self.now_ns += STEP_NS;
        if self.steps > STEPS_MAX {
            return None;
        }
        loop {
            let mut earliest = u64::MAX;
            let mut ready = 0;
            for thread in &mut self.threads {
                if let Status::Waits { until_ns: Some(until), .. } = thread.status {
                    earliest = earliest.min(until);
                    if until <= self.now_ns {
                        thread.status = Status::Ready;
                    }
                }
                ready += u64::from(thread.status == Status::Ready);
            }
            if ready > 0 {
                if self.threads[me].status == Status::Ready && self.random.below(100) < self.stays {
                    return Some(me);
                }
                let nth = self.random.below(ready) as usize;
                let all = self.threads.iter().enumerate();
                let mut all = all.filter(|(_, thread)| thread.status == Status::Ready);
                return all.nth(nth).map(|(index, _)| index);
            }
            if earliest == u64::MAX {
                return None;
            }
            self.now_ns = earliest;
        }
    }

    fn failure(&self, seed: u64) -> String {
        let mut text =
            format!("seed {seed}: after {} steps nobody can go on, or no end:", self.steps);
        for thread in &self.threads {
            let _ = write!(text, " {} {:?};", thread.name, thread.status);
        }
        text
    }
}
