//! Messages between the blocks of a graph.

use super::{Graph, GraphError, PortId};
use crate::message::{self, MessageError, MessageSpec};
use crate::port::each_emitter;
use crate::value::ParameterValue;

/// A connection from an emitter to a message; ports are positions among the block's emitters and
/// messages.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct MessageEdge {
    pub(crate) from: PortId,
    pub(crate) to: PortId,
}

impl Graph {
    /// Connects an emitter, `block.emitter`, to a message of another block (or the same),
    /// `block.message`. Several emitters may be connected to one message, and one emitter to
    /// several.
    ///
    /// # Errors
    /// [`GraphError::Message`] for an end that does not exist, with those that exist, or for
    /// different kinds.
    pub fn connect_message(&mut self, from: &str, to: &str) -> Result<(), GraphError> {
        let (from_block, emitter) = split(from)?;
        let (to_block, name) = split(to)?;
        let (source, target) = (self.message_node(from_block)?, self.message_node(to_block)?);
        let mut emitters = Vec::new();
        each_emitter(&mut *self.nodes[source].block, |name, emitter| {
            emitters.push((name.to_owned(), emitter.kind()));
        });
        let Some(port) = emitters.iter().position(|(known, _)| *known == emitter) else {
            let known = emitters.into_iter().map(|(known, _)| known).collect();
            let (block, name) = (from_block.to_owned(), emitter.to_owned());
            return Err(MessageError::UnknownEmitter { block, name, known }.into());
        };
        let (sends, messages) = (emitters[port].1, &self.nodes[target].facts.messages);
        let message = message::position(to_block, messages, name)?;
        let takes = messages[message].kind;
        if !takes.takes(sends) {
            return Err(MessageError::KindsDiffer {
                from: from.to_owned(),
                sends: sends.to_string(),
                to: to.to_owned(),
                takes: takes.to_string(),
            }
            .into());
        }
        let (from, to) = (PortId { node: source, port }, PortId { node: target, port: message });
        self.messages.push(MessageEdge { from, to });
        Ok(())
    }

    /// Returns the messages that a block takes.
    ///
    /// # Errors
    /// [`GraphError::UnknownBlock`].
    pub fn messages(&self, block: &str) -> Result<&[MessageSpec], GraphError> {
        Ok(&self.nodes[self.message_node(block)?].facts.messages)
    }

    /// Reads text that a user typed as the value of a message.
    ///
    /// # Errors
    /// [`GraphError`]: no such block or message (the error lists those that exist), or not such a
    /// value.
    pub fn read_message(
        &self,
        block: &str,
        name: &str,
        text: &str,
    ) -> Result<ParameterValue, GraphError> {
        let messages = self.messages(block)?;
        let wanted = &messages[message::position(block, messages, name)?];
        let value = ParameterValue::from_text(text, wanted.kind);
        Ok(value.ok_or_else(|| message::wrong(block, wanted, text))?)
    }

    fn message_node(&self, block: &str) -> Result<usize, GraphError> {
        self.node_index(block).ok_or_else(|| GraphError::UnknownBlock {
            name: block.to_owned(),
            known: self.block_names().map(str::to_owned).collect(),
        })
    }
}

fn split(text: &str) -> Result<(&str, &str), MessageError> {
    text.split_once('.').ok_or_else(|| MessageError::NoName(text.to_owned()))
}
