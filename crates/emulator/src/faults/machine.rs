//! Faults of the device itself, and their handover to the threads that apply them.

use crate::time::{DeviceClock, SampleClock};
use millstream_wire::ctrl::Protocol;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The effect on the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FaultKind {
    /// The device thread stops: nothing is received or sent, and time goes on.
    Stall { ns: u64 },
    /// Power off and on: silence on all ports, then the state as after power-on.
    Reboot { silent_ns: u64 },
    /// The management port closes its connections and accepts none.
    RpcDown { ns: u64 },
    /// The device's time jumps.
    Jump { ticks: i64 },
}

/// A fault that waits for its time.
#[derive(Debug)]
pub(super) struct PendingFault {
    pub kind: FaultKind,
    /// The device's time at which it is applied; `None` is at once.
    pub at_tick: Option<u64>,
    pub struck: Arc<AtomicBool>,
}

/// The reaction of the management side to a fault.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Management {
    /// Drop the session; the time from now on.
    Reboot(DeviceClock),
    /// Move the time.
    Jump(i64),
}

/// The shared state of a radio's device faults.
#[derive(Debug)]
pub(crate) struct DeviceFaults {
    rate_hz: f64,
    time_scale: f64,
    /// Whether there are any events: the only check of the device thread without faults.
    waiting: AtomicBool,
    events: Mutex<Vec<PendingFault>>,
    silent_until_ns: AtomicU64,
    rpc_down_until_ns: AtomicU64,
    management: Mutex<Vec<Management>>,
    /// The protocol that the image speaks.
    pub protocol: SpokenProtocol,
}

/// A protocol that threads share; clones are the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct SpokenProtocol(Arc<AtomicBool>);

impl SpokenProtocol {
    /// Returns it.
    pub fn get(&self) -> Protocol {
        if self.0.load(Ordering::Relaxed) { Protocol::V2 } else { Protocol::V1 }
    }

    /// Changes it.
    pub fn set(&self, protocol: Protocol) {
        self.0.store(protocol == Protocol::V2, Ordering::Relaxed);
    }
}

impl DeviceFaults {
    /// Returns the state without faults for a clock with this rate after power-on.
    pub fn new(rate_hz: f64, time_scale: f64) -> Self {
        Self {
            rate_hz,
            time_scale,
            waiting: AtomicBool::new(false),
            events: Mutex::default(),
            silent_until_ns: AtomicU64::new(0),
            rpc_down_until_ns: AtomicU64::new(0),
            management: Mutex::default(),
            protocol: SpokenProtocol::default(),
        }
    }

    /// Returns the time after a power-on at `now_ns`.
    pub fn power_on(&self, now_ns: u64) -> DeviceClock {
        DeviceClock::new(SampleClock::new(now_ns, 0, self.rate_hz, self.time_scale))
    }

    pub(super) fn push(&self, event: PendingFault) {
        lock(&self.events).push(event);
        self.waiting.store(true, Ordering::Release);
    }

    /// Withdraws an event that was not applied; ends the effect of an applied one, if possible.
    pub(super) fn withdraw(&self, kind: FaultKind, struck: &Arc<AtomicBool>) {
        lock(&self.events).retain(|event| !Arc::ptr_eq(&event.struck, struck));
        if matches!(kind, FaultKind::RpcDown { .. }) && struck.load(Ordering::Acquire) {
            self.rpc_down(0);
        }
    }

    /// Returns the next event whose instant has come, or the instant of the next one.
    pub(super) fn next(
        &self,
        now_ns: u64,
        instant_of: impl Fn(u64) -> u64,
    ) -> Result<PendingFault, Option<u64>> {
        if !self.waiting.load(Ordering::Acquire) {
            return Err(None);
        }
        let mut events = lock(&self.events);
        let instant = |event: &PendingFault| event.at_tick.map_or(now_ns, &instant_of);
        match events.iter().position(|event| instant(event) <= now_ns) {
            Some(index) => Ok(events.remove(index)),
            None => {
                self.waiting.store(!events.is_empty(), Ordering::Release);
                Err(events.iter().map(instant).min())
            }
        }
    }

    /// Switches the power off at `now_ns`; returns the time after it comes back.
    pub(super) fn reboot(&self, now_ns: u64, silent_ns: u64) -> DeviceClock {
        let boot_ns = now_ns.saturating_add(silent_ns);
        let keeper = self.power_on(boot_ns);
        lock(&self.management).push(Management::Reboot(keeper));
        self.silent_until_ns.store(boot_ns, Ordering::Release);
        keeper
    }

    pub(super) fn rpc_down(&self, until_ns: u64) {
        self.rpc_down_until_ns.store(until_ns, Ordering::Release);
    }

    pub(super) fn jump(&self, ticks: i64) {
        lock(&self.management).push(Management::Jump(ticks));
    }

    /// Returns whether the radio has no power.
    pub fn is_silent(&self, now_ns: u64) -> bool {
        now_ns < self.silent_until_ns.load(Ordering::Acquire)
    }

    /// Returns whether the management port is closed.
    pub fn is_rpc_down(&self, now_ns: u64) -> bool {
        self.is_silent(now_ns) || now_ns < self.rpc_down_until_ns.load(Ordering::Acquire)
    }

    /// Returns the actions of the management side that are due.
    pub fn take_management(&self) -> Vec<Management> {
        std::mem::take(&mut *lock(&self.management))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
