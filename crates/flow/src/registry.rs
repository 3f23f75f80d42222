//! Block types for graph files, by name, with their declared parameters.

mod declaration;
mod field;
mod parameter;
mod range;

pub use crate::value::{ParameterKind, ParameterValue, typed_number};
pub use declaration::{BlockDeclaration, BlockEffect, BlockFactory, MadeBlock};
pub(crate) use field::OVERWRITE;
pub use field::{
    BlockParameters, ParameterChoice, ParameterField, ParameterValues, RecordingPart, WrittenFile,
};
#[doc(hidden)]
pub use inventory::submit;
pub use millstream_derive::BlockParameters;
pub use parameter::{Parameter, wrong};
pub use range::ParameterRange;

use crate::block::{Block, BlockError};
use declaration::Factory;
use std::any::{Any, TypeId};
use std::collections::BTreeMap;

/// The function of a type that makes a block.
pub(crate) type Make = fn(&BlockType, &ParameterValues) -> Result<Box<dyn Block>, BlockError>;

/// A type of block: its name, purpose, parameters, effect and factory.
///
/// A struct of [parameters](BlockParameters) with `#[block(...)]` is a type of block. The attribute
/// has the name, the effect ([`BlockEffect`]) and the rest of this table; the first paragraph of
/// the struct's documentation is the purpose. The derived code calls `make`, a function of the
/// struct that returns a block, or a result with it:
///
/// ```
/// use millstream_flow::registry::{BlockParameters, Registry};
/// use millstream_flow::{BlockError, blocks::Throttle};
///
/// /// Lets a sample pass now and then.
/// #[derive(BlockParameters)]
/// #[block(every_ms, paced, example = "period_ms = 20")]
/// struct EveryMs {
///     /// time between two of them
///     #[parameter(above = 0)]
///     period_ms: f64,
/// }
///
/// impl EveryMs {
///     fn make(self) -> Result<Throttle<f32>, BlockError> {
///         Ok(Throttle::new(1e3 / self.period_ms)?)
///     }
/// }
///
/// let mut registry = Registry::new();
/// registry.register_crate(module_path!());
/// assert!(registry.make("every_ms", "period_ms = 0.5").is_ok());
/// let error = registry.make("every_ms", "period_ms = -1").err().unwrap().to_string();
/// assert!(error.ends_with("period_ms = `-1`: expected more than 0"), "{error}");
/// ```
///
/// | in `#[block(...)]` | meaning |
/// | --- | --- |
/// | `NAME` | the name in graph files |
/// | `pure`, `paced` | the effect |
/// | `reads`, `reads("out: f32")` | the effect; the ports of an example whose files do not exist |
/// | `writes`, `live` | the effect; a function `rehearse` makes the stand-in for rehearsals |
/// | `writes(discard)` | as `writes`, with a stand-in that discards its items |
/// | `items(cf32, f32)` | a parameter `item`; `make` and `rehearse` are generic over that type |
/// | `example = "count = 1"` | values of an example, a line each, as in a graph file |
/// | `with = T` | state that types [share](Registry::shared): `make` and `rehearse` get a `&T` |
pub struct BlockType {
    declared: BlockDeclaration,
    effect: BlockEffect,
    ports: &'static [&'static str],
    factory: Factory,
    /// `Some` for each effect that has one.
    stand_in: Option<Factory>,
}

impl BlockType {
    /// Begins the declaration of a type called `name`; `summary` is one sentence.
    #[must_use]
    pub fn declare<P: BlockParameters>(
        name: &'static str,
        summary: &'static str,
    ) -> BlockDeclaration {
        BlockDeclaration::new::<P>(name, summary)
    }

    /// Returns the name in graph files.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.declared.name
    }

    /// Returns the parameter with the file that such a block writes.
    #[must_use]
    pub fn written_file(&self) -> Option<&'static str> {
        self.parameters().iter().find(|one| one.written).map(|one| one.name)
    }

    /// Returns the purpose of the type, one sentence.
    #[must_use]
    pub fn summary(&self) -> &'static str {
        self.declared.summary
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
        self.parameters().iter().any(|one| one.name == name && one.incidental)
    }

    /// Makes the block for a rehearsal: the stand-in if there is one.
    pub(crate) fn make_for_rehearsal(
        &self,
        values: &ParameterValues,
    ) -> Result<Box<dyn Block>, BlockError> {
        self.stand_in.as_ref().unwrap_or(&self.factory)(values)
    }

    pub(crate) fn make(&self, values: &ParameterValues) -> Result<Box<dyn Block>, BlockError> {
        (self.factory)(values)
    }
}

/// A type that `#[block(...)]` declares. The linker collects them, so that none is forgotten.
#[doc(hidden)]
pub struct DeclaredType {
    /// The module of the declaration.
    pub module: &'static str,
    /// Makes the type.
    pub make: fn(&mut Registry) -> BlockType,
}

inventory::collect!(DeclaredType);

/// Returns the first part of a module's path.
fn crate_of(module: &str) -> &str {
    module.split_once("::").map_or(module, |(first, _)| first)
}

/// The block types that graph files may name.
#[derive(Default)]
pub struct Registry {
    types: BTreeMap<&'static str, BlockType>,
    shared: BTreeMap<TypeId, Box<dyn Any + Send + Sync>>,
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
        registry.register_crate(module_path!());
        registry
    }

    /// Adds the types that a crate declares by `#[block(...)]`, in any of its modules: `module` is
    /// the path of one, that is `module_path!()`.
    ///
    /// # Panics
    /// As [`register`](Self::register).
    pub fn register_crate(&mut self, module: &str) {
        for declared in inventory::iter::<DeclaredType> {
            if crate_of(declared.module) == crate_of(module) {
                let block_type = (declared.make)(self);
                self.register(block_type);
            }
        }
    }

    /// Adds a type.
    ///
    /// # Panics
    /// If the name is taken: a mistake in a program, not in a file.
    pub fn register(&mut self, block_type: BlockType) {
        let name = block_type.name();
        let taken = self.types.insert(name, block_type).is_some();
        assert!(!taken, "two block types are called {name}");
    }

    /// Returns the state that the types of this registry share, of which there is one for each Rust
    /// type: a clone of it, so `T` is a handle.
    #[must_use]
    pub fn shared<T: Clone + Default + Send + Sync + 'static>(&mut self) -> T {
        let shared = self.shared.entry(TypeId::of::<T>());
        let shared: &dyn Any = &**shared.or_insert_with(|| Box::new(T::default()));
        shared.downcast_ref::<T>().cloned().unwrap_or_default()
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
