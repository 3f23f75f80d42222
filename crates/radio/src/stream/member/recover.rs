//! Carries out the stages of a recovery: registers, the new set-up, and the look at the port.

use std::time::{Duration, Instant};

use super::RxMember;
use crate::channel::RxRequest;
use crate::opening;
use crate::stream::meta::RxError;
use crate::stream::recovery::RecoveryNeed;

impl RxMember {
    /// Works on the recovery that is under way, until it is over or `until` has passed; `None` has
    /// no end. An error ends it.
    pub(super) fn recover(&mut self, until: Option<Instant>) -> Result<(), RxError> {
        let outcome = self.try_recover(until);
        if outcome.is_err() {
            self.core.end_recovery();
            self.access = None;
        }
        outcome
    }

    fn try_recover(&mut self, until: Option<Instant>) -> Result<(), RxError> {
        while let Some(need) = self.core.need() {
            let is_done = self.work_on(need, until)?;
            self.core.check_samples(self.now())?;
            if !is_done && until.is_some_and(|until| until <= self.now()) {
                break;
            }
        }
        Ok(())
    }

    /// Does what the recovery needs. Returns false where it has to wait longer than `until`.
    fn work_on(&mut self, need: RecoveryNeed, until: Option<Instant>) -> Result<bool, RxError> {
        match need {
            RecoveryNeed::Register(request) => self.ask(request, until),
            RecoveryNeed::SetUp => self.set_up(until),
            RecoveryNeed::Arrivals => {
                self.core.end_recovery();
                let some = self.has_come()?;
                self.core.note_arrivals(some);
                Ok(true)
            }
        }
    }

    /// Waits for the outcome of a request, or for a part of the time that it may take. Returns true
    /// when the core has it.
    fn ask(&mut self, request: RxRequest, until: Option<Instant>) -> Result<bool, RxError> {
        let mut access = match self.access.take() {
            Some(access) => access,
            None => match self.channel.begin(request) {
                Ok(access) => access,
                Err(error) => return self.give_outcome(Err(error)).map(|()| true),
            },
        };
        if let Some(outcome) = self.channel.poll(request, &mut access) {
            drop(access);
            return self.give_outcome(outcome).map(|()| true);
        }
        self.channel.control().wait(&access, until);
        let outcome = self.channel.poll(request, &mut access);
        self.access = outcome.is_none().then_some(access);
        outcome.map_or(Ok(false), |outcome| self.give_outcome(outcome).map(|()| true))
    }

    /// Gives the core the outcome of its request.
    fn give_outcome(&mut self, outcome: Result<u32, crate::RadioError>) -> Result<(), RxError> {
        self.look();
        self.core.note_outcome(outcome, self.now()).map_err(|mut error| {
            if let RxError::DeviceSilent { claim_lost, .. } = &mut error {
                *claim_lost = self.channel.control().claim_lost();
            }
            error
        })
    }

    /// Returns whether a packet of the device came meanwhile.
    fn has_come(&mut self) -> Result<bool, RxError> {
        let received = self.port.rx.recv_batch(Duration::ZERO);
        let count = received.map_err(|error| self.receive_error(error))?;
        self.core.look(self.now());
        self.batch = (0, count);
        Ok(self.inspect_batch()? || self.core.has_heard())
    }

    /// Sets the stream up again: the device is alive, but all of its credit is lost in the network,
    /// and no rule of the protocol restores it. Returns true when it is.
    fn set_up(&mut self, until: Option<Instant>) -> Result<bool, RxError> {
        self.batch = (0, 0);
        let Some((opening, looked)) = self.core.opening() else { return Ok(true) };
        let opened = opening::advance(&mut self.port, &self.path, opening, looked, until)?;
        let Some((skipped, credit)) = opened else { return Ok(false) };
        self.core.note_set_up(&skipped, credit)?;
        Ok(true)
    }

    /// Ends the recovery that is under way, because the stream is stopped. A new set-up is
    /// completed first: without it the device could send nothing later. So is a start that was
    /// sent: it could overtake the stop.
    pub(super) fn give_up_recovery(&mut self) -> Result<(), RxError> {
        let mut outcome = Ok(());
        while let Some(need) = self.core.need() {
            if !self.core.recovery().has_to_be_completed(self.access.is_some()) {
                break;
            }
            outcome = self.work_on(need, None).map(drop);
            if outcome.is_err() {
                self.core.end_recovery();
            }
        }
        self.access = None;
        self.core.give_up_recovery();
        outcome
    }
}
