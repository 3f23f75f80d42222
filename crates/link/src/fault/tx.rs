//! The transmit half behind a fault switch.

use std::io;
use std::net::SocketAddrV4;
use std::time::Duration;

use super::held::{Datagrams, ReleaseTime};
use super::switch::{DatagramFate, FaultSwitch};
use crate::port::{Capabilities, FrameLoan, PortTx, by_loan};

pub(super) struct FaultTx {
    inner: Box<dyn PortTx>,
    switch: FaultSwitch,
    kept: Datagrams,
    loan: FrameLoan,
    /// The datagram that is being written lies in the inner half's memory: there were no active
    /// rules when it was begun.
    direct: bool,
    /// The present call must not wait.
    hasty: bool,
}

impl FaultTx {
    pub fn new(inner: Box<dyn PortTx>, switch: FaultSwitch) -> Self {
        let (kept, loan) = (Datagrams::default(), FrameLoan::default());
        Self { inner, switch, kept, loan, direct: false, hasty: false }
    }

    /// Sends one datagram, waiting only if the present call may.
    fn hand_on(&mut self, datagram: &[u8], to: SocketAddrV4) -> io::Result<()> {
        if self.hasty { self.inner.try_send(datagram, to) } else { self.inner.send(datagram, to) }
    }

    fn is_idle(&self) -> bool {
        self.kept.held.is_empty() && !self.switch.is_live()
    }

    /// Applies the rules to the datagrams of a train one by one; those that pass leave in
    /// batches again.
    fn send_judged(
        &mut self,
        train: &[u8],
        segment_bytes: usize,
        to: SocketAddrV4,
    ) -> io::Result<()> {
        // The bytes sent so far, and judged so far.
        let (mut sent, mut end) = (0, 0);
        for datagram in train.chunks(segment_bytes) {
            let start = end;
            end += datagram.len();
            let now_ns = self.switch.now_ns();
            let verdict = self.switch.judge(datagram, now_ns);
            let passes = matches!(verdict, DatagramFate::Pass | DatagramFate::Copies(..));
            if !passes {
                self.send_run(&train[sent..start], segment_bytes, to)?;
                sent = end;
            }
            match verdict {
                DatagramFate::Pass | DatagramFate::Lose => {}
                DatagramFate::Copies(copies, rule) => {
                    for _ in 0..copies {
                        self.kept.keep(&self.switch, rule, ReleaseTime::NEXT, (datagram, to));
                    }
                }
                DatagramFate::Later(due, rule) => {
                    self.kept.keep(&self.switch, rule, due, (datagram, to));
                }
                DatagramFate::Change(change) => {
                    let mut kept = self.kept.copy(datagram, to);
                    change.apply(&mut kept.bytes);
                    let outcome = self.hand_on(&kept.bytes, to);
                    self.kept.give_back(kept);
                    outcome?;
                }
            }
            while let Some((kept, rule)) = self.kept.held.pop_due(&self.switch, now_ns) {
                self.send_run(&train[sent..end], segment_bytes, to)?;
                sent = end;
                if self.hand_on(&kept.bytes, kept.peer).is_err() {
                    self.switch.note_overflow(rule);
                }
                self.kept.give_back(kept);
            }
        }
        self.send_run(&train[sent..], segment_bytes, to)
    }

    fn send_run(&mut self, run: &[u8], segment_bytes: usize, to: SocketAddrV4) -> io::Result<()> {
        match run.len() {
            0 => Ok(()),
            length if length <= segment_bytes => self.hand_on(run, to),
            _ => self.inner.send_train(run, segment_bytes, to),
        }
    }
}

impl PortTx for FaultTx {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn send(&mut self, payload: &[u8], to: SocketAddrV4) -> io::Result<()> {
        // An empty datagram is not a batch of one.
        if self.is_idle() || payload.is_empty() {
            return self.inner.send(payload, to);
        }
        self.release();
        self.send_judged(payload, payload.len(), to)
    }

    fn try_send(&mut self, payload: &[u8], to: SocketAddrV4) -> io::Result<()> {
        if self.is_idle() || payload.is_empty() {
            return self.inner.try_send(payload, to);
        }
        self.hasty = true;
        let outcome = self.send(payload, to);
        self.hasty = false;
        outcome
    }

    fn send_train(
        &mut self,
        train: &[u8],
        segment_bytes: usize,
        to: SocketAddrV4,
    ) -> io::Result<()> {
        // The inner half refuses what it cannot send.
        if self.is_idle() || segment_bytes == 0 {
            return self.inner.send_train(train, segment_bytes, to);
        }
        self.release();
        self.send_judged(train, segment_bytes, to)
    }

    fn lend(&mut self, bytes: usize) -> io::Result<()> {
        let direct = self.is_idle() && self.loan.is_empty();
        if self.direct && !direct {
            // What was lent before the rules leaves before what they judge.
            self.inner.depart()?;
        }
        self.direct = direct;
        if self.direct { self.inner.lend(bytes) } else { by_loan::lend(self, bytes) }
    }

    fn lent(&mut self, at: usize) -> &mut [u8] {
        if self.direct { self.inner.lent(at) } else { self.loan.lent(at) }
    }

    fn commit(&mut self, bytes: usize, to: SocketAddrV4) -> io::Result<()> {
        if self.direct { self.inner.commit(bytes, to) } else { by_loan::commit(self, bytes, to) }
    }

    fn depart(&mut self) -> io::Result<()> {
        self.direct = false;
        let judged = by_loan::depart(self);
        self.inner.depart().and(judged)
    }

    fn loan(&mut self) -> &mut FrameLoan {
        &mut self.loan
    }

    fn release(&mut self) -> Option<Duration> {
        if self.kept.held.is_empty() {
            return None;
        }
        let now_ns = self.switch.now_ns();
        while let Some((kept, rule)) = self.kept.held.pop_due(&self.switch, now_ns) {
            if self.hand_on(&kept.bytes, kept.peer).is_err() {
                self.switch.note_overflow(rule);
            }
            self.kept.give_back(kept);
        }
        let due_ns = self.kept.held.next_ns()?;
        Some(Duration::from_nanos(due_ns.saturating_sub(now_ns)))
    }
}
