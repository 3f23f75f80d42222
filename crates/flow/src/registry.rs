//! Block types for graph files, by name, with their declared parameters.

mod builtin;
mod declaration;
mod items;
mod parameter;

pub use crate::value::{ParameterKind, ParameterValue, typed_number};
pub use builtin::part_of;
pub use declaration::{BlockDeclaration, BlockEffect, BlockFactory};
pub use parameter::{Parameter, Parameters};

use crate::block::{Block, BlockError};
use crate::blocks::NullSink;
use crate::for_item;
use std::collections::BTreeMap;

type Factory = Box<dyn Fn(&Parameters) -> Result<Box<dyn Block>, BlockError> + Send + Sync>;

/// The function of a type that makes a block.
pub(crate) type Make = fn(&BlockType, &Parameters) -> Result<Box<dyn Block>, BlockError>;

/// A type of block: its name, purpose, parameters, effect and factory.
///
/// ```
/// use millstream_flow::registry::{BlockType, ParameterKind, Registry};
/// use millstream_flow::blocks::Throttle;
///
/// let mut registry = Registry::builtin();
/// registry.register(
///     BlockType::declare("every_ms", "Lets a sample pass now and then.")
///         .required("period_ms", ParameterKind::Number, "time between two of them")
///         .pure(|parameters| {
///             let rate_hz = 1e3 / parameters.number("period_ms");
///             Ok(Box::new(Throttle::<f32>::new(rate_hz)?))
///         }),
/// );
/// assert!(registry.get("every_ms").is_some());
/// ```
pub struct BlockType {
    declared: BlockDeclaration,
    effect: BlockEffect,
    ports: &'static [&'static str],
    factory: Factory,
    /// `Some` for each effect that has one.
    stand_in: Option<Factory>,
}

/// The parameter of blocks that write a file, see [`BlockDeclaration::writes_file`].
pub(crate) const OVERWRITE: &str = "overwrite";

impl BlockType {
    /// Begins the declaration of a type called `name`; `summary` is one sentence.
    #[must_use]
    pub fn declare(name: &str, summary: &str) -> BlockDeclaration {
        BlockDeclaration::new(name, summary)
    }

    /// Returns the name in graph files.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.declared.name
    }

    /// Returns the parameter with the file that such a block writes.
    #[must_use]
    pub fn written_file(&self) -> Option<&'static str> {
        self.declared.written_file
    }

    /// Returns the purpose of the type, one sentence.
    #[must_use]
    pub fn summary(&self) -> &str {
        &self.declared.summary
    }

    /// Returns the declared parameters.
    #[must_use]
    pub fn parameters(&self) -> &[Parameter] {
        &self.declared.parameters
    }

    /// Returns the values of its example, see
    /// [`example`](BlockDeclaration::example).
    #[must_use]
    pub fn example_values(&self) -> &'static str {
        self.declared.example
    }

    /// Returns the ports of a type whose example cannot be made, see
    /// [`reads`](BlockDeclaration::reads).
    #[must_use]
    pub fn outside_ports(&self) -> Option<&'static [&'static str]> {
        Some(self.ports).filter(|ports| !ports.is_empty())
    }

    /// Returns what its blocks do outside of their graph.
    #[must_use]
    pub fn effect(&self) -> BlockEffect {
        self.effect
    }

    /// Whether a parameter does not change the cost of an item.
    #[must_use]
    pub fn is_incidental(&self, name: &str) -> bool {
        self.declared.incidental.contains(&name)
    }

    /// Makes the block for a rehearsal: the stand-in if there is one.
    pub(crate) fn make_for_rehearsal(
        &self,
        parameters: &Parameters,
    ) -> Result<Box<dyn Block>, BlockError> {
        self.stand_in.as_ref().unwrap_or(&self.factory)(parameters)
    }

    pub(crate) fn make(&self, parameters: &Parameters) -> Result<Box<dyn Block>, BlockError> {
        (self.factory)(parameters)
    }
}

/// Makes a sink that discards its items: the stand-in of a sink with one input `in` and no
/// messages. Its items are those of the parameter `item`.
///
/// # Errors
/// `item` names none of `u8`, `i8`, `i16`, `sc16`, `f32` and `cf32`.
pub fn discard(parameters: &Parameters) -> Result<Box<dyn Block>, BlockError> {
    for_item!(parameters, T: u8 | i8 | i16 | sc16 | f32 | cf32 => NullSink::<T>::new())
}

/// The block types that graph files may name.
#[derive(Default)]
pub struct Registry {
    types: BTreeMap<String, BlockType>,
}

impl Registry {
    /// Makes a registry without types.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes a registry of the types in [`blocks`](crate::blocks).
    #[must_use]
    pub fn builtin() -> Self {
        let mut registry = Self::new();
        builtin::register(&mut registry);
        registry
    }

    /// Adds a type.
    ///
    /// # Panics
    /// If the name is taken: a mistake in a program, not in a file.
    pub fn register(&mut self, block_type: BlockType) {
        let name = block_type.declared.name.clone();
        let taken = self.types.insert(name.clone(), block_type).is_some();
        assert!(!taken, "two block types are called {name}");
    }

    /// Returns the type of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&BlockType> {
        self.types.get(name)
    }

    /// Returns every type, by name.
    pub fn types(&self) -> impl Iterator<Item = &BlockType> {
        self.types.values()
    }
}
