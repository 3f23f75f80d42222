//! Substitutes for threads, clocks and locks: without a scheduler they behave as the originals.

use super::{Key, Status, me};
use millstream_ring::Wait;
use parking_lot::MutexGuard;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Lets the scheduler switch threads.
pub(in crate::runtime) fn point() {
    if let Some((sim, me)) = me() {
        sim.step(me, Status::Ready);
    }
}

pub(in crate::runtime) fn now() -> Instant {
    me().map_or_else(Instant::now, |(sim, _)| {
        sim.start + Duration::from_nanos(super::lock(&sim.state).now_ns)
    })
}

/// The token of [`millstream_ring::Waiter`], whose protocol `loom` explores in that crate.
#[derive(Debug, Default)]
pub(in crate::runtime) struct Waiter {
    real: millstream_ring::Waiter,
    token: AtomicBool,
}

impl Waiter {
    fn key(&self) -> Key {
        Key::At(std::ptr::from_ref(self).addr())
    }

    pub(in crate::runtime) fn notify(&self) {
        match me() {
            None => self.real.notify(),
            Some((sim, _)) => {
                point();
                self.token.store(true, Ordering::Release);
                sim.wake(self.key());
            }
        }
    }

    pub(in crate::runtime) fn take(&self) -> bool {
        match me() {
            None => self.real.take(),
            Some(_) => self.token.swap(false, Ordering::AcqRel),
        }
    }

    pub(in crate::runtime) fn wait(&self, how: Wait, timeout: Option<Duration>) -> bool {
        let Some((sim, me)) = me() else { return self.real.wait(how, timeout) };
        point();
        if self.take() {
            return true;
        }
        if timeout != Some(Duration::ZERO) {
            sim.wait(me, self.key(), timeout);
        }
        self.take()
    }
}

#[derive(Debug, Default)]
pub(in crate::runtime) struct Condvar(parking_lot::Condvar);

impl Condvar {
    fn key(&self) -> Key {
        Key::At(std::ptr::from_ref(self).addr())
    }

    pub(in crate::runtime) fn notify_all(&self) {
        if let Some((sim, _)) = me() {
            sim.wake(self.key());
        }
        self.0.notify_all();
    }

    pub(in crate::runtime) fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        match me() {
            None => self.0.wait(guard),
            // No other thread has the token between the unlocking and the wait.
            Some((sim, me)) => MutexGuard::unlocked(guard, || sim.wait(me, self.key(), None)),
        }
    }

    pub(in crate::runtime) fn wait_for<T>(&self, guard: &mut MutexGuard<'_, T>, limit: Duration) {
        match me() {
            None => drop(self.0.wait_for(guard, limit)),
            Some((sim, me)) => {
                MutexGuard::unlocked(guard, || sim.wait(me, self.key(), Some(limit)));
            }
        }
    }
}

pub(in crate::runtime) struct Thread {
    real: JoinHandle<()>,
    /// Its number under the scheduler.
    number: Option<usize>,
}

pub(in crate::runtime) fn spawn(
    name: String,
    run: impl FnOnce() + Send + 'static,
) -> io::Result<Thread> {
    let builder = std::thread::Builder::new().name(name.clone());
    let Some((sim, _)) = me() else {
        return Ok(Thread { real: builder.spawn(run)?, number: None });
    };
    let number = sim.enter(name);
    let real = builder.spawn({
        let sim = std::sync::Arc::clone(&sim);
        move || {
            /// Also after a panic.
            struct End;
            impl Drop for End {
                fn drop(&mut self) {
                    if let Some((sim, me)) = super::ME.with(|me| me.take()) {
                        sim.end(me);
                    }
                }
            }
            super::ME.with(|me| me.replace(Some((std::sync::Arc::clone(&sim), number))));
            let _end = End;
            sim.await_turn(number);
            run();
        }
    });
    let real =
        real.inspect_err(|_| super::lock(&sim.state).threads[number].status = Status::Ended)?;
    super::lock(&sim.state).threads[number].thread = Some(real.thread().clone());
    point();
    Ok(Thread { real, number: Some(number) })
}

impl Thread {
    pub(in crate::runtime) fn is_finished(&self) -> bool {
        match (me(), self.number) {
            (Some((sim, _)), Some(number)) => sim.has_ended(number),
            _ => self.real.is_finished(),
        }
    }

    pub(in crate::runtime) fn join(self) -> std::thread::Result<()> {
        if let (Some((sim, me)), Some(number)) = (me(), self.number) {
            point();
            while !sim.has_ended(number) && !sim.has_failed() {
                sim.wait(me, Key::End(number), None);
            }
        }
        self.real.join()
    }
}
