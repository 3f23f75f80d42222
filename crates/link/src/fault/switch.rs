//! The rules of one direction, shared between whoever switches them and the wrapped halves.
//!
//! A lock guards the rules, and while any of them can act or keeps something back it is taken
//! several times for each datagram. That is the price of a fault, and of nothing else: a link
//! without rules is not wrapped, and one whose rules are done reads one flag.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::held::{REORDER_NS_MAX, ReleaseTime};
use super::link::FaultLink;
use super::rule::{ByteChange, FaultEffect, FaultRule, RuleCounts};
use super::rx::FaultRx;
use super::tx::FaultTx;
use crate::frame::FrameLink;
use crate::port::{PortRx, PortTx};

/// Rules that one switch holds at most, those that are done included.
pub const RULES_MAX: usize = 64;

/// Names a rule of one switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RuleId(u64);

/// A switch holds [`RULES_MAX`] rules already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("there are {RULES_MAX} rules already: remove some first")]
pub struct TooManyRules;

/// The rules of one direction. Clones share them; any number of halves may be wrapped.
///
/// For each datagram all rules count, in the order they were added; the first that selects it acts.
#[derive(Clone)]
pub struct FaultSwitch {
    shared: Arc<Shared>,
}

struct Shared {
    /// Whether any rule can act or holds something.
    live: AtomicBool,
    rules: Mutex<Rules>,
    clock: Box<dyn Fn() -> u64 + Send + Sync>,
}

#[derive(Default)]
struct Rules {
    list: Vec<(RuleId, FaultRule)>,
    next_id: u64,
}

/// What a half has to do with a datagram.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum DatagramFate {
    Pass,
    Lose,
    /// It passes, and so many copies come behind it.
    Copies(u32, RuleId),
    Later(ReleaseTime, RuleId),
    Change(ByteChange),
}

impl FaultSwitch {
    /// A switch without rules. `clock` gives nanoseconds that never run backwards; it is asked only
    /// while a rule can act.
    pub fn new(clock: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        let live = AtomicBool::new(false);
        let shared = Shared { live, rules: Mutex::default(), clock: Box::new(clock) };
        Self { shared: Arc::new(shared) }
    }

    /// Puts this switch's rules between a receive half and its user.
    #[must_use]
    pub fn wrap_rx(&self, inner: Box<dyn PortRx>) -> Box<dyn PortRx> {
        Box::new(FaultRx::new(inner, self.clone()))
    }

    /// Puts this switch's rules between a user and its transmit half. Who uses rules that keep
    /// datagrams back must call [`PortTx::release`] regularly.
    #[must_use]
    pub fn wrap_tx(&self, inner: Box<dyn PortTx>) -> Box<dyn PortTx> {
        Box::new(FaultTx::new(inner, self.clone()))
    }

    /// Puts rules between a frame link and its user: `received` for what comes, `sent` for what
    /// leaves. Of a frame in parts predicates see the first one. Whoever keeps sent frames back
    /// must call the link regularly, as everybody does who receives.
    #[must_use]
    pub fn wrap_frames(
        inner: Box<dyn FrameLink>,
        received: &Self,
        sent: &Self,
    ) -> Box<dyn FrameLink> {
        Box::new(FaultLink::new(inner, received.clone(), sent.clone()))
    }

    /// Adds a rule; it acts from the next datagram on.
    ///
    /// # Errors
    /// [`TooManyRules`].
    pub fn add(&self, rule: FaultRule) -> Result<RuleId, TooManyRules> {
        let mut rules = self.lock();
        if rules.list.len() == RULES_MAX {
            return Err(TooManyRules);
        }
        rules.next_id += 1;
        let id = RuleId(rules.next_id);
        rules.list.push((id, rule));
        self.apply_due(&mut rules, self.now_ns());
        Ok(id)
    }

    /// Removes a rule; what it holds is let through at once. What it did, if there is such a rule.
    pub fn remove(&self, id: RuleId) -> Option<RuleCounts> {
        let mut rules = self.lock();
        let index = rules.list.iter().position(|(other, _)| *other == id)?;
        let (_, rule) = rules.list.remove(index);
        self.apply_due(&mut rules, self.now_ns());
        Some(rule.tally)
    }

