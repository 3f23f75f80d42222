//! The rules of one direction, shared between their controller and the wrapped halves.
//!
//! A lock protects the rules. While a rule can act or delays something, the lock is taken several
//! times for each datagram. Only faults have that cost: a link without rules is not wrapped, and
//! one whose rules are done reads one flag.

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

/// The most rules of one switch, including those that are done.
pub const RULES_MAX: usize = 64;

/// The identifier of a rule of one switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RuleId(u64);

/// The error of a switch with [`RULES_MAX`] rules already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("there are already {RULES_MAX} faults: remove some first")]
pub struct TooManyRules;

/// The rules of one direction. Clones share them; any number of halves may be wrapped.
///
/// Every rule counts every datagram, in the order of adding; the first that selects it acts.
#[derive(Clone)]
pub struct FaultSwitch {
    shared: Arc<Shared>,
}

struct Shared {
    /// Whether any rule can act or delays something.
    live: AtomicBool,
    rules: Mutex<Rules>,
    clock: Box<dyn Fn() -> u64 + Send + Sync>,
}

#[derive(Default)]
struct Rules {
    list: Vec<(RuleId, FaultRule)>,
    next_id: u64,
}

/// The action of a half for a datagram.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum DatagramFate {
    Pass,
    Lose,
    /// It passes, and this many copies follow it.
    Copies(u32, RuleId),
    Later(ReleaseTime, RuleId),
    Change(ByteChange),
}

impl FaultSwitch {
    /// Creates a switch without rules. `clock` returns nanoseconds that never decrease; it is
    /// called only while a rule can act.
    pub fn new(clock: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        let live = AtomicBool::new(false);
        let shared = Shared { live, rules: Mutex::default(), clock: Box::new(clock) };
        Self { shared: Arc::new(shared) }
    }

    /// Inserts this switch's rules between a receive half and its user.
    #[must_use]
    pub fn wrap_rx(&self, inner: Box<dyn PortRx>) -> Box<dyn PortRx> {
        Box::new(FaultRx::new(inner, self.clone()))
    }

    /// Inserts this switch's rules between a user and its transmit half. With rules that delay
    /// datagrams the user must call [`PortTx::release`] regularly.
    #[must_use]
    pub fn wrap_tx(&self, inner: Box<dyn PortTx>) -> Box<dyn PortTx> {
        Box::new(FaultTx::new(inner, self.clone()))
    }

    /// Inserts rules between a frame link and its user: `received` for received frames, `sent` for
    /// sent ones. Of a frame in parts predicates get the first part. With rules that delay sent
    /// frames the user must call the link regularly, as every receiving user does.
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

    /// Removes a rule and releases its delayed datagrams at once. Returns its counts, if the rule
    /// exists.
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

    /// Returns the counts of a rule.
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

    /// Applies the rules to a datagram.
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

    /// Whether a rule has taken `matches` datagrams, or was removed, so that its delayed ones are
    /// free.
    pub(super) fn has_taken(&self, id: RuleId, matched: u64) -> bool {
        self.lock().find(id).is_none_or(|rule| rule.tally.matched >= matched)
    }

    /// Counts a datagram delayed for this rule.
    pub(super) fn note_held(&self, id: RuleId) {
        if let Some(rule) = self.lock().find(id) {
            rule.tally.held += 1;
            rule.tally.done = false;
        }
        self.shared.live.store(true, Ordering::Relaxed);
    }

    /// Counts a released datagram.
    pub(super) fn note_released(&self, id: RuleId) {
        let mut rules = self.lock();
        if let Some(rule) = rules.find(id) {
            rule.tally.held -= 1;
        }
        self.apply_due(&mut rules, self.now_ns());
    }

    /// Counts a delayed datagram that was lost.
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
        // A predicate that panicked leaves counts that are at most one too high or low.
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
