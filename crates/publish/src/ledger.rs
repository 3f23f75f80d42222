//! The account of a sink's messages.

use millstream_flow::{Counter, Metric};
use serde::Serialize;
use std::collections::BTreeMap;

/// Why a message was not published.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum DropCause {
    /// The queue was full, although the outlet took messages: they come too fast for it.
    QueueFull,
    /// The queue was full because the broker was away.
    BrokerAway,
    /// The queue was full because there was no way to the receiver, or no connection.
    ReceiverAway,
    /// The queue was full because the file could not be written.
    FileError,
    /// The other side does not take it, or closed the connection on it again and again.
    Refused,
    /// It is longer than the broker or the queue takes.
    TooLarge,
    /// It was not acknowledged before the graph's end.
    AtEnd,
}

impl DropCause {
    /// Every cause, in order of declaration.
    pub const ALL: [Self; 7] = [
        Self::QueueFull,
        Self::BrokerAway,
        Self::ReceiverAway,
        Self::FileError,
        Self::Refused,
        Self::TooLarge,
        Self::AtEnd,
    ];

    /// Returns its name in documents and metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::QueueFull => "queue_full",
            Self::BrokerAway => "broker_away",
            Self::ReceiverAway => "receiver_away",
            Self::FileError => "file_error",
            Self::Refused => "refused",
            Self::TooLarge => "too_large",
            Self::AtEnd => "at_end",
        }
    }
}

/// The counters of a sink, which its block and its courier share.
#[derive(Clone, Debug, Default)]
pub(crate) struct Account {
    pub offered: Counter,
    pub acknowledged: Counter,
    dropped: [Counter; DropCause::ALL.len()],
    pub resent: Counter,
    pub connections: Counter,
}

impl Account {
    pub fn drop(&self, cause: DropCause, messages: u64) {
        self.dropped[cause as usize].add(messages);
    }

    /// Returns the counters in the order in which they are to be read: what is done with a message
    /// is counted after its offer, so these are never more than was offered.
    pub fn metrics(&self) -> Vec<(&'static str, Metric)> {
        let mut list = vec![
            ("acknowledged", Metric::from(&self.acknowledged)),
            ("resent", Metric::from(&self.resent)),
            ("connections", Metric::from(&self.connections)),
        ];
        let causes = DropCause::ALL.iter().zip(&self.dropped);
        list.extend(causes.map(|(cause, counter)| (cause.name(), Metric::from(counter))));
        list.push(("offered", Metric::from(&self.offered)));
        list
    }

    /// Returns the state of the counters, without the outlet's name and error.
    pub fn ledger(&self) -> PublishLedger {
        // What is done with a message is counted after its offer: so never more than was offered.
        let acknowledged = self.acknowledged.get();
        let causes = DropCause::ALL.iter().zip(&self.dropped);
        let dropped: BTreeMap<_, _> =
            causes.map(|(cause, counter)| (cause.name(), counter.get())).collect();
        let offered = self.offered.get();
        let done = acknowledged + dropped.values().sum::<u64>();
        PublishLedger {
            to: String::new(),
            offered,
            acknowledged,
            dropped,
            waiting: offered.saturating_sub(done),
            resent: self.resent.get(),
            connections: self.connections.get(),
            last_error: None,
            balances: offered == done,
        }
    }
}

/// The account of a sink: offered = acknowledged + dropped by cause, and waiting while it runs.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
pub struct PublishLedger {
    /// The kind and address of the outlet.
    pub to: String,
    /// Messages that the graph had to publish.
    pub offered: u64,
    /// Messages that the broker has acknowledged, that are in the file, or that Zenoh has taken.
    pub acknowledged: u64,
    /// Messages that were not published, by cause.
    pub dropped: BTreeMap<&'static str, u64>,
    /// Messages in the queue, or sent and not acknowledged.
    pub waiting: u64,
    /// Messages that were sent again, because a connection ended before their acknowledgement: the
    /// broker may have some of them twice.
    pub resent: u64,
    /// Connections that were made.
    pub connections: u64,
    /// The last error of the outlet.
    pub last_error: Option<String>,
    /// offered = acknowledged + dropped.
    pub balances: bool,
}

impl PublishLedger {
    /// Returns the messages that were not published.
    #[must_use]
    pub fn dropped_total(&self) -> u64 {
        self.dropped.values().sum()
    }

    /// Returns a summary in one line.
    #[must_use]
    pub fn summary(&self) -> String {
        let causes: Vec<_> = self.dropped.iter().filter(|(_, messages)| **messages > 0).collect();
        let causes: Vec<_> =
            causes.iter().map(|(name, number)| format!("{name} {number}")).collect();
        let causes = if causes.is_empty() { "no drop".to_owned() } else { causes.join(", ") };
        let mut text = format!(
            "{} messages offered = {} acknowledged + {} dropped ({causes})",
            self.offered,
            self.acknowledged,
            self.dropped_total()
        );
        if self.waiting > 0 {
            text += &format!(" + {} waiting", self.waiting);
        }
        text += if self.balances { ": balances" } else { ": DOES NOT BALANCE" };
        if self.resent > 0 {
            text += &format!("; {} sent again", self.resent);
        }
        if let Some(error) = &self.last_error {
            text += &format!("; last error: {error}");
        }
        text
    }

    /// Returns the message when it does not balance after the end.
    #[must_use]
    pub fn defect(&self) -> String {
        format!(
            "the ledger of {} does not balance: {}; this is a defect, please report it",
            self.to,
            self.summary()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_are_in_order_of_their_counters() {
        for (index, cause) in DropCause::ALL.into_iter().enumerate() {
            assert_eq!(cause as usize, index);
        }
    }

    #[test]
    fn what_was_offered_is_read_last() {
        let list = Account::default().metrics();
        assert_eq!(list.len(), 4 + DropCause::ALL.len());
        assert_eq!(list.last().unwrap().0, "offered");
    }

    #[test]
    fn a_summary_names_every_cause_that_has_messages() {
        let account = Account::default();
        account.offered.add(10);
        account.acknowledged.add(6);
        account.drop(DropCause::BrokerAway, 3);
        let ledger = account.ledger();
        assert_eq!(
            ledger.summary(),
            "10 messages offered = 6 acknowledged + 3 dropped (broker_away 3) + 1 waiting: DOES \
             NOT BALANCE"
        );
        account.drop(DropCause::AtEnd, 1);
        account.resent.add(2);
        let ledger = PublishLedger { last_error: Some("no route".into()), ..account.ledger() };
        assert_eq!(
            ledger.summary(),
            "10 messages offered = 6 acknowledged + 4 dropped (at_end 1, broker_away 3): \
             balances; 2 sent again; last error: no route"
        );
    }
}
