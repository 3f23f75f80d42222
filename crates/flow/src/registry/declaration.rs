//! The declaration of a block type, which its effect completes.

use super::parameter::{ITEM, Parameter};
use super::{BlockParameters, BlockType, ParameterValues};
use crate::block::{Block, BlockError};
use std::any::Any;

/// What a block does outside of its graph. A rehearsal (a run that only measures) leaves no trace
/// there, so a type that could leave one has a stand-in: another block of the same ports and
/// messages.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum BlockEffect {
    /// Nothing: its outputs depend on its inputs and parameters only.
    Pure,
    /// Nothing, but a clock and not the graph decides how fast items pass it.
    Paced,
    /// It reads files, and leaves them as they are. A rehearsal reads them too.
    Reads,
    /// It writes files or sends datagrams. A stand-in takes its place in a rehearsal.
    Writes,
    /// It takes part in something that goes on outside: a radio, a network, a converter, which
    /// decides how fast items pass it. A stand-in takes its place in a rehearsal.
    Live,
}

impl BlockEffect {
    /// Returns its name, one word.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Pure => "pure",
            Self::Paced => "paced",
            Self::Reads => "reads",
            Self::Writes => "writes",
            Self::Live => "live",
        }
    }

    /// Whether something other than the graph decides how fast items pass such a block, so that
    /// only CPU time can be tuned.
    #[must_use]
    pub fn sets_rate(self) -> bool {
        matches!(self, Self::Paced | Self::Live)
    }

    /// Whether a stand-in takes the place of such a block in a rehearsal.
    #[must_use]
    pub fn has_stand_in(self) -> bool {
        matches!(self, Self::Writes | Self::Live)
    }
}

/// A type of block without the functions that make blocks. The last step of a declaration gives
/// these, and says by its name what the block does outside of the graph ([`BlockEffect`]):
/// [`pure`](Self::pure), [`paced`](Self::paced), [`reads`](Self::reads), [`writes`](Self::writes)
/// or [`live`](Self::live).
///
/// `#[derive(BlockParameters)]` writes all of this for a struct with `#[block(...)]`, see
/// [`BlockType`]; programs whose types depend on what they find at run time write it themselves.
pub struct BlockDeclaration {
    pub(super) name: &'static str,
    pub(super) summary: &'static str,
    pub(super) parameters: Vec<Parameter>,
    pub(super) example: &'static str,
}

impl BlockDeclaration {
    pub(super) fn new<P: BlockParameters>(name: &'static str, summary: &'static str) -> Self {
        let mut parameters = Vec::new();
        P::declare(&mut parameters);
        Self { name, summary, parameters, example: "" }
    }

    /// Declares the parameter `item`, the type of the items: `u8`, `i8`, `i16`, `sc16` (two 16-bit
    /// integers), `f32` or `cf32` (complex). The first one is the default.
    ///
    /// # Panics
    /// If there are none.
    #[must_use]
    pub fn items(mut self, items: &'static [&'static str]) -> Self {
        let parameter = Parameter::new(ITEM, "type of the items").with_default(items[0]);
        self.parameters.push(Parameter { choices: items, ..parameter });
        self
    }

    /// Sets the values of an example, as in a graph file: `count = 1000`. Every required parameter
    /// needs one; the ports that are listed for the type are those of a block made with them.
    #[must_use]
    pub fn example(mut self, values: &'static str) -> Self {
        self.example = values;
        self
    }

    /// Completes the type of a block that does [nothing outside](BlockEffect::Pure) of the graph.
    #[must_use]
    pub fn pure(self, make: impl BlockFactory) -> BlockType {
        self.complete(BlockEffect::Pure, &[], make, None)
    }

    /// Completes the type of a block whose [clock](BlockEffect::Paced) lets items pass.
    #[must_use]
    pub fn paced(self, make: impl BlockFactory) -> BlockType {
        self.complete(BlockEffect::Paced, &[], make, None)
    }

    /// Completes the type of a block that [reads files](BlockEffect::Reads). `ports` are those of
    /// the example as they are listed, `out: Complex<f32>`, if its files do not exist; empty if the
    /// example can be made.
    #[must_use]
    pub fn reads(self, ports: &'static [&'static str], make: impl BlockFactory) -> BlockType {
        self.complete(BlockEffect::Reads, ports, make, None)
    }

    /// Completes the type of a block that [writes files or sends](BlockEffect::Writes). `stand_in`
    /// makes the block for rehearsals, of the same ports and messages.
    #[must_use]
    pub fn writes(self, stand_in: impl BlockFactory, make: impl BlockFactory) -> BlockType {
        self.complete(BlockEffect::Writes, &[], make, Some(Box::new(stand_in)))
    }

    /// Completes the type of a block that [takes part](BlockEffect::Live) in something outside.
    /// `stand_in` makes the block for rehearsals, of the same ports and messages;
    /// [`RehearsedBlock`](crate::blocks::RehearsedBlock) does for a source.
    #[must_use]
    pub fn live(self, stand_in: impl BlockFactory, make: impl BlockFactory) -> BlockType {
        self.complete(BlockEffect::Live, &[], make, Some(Box::new(stand_in)))
    }

    fn complete(
        self,
        effect: BlockEffect,
        ports: &'static [&'static str],
        make: impl BlockFactory,
        stand_in: Option<Factory>,
    ) -> BlockType {
        BlockType { declared: self, effect, ports, factory: Box::new(make), stand_in }
    }
}

pub(super) type Factory = Box<dyn BlockFactory>;

/// A function that makes a block of its parameters, which are complete and of the declared kinds
/// and ranges. Its error is reported with the block's name.
pub trait BlockFactory:
    Fn(&ParameterValues) -> Result<Box<dyn Block>, BlockError> + Send + Sync + 'static
{
}

impl<F> BlockFactory for F where
    F: Fn(&ParameterValues) -> Result<Box<dyn Block>, BlockError> + Send + Sync + 'static
{
}

/// What a function that makes a block may return: the block, or a result with it.
pub trait MadeBlock {
    /// Returns the block in a box, of which there is one: a boxed block stays in its own.
    ///
    /// # Errors
    /// The function's error.
    fn boxed(self) -> Result<Box<dyn Block>, BlockError>;
}

impl<B: Block + 'static> MadeBlock for B {
    fn boxed(self) -> Result<Box<dyn Block>, BlockError> {
        let mut made = Some(self);
        let any: &mut dyn Any = &mut made;
        let boxed = any.downcast_mut::<Option<Box<dyn Block>>>().and_then(Option::take);
        Ok(match (boxed, made) {
            (None, Some(block)) => Box::new(block),
            (boxed, _) => boxed.expect("a block is there"),
        })
    }
}

impl<B: Block + 'static, E: Into<BlockError>> MadeBlock for Result<B, E> {
    fn boxed(self) -> Result<Box<dyn Block>, BlockError> {
        self.map_err(Into::into)?.boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocks::NullSink;

    #[test]
    fn a_boxed_block_stays_in_its_box() {
        let block: Box<dyn Block> = Box::new(NullSink::<[u64; 8]>::new());
        let address = (&raw const *block).cast::<()>();
        let boxed = Ok::<_, BlockError>(block).boxed().unwrap();
        assert_eq!((&raw const *boxed).cast::<()>(), address);
        assert!(NullSink::<u8>::new().boxed().is_ok());
        let error = Err::<NullSink<u8>, _>("no room").boxed().err().unwrap();
        assert_eq!(error.to_string(), "no room");
    }
}
