//! Where messages arrive: one inbox for each block, and the mailboxes of all.

use crate::block::Block;
use crate::graph::{Graph, MessageEdge};
use crate::message::{
    self, Envelope, MessageConnection, MessageError, MessageSpec, QUEUE_MESSAGES, Wake,
};
use crate::port::each_emitter;
use crate::value::ParameterValue;
use millstream_ring::{ChangeFlag, Lock, spsc};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The counts of a block's messages. The block's thread writes, any thread reads.
#[derive(Debug, Default)]
pub(super) struct MailCounters {
    pub(super) taken: AtomicU64,
    pub(super) refused: AtomicU64,
    /// The reason of the last refusal. Locked only when a message is refused or the reason is read.
    refusal: Lock<Option<String>>,
}

impl MailCounters {
    fn refuse(&self, reason: String) {
        self.refused.fetch_add(1, Ordering::Relaxed);
        *self.refusal.lock() = Some(reason);
    }

    pub(super) fn refusal(&self) -> Option<String> {
        self.refusal.lock().clone()
    }
}

/// The receiving end of a block, on the block's thread.
#[derive(Default)]
pub(super) struct Inbox {
    messages: Vec<MessageSpec>,
    /// Set when a message was sent since the last poll.
    pending: Arc<ChangeFlag>,
    receivers: Vec<spsc::Receiver<Envelope>>,
    counters: Arc<MailCounters>,
}

impl Inbox {
    /// Whether there is something to [`deliver`](Self::deliver).
    #[inline]
    pub(super) fn has_pending(&self) -> bool {
        // The first is in the cache, the second is not.
        !self.messages.is_empty() && self.pending.is_there()
    }

    /// Delivers the waiting messages to the block.
    #[cold]
    pub(super) fn deliver(&mut self, block: &mut dyn Block) {
        self.pending.take();
        for receiver in &mut self.receivers {
            // Only those that wait now: a block may emit to itself while it takes one.
            for _ in 0..receiver.available() {
                let Some((message, value)) = receiver.pop() else { break };
                let name = self.messages[usize::from(message)].name;
                if let Err(error) = block.message(name, &value) {
                    self.counters.refuse(format!("{name} = {value}: {error}"));
                }
                // Last: whoever sees that it was taken sees a refusal, too.
                self.counters.taken.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Closes the inbox; later sends fail.
    pub(super) fn close(&mut self) {
        self.receivers.clear();
    }
}

/// The inboxes of every block.
pub(super) struct Mailboxes {
    boxes: Vec<Mailbox>,
    wake: Wake,
}

struct Mailbox {
    block: String,
    messages: Vec<MessageSpec>,
    pending: Arc<ChangeFlag>,
    counters: Arc<MailCounters>,
    /// Locked by senders outside the graph, never by the block.
    sender: Lock<Option<spsc::Sender<Envelope>>>,
}

impl Mailboxes {
    /// Opens an inbox for every block of `graph`, in its order, and connects the emitters.
    pub(super) fn open(graph: &mut Graph, wake: Wake) -> (Self, Vec<Inbox>) {
        let (mut boxes, mut inboxes) = (Vec::new(), Vec::new());
        for node in &graph.nodes {
            let messages = node.facts.messages.clone();
            let mut inbox = Inbox { messages: messages.clone(), ..Inbox::default() };
            let sender = (!messages.is_empty()).then(|| {
                let (sender, receiver) = spsc::channel(QUEUE_MESSAGES);
                inbox.receivers.push(receiver);
                sender
            });
            boxes.push(Mailbox {
                block: node.name.clone(),
                messages,
                pending: Arc::clone(&inbox.pending),
                counters: Arc::clone(&inbox.counters),
                sender: Lock::new(sender),
            });
            inboxes.push(inbox);
        }
        for MessageEdge { from, to } in &graph.messages {
            let (sender, receiver) = spsc::channel(QUEUE_MESSAGES);
            let inbox = &mut inboxes[to.node];
            inbox.receivers.push(receiver);
            let link = MessageConnection {
                sender,
                message: to.port as u16,
                kind: inbox.messages[to.port].kind,
                node: to.node,
                pending: Arc::clone(&inbox.pending),
                wake: Arc::clone(&wake),
            };
            let (mut link, mut port) = (Some(link), 0);
            each_emitter(&mut *graph.nodes[from.node].block, |_, emitter| {
                if port == from.port {
                    link.take().into_iter().for_each(|link| emitter.link(link));
                }
                port += 1;
            });
        }
        (Self { boxes, wake }, inboxes)
    }

    /// Returns the counts of a block that takes messages.
    pub(super) fn counters(&self, node: usize) -> Option<&MailCounters> {
        let found = &self.boxes[node];
        (!found.messages.is_empty()).then_some(&*found.counters)
    }

    pub(super) fn send(
        &self,
        block: &str,
        name: &str,
        value: ParameterValue,
    ) -> Result<(), MessageError> {
        let (node, found) = self.find(block)?;
        let message = message::position(block, &found.messages, name)?;
        let wanted = &found.messages[message];
        let text = value.to_string();
        let value =
            value.into_kind(wanted.kind).ok_or_else(|| message::wrong(block, wanted, &text))?;
        found.post((message as u16, value))?;
        (self.wake)(node);
        Ok(())
    }

    fn find(&self, block: &str) -> Result<(usize, &Mailbox), MessageError> {
        let mut boxes = self.boxes.iter().enumerate();
        boxes.find(|(_, found)| found.block == block).ok_or_else(|| {
            let known = self.boxes.iter().map(|known| known.block.clone()).collect();
            MessageError::UnknownBlock { name: block.to_owned(), known }
        })
    }
}

impl Mailbox {
    fn post(&self, envelope: Envelope) -> Result<(), MessageError> {
        let mut sender = self.sender.lock();
        let sender = sender.as_mut().expect("a block that takes messages has a queue for them");
        if sender.push(envelope).is_err() {
            let block = self.block.clone();
            let waiting = QUEUE_MESSAGES;
            return Err(if sender.is_abandoned() {
                MessageError::Finished { block }
            } else {
                MessageError::Full { block, waiting }
            });
        }
        self.pending.tell();
        Ok(())
    }
}
