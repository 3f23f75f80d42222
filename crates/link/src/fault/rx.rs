//! The receive half behind a fault switch.

use std::io;
use std::time::Duration;

use super::held::{Datagrams, DelayedDatagram, ReleaseTime};
use super::switch::{DatagramFate, FaultSwitch};
use crate::port::{Capabilities, Datagram, PortRx};

/// The place of a lent datagram.
#[derive(Debug, Clone, Copy)]
enum Lent {
    Inner(usize),
    Own(usize),
}

pub(super) struct FaultRx {
    inner: Box<dyn PortRx>,
    switch: FaultSwitch,
    kept: Datagrams,
    /// The current batch is the inner half's, unchanged.
    direct: bool,
    lent: Vec<Lent>,
    own: Vec<DelayedDatagram>,
    /// The inner batch: the next datagram to judge, and their number.
    next: usize,
    count: usize,
}

impl FaultRx {
    pub fn new(inner: Box<dyn PortRx>, switch: FaultSwitch) -> Self {
        let lent = Vec::with_capacity(inner.capabilities().batch_max);
        let (kept, own) = (Datagrams::default(), Vec::new());
        Self { inner, switch, kept, direct: true, lent, own, next: 0, count: 0 }
    }

    fn recv_judged(&mut self, timeout: Duration) -> io::Result<usize> {
        let timeout_ns = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
        let until_ns = self.switch.now_ns().saturating_add(timeout_ns);
        let mut polled = false;
        loop {
            self.lend();
            let now_ns = self.switch.now_ns();
            if !self.lent.is_empty() || (polled && now_ns >= until_ns) {
                return Ok(self.lent.len());
            }
            let wake_ns = self.kept.held.next_ns().map_or(until_ns, |due_ns| due_ns.min(until_ns));
            let wait = Duration::from_nanos(wake_ns.saturating_sub(now_ns));
            (self.next, self.count) = (0, 0);
            self.count = self.inner.recv_batch(wait)?;
            polled = true;
        }
    }

    /// Lends the datagrams that are due and those of the inner batch that the rules pass.
    fn lend(&mut self) {
        let room = self.inner.capabilities().batch_max;
        while self.lent.len() < room {
            let now_ns = self.switch.now_ns();
            if let Some((kept, _)) = self.kept.held.pop_due(&self.switch, now_ns) {
                self.lend_own(kept);
            } else if self.next < self.count {
                self.next += 1;
                self.take(self.next - 1, now_ns);
            } else {
                break;
            }
        }
    }

    /// Applies the rules to datagram `index` of the inner batch.
    fn take(&mut self, index: usize, now_ns: u64) {
        let Datagram { payload, source } = self.inner.datagram(index);
        let datagram = (payload, source);
        match self.switch.judge(payload, now_ns) {
            DatagramFate::Pass => self.lent.push(Lent::Inner(index)),
            DatagramFate::Lose => {}
            DatagramFate::Copies(copies, rule) => {
                for _ in 0..copies {
                    self.kept.keep(&self.switch, rule, ReleaseTime::NEXT, datagram);
                }
                self.lent.push(Lent::Inner(index));
            }
            DatagramFate::Later(due, rule) => {
                self.kept.keep(&self.switch, rule, due, datagram);
            }
            DatagramFate::Change(change) => {
                let mut kept = self.kept.copy(payload, source);
                change.apply(&mut kept.bytes);
                self.lend_own(kept);
            }
        }
    }

    fn lend_own(&mut self, kept: DelayedDatagram) {
        self.lent.push(Lent::Own(self.own.len()));
        self.own.push(kept);
    }
}

impl PortRx for FaultRx {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn recv_batch(&mut self, timeout: Duration) -> io::Result<usize> {
        self.lent.clear();
        self.own.drain(..).for_each(|kept| self.kept.give_back(kept));
        let busy = self.next < self.count || !self.kept.held.is_empty();
        if busy || self.switch.is_live() {
            self.direct = false;
            return self.recv_judged(timeout);
        }
        let count = self.inner.recv_batch(timeout)?;
        self.direct = !self.switch.is_live();
        if self.direct {
            return Ok(count);
        }
        // A rule was added during the wait. If it removes datagrams, this one wait ends early.
        (self.next, self.count) = (0, count);
        self.recv_judged(Duration::ZERO)
    }

    fn datagram(&self, index: usize) -> Datagram<'_> {
        if self.direct {
            return self.inner.datagram(index);
        }
        match self.lent[index] {
            Lent::Inner(index) => self.inner.datagram(index),
            Lent::Own(index) => {
                let DelayedDatagram { bytes, peer } = &self.own[index];
                Datagram { payload: bytes, source: *peer }
            }
        }
    }

    fn queue_drops(&self) -> u64 {
        self.inner.queue_drops()
    }

    fn too_long(&self) -> u64 {
        self.inner.too_long()
    }
}