    /// Removes all rules.
    pub fn clear(&self) {
        let mut rules = self.lock();
        rules.list.clear();
        self.apply_due(&mut rules, 0);
    }

    /// What a rule did so far.
    pub fn tally(&self, id: RuleId) -> Option<RuleCounts> {
        let mut rules = self.lock();
        self.apply_due(&mut rules, self.now_ns());
        rules.find(id).map(|rule| rule.tally)
    }

    pub(super) fn is_live(&self) -> bool {
        self.shared.live.load(Ordering::Relaxed)
    }

    pub(super) fn now_ns(&self) -> u64 {
        (self.shared.clock)()
    }

    /// Shows a datagram to the rules.
    pub(super) fn judge(&self, datagram: &[u8], now_ns: u64) -> DatagramFate {
        let mut rules = self.lock();
        let mut verdict = DatagramFate::Pass;
        for (id, rule) in &mut rules.list {
            if rule.take(datagram, now_ns) && verdict == DatagramFate::Pass && rule.hit() {
                verdict = verdict_of(*id, rule, now_ns);
            }
        }
        self.apply_due(&mut rules, now_ns);
        verdict
    }

    /// Whether a rule has taken so many datagrams, or is gone, so that what it holds is free.
    pub(super) fn has_taken(&self, id: RuleId, matched: u64) -> bool {
        self.lock().find(id).is_none_or(|rule| rule.tally.matched >= matched)
    }

    /// A half keeps a datagram of this rule back.
    pub(super) fn note_held(&self, id: RuleId) {
        if let Some(rule) = self.lock().find(id) {
            rule.tally.held += 1;
            rule.tally.done = false;
        }
        self.shared.live.store(true, Ordering::Relaxed);
    }

    /// A held datagram has left.
    pub(super) fn note_released(&self, id: RuleId) {
        let mut rules = self.lock();
        if let Some(rule) = rules.find(id) {
            rule.tally.held -= 1;
        }
        self.apply_due(&mut rules, self.now_ns());
    }

    /// A datagram that should have come later never will.
    pub(super) fn note_overflow(&self, id: RuleId) {
        if let Some(rule) = self.lock().find(id) {
            rule.tally.overflowed += 1;
        }
    }

    fn apply_due(&self, rules: &mut Rules, now_ns: u64) {
        rules.list.iter_mut().for_each(|(_, rule)| rule.apply_due(now_ns));
        let live = rules.list.iter().any(|(_, rule)| !rule.tally.done);
        self.shared.live.store(live, Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, Rules> {
        // A predicate that panicked leaves counts that are at most one off.
        self.shared.rules.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for FaultSwitch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let live = self.is_live();
        f.debug_struct("Switch").field("live", &live).finish_non_exhaustive()
    }
}

impl Rules {
    fn find(&mut self, id: RuleId) -> Option<&mut FaultRule> {
        self.list.iter_mut().find(|(other, _)| *other == id).map(|(_, rule)| rule)
    }
}

fn verdict_of(id: RuleId, rule: &mut FaultRule, now_ns: u64) -> DatagramFate {
    match *rule.effect() {
        FaultEffect::Lose => DatagramFate::Lose,
        FaultEffect::Duplicate { copies } => DatagramFate::Copies(copies, id),
        FaultEffect::Reorder { datagrams } => {
            let matched = rule.tally.matched.saturating_add(datagrams.into());
            DatagramFate::Later(
                ReleaseTime { ns: now_ns.saturating_add(REORDER_NS_MAX), matched },
                id,
            )
        }
        FaultEffect::Delay { ns } => DatagramFate::Later(
            ReleaseTime { ns: now_ns.saturating_add(ns), matched: u64::MAX },
            id,
        ),
        FaultEffect::Truncate { bytes } => DatagramFate::Change(ByteChange::Cut { bytes }),
        FaultEffect::Corrupt { bits, ref bytes } => {
            let bytes = bytes.clone();
            DatagramFate::Change(ByteChange::Flip { seed: rule.draw(), bits, bytes })
        }
    }
}
