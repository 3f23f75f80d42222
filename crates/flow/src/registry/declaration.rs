//! The declaration of a block type, which its effect completes.

use super::{BlockType, Factory, OVERWRITE, Parameter, ParameterKind, ParameterValue, Parameters};
use crate::block::{Block, BlockError};

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
/// A function that makes a block gets parameters that are complete and of the declared kinds. Its
/// error is reported with the block's name; [`Parameters::wrong`] makes one that names the
/// parameter.
pub struct BlockDeclaration {
    pub(super) name: String,
    pub(super) summary: String,
    pub(super) parameters: Vec<Parameter>,
    pub(super) example: &'static str,
    pub(super) incidental: Vec<&'static str>,
    pub(super) written_file: Option<&'static str>,
}

impl BlockDeclaration {
    pub(super) fn new(name: &str, summary: &str) -> Self {
        let (name, summary) = (name.to_owned(), summary.to_owned());
        Self {
            name,
            summary,
            parameters: Vec::new(),
            example: "",
            incidental: Vec::new(),
            written_file: None,
        }
    }

    /// Declares a parameter that must be given.
    #[must_use]
    pub fn required(mut self, name: &'static str, kind: ParameterKind, help: &'static str) -> Self {
        self.parameters.push(Parameter { name, kind, help, default: None, choices: &[] });
        self
    }

    /// Declares a parameter with a default, which also sets its kind.
    #[must_use]
    pub fn optional(
        mut self,
        name: &'static str,
        default: impl Into<ParameterValue>,
        help: &'static str,
    ) -> Self {
        let default = default.into();
        let (kind, default) = (default.kind(), Some(default));
        self.parameters.push(Parameter { name, kind, help, default, choices: &[] });
        self
    }

    /// Declares the required parameter `name` with the file that the block writes, `-` for standard
    /// output, and the parameter `overwrite`: whether an old file of that name may be replaced.
    /// [`GraphFile::overwriting`](crate::GraphFile::overwriting) sets that for all blocks.
    #[must_use]
    pub fn writes_file(self, name: &'static str, help: &'static str) -> Self {
        self.required(name, ParameterKind::Text, help).written(name)
    }

    /// As [`writes_file`](Self::writes_file), of a block that writes one only if it is named.
    #[must_use]
    pub fn may_write_file(self, name: &'static str, help: &'static str) -> Self {
        self.optional(name, "", help).written(name)
    }

    fn written(mut self, name: &'static str) -> Self {
        self.written_file = Some(name);
        self.optional(OVERWRITE, false, "whether the file may replace an old one of its name")
            .incidental(name)
            .incidental(OVERWRITE)
    }

    /// Declares a text that must be one of `choices`; the first is the default.
    ///
    /// # Panics
    /// If there are no choices.
    #[must_use]
    pub fn choice(
        mut self,
        name: &'static str,
        choices: &'static [&'static str],
        help: &'static str,
    ) -> Self {
        let default = Some(ParameterValue::from(choices[0]));
        self.parameters.push(Parameter { name, kind: ParameterKind::Text, help, default, choices });
        self
    }

    /// Sets the values of an example, as in a graph file: `count = 1000`. Every required parameter
    /// needs one; the ports that are listed for the type are those of a block made with them.
    #[must_use]
    pub fn example(mut self, values: &'static str) -> Self {
        self.example = values;
        self
    }

    /// Declares that a parameter does not change the cost of an item, so graphs that differ only in
    /// it share their tuned plans: the name of a file, an address, the length of a run.
    #[must_use]
    pub fn incidental(mut self, name: &'static str) -> Self {
        self.incidental.push(name);
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
    /// makes the block for rehearsals, of the same ports and messages;
    /// [`discard`](super::discard) does for a sink.
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

/// A function that makes a block of its parameters.
pub trait BlockFactory:
    Fn(&Parameters) -> Result<Box<dyn Block>, BlockError> + Send + Sync + 'static
{
}

impl<F> BlockFactory for F where
    F: Fn(&Parameters) -> Result<Box<dyn Block>, BlockError> + Send + Sync + 'static
{
}
