//! Block types for graph files, by name, with their declared parameters.

mod builtin;
mod items;
mod parameter;

pub use builtin::part_of;
pub use parameter::{Parameter, ParameterKind, ParameterValue, Parameters, typed_number};

use crate::block::{Block, BlockError};
use crate::file::{GraphFile, GraphFileError};
use std::collections::BTreeMap;

type Factory = Box<dyn Fn(&Parameters) -> Result<Box<dyn Block>, BlockError> + Send + Sync>;

/// A type of block: its name, purpose, parameters and factory.
///
/// ```
/// use millstream_flow::registry::{BlockType, ParameterKind, Registry};
/// use millstream_flow::blocks::Throttle;
///
/// let mut registry = Registry::builtin();
/// registry.register(
///     BlockType::new("every_ms", "Lets a sample pass now and then.")
///         .required("period_ms", ParameterKind::Number, "time between two of them")
///         .factory(|parameters| {
///             let rate_hz = 1e3 / parameters.number("period_ms");
///             Ok(Box::new(Throttle::<f32>::new(rate_hz)?))
///         }),
/// );
/// assert!(registry.get("every_ms").is_some());
/// ```
pub struct BlockType {
    name: String,
    summary: String,
    parameters: Vec<Parameter>,
    example: &'static str,
    ports: &'static [&'static str],
    factory: Option<Factory>,
    rehearsal: Option<Factory>,
    incidental: Vec<&'static str>,
    is_paced: bool,
    writes: Option<&'static str>,
}

/// The parameter of blocks that write a file, see [`BlockType::writes_file`].
pub(crate) const OVERWRITE: &str = "overwrite";

impl BlockType {
    /// Makes a type called `name`; `summary` is one sentence.
    #[must_use]
    pub fn new(name: &str, summary: &str) -> Self {
        let (name, summary) = (name.to_owned(), summary.to_owned());
        Self {
            name,
            summary,
            parameters: Vec::new(),
            example: "",
            ports: &[],
            factory: None,
            rehearsal: None,
            incidental: Vec::new(),
            is_paced: false,
            writes: None,
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
    /// [`GraphFile::overwriting`] sets that for all blocks.
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
        self.writes = Some(name);
        self.optional(OVERWRITE, false, "whether the file may replace an old one of its name")
            .incidental(name)
            .incidental(OVERWRITE)
    }

    /// Returns the parameter with the file that such a block writes.
    #[must_use]
    pub fn written_file(&self) -> Option<&'static str> {
        self.writes
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

    /// Declares that making a block needs something outside of this program (a file, a device), and
    /// its ports as they are listed: `out: Complex<f32>`. Such examples are not made.
    #[must_use]
    pub fn outside(mut self, ports: &'static [&'static str]) -> Self {
        self.ports = ports;
        self
    }

    /// Sets the function that makes a block. The parameters are complete and of the declared kinds.
    /// An error is reported with the block's name; [`Parameters::wrong`] makes one that names the
    /// parameter.
    #[must_use]
    pub fn factory(
        mut self,
        make: impl Fn(&Parameters) -> Result<Box<dyn Block>, BlockError> + Send + Sync + 'static,
    ) -> Self {
        self.factory = Some(Box::new(make));
        self
    }

    /// Sets the function that makes a block for a rehearsal: a run that only measures. The block
    /// costs about as much as the real one, and has no outside effect: no file, no datagram, no
    /// radio signal.
    #[must_use]
    pub fn rehearsal(
        mut self,
        make: impl Fn(&Parameters) -> Result<Box<dyn Block>, BlockError> + Send + Sync + 'static,
    ) -> Self {
        self.rehearsal = Some(Box::new(make));
        self
    }

    /// Declares that a parameter does not change the cost of an item, so graphs that differ only in
    /// it share their tuned plans: the name of a file, an address, the length of a run.
    #[must_use]
    pub fn incidental(mut self, name: &'static str) -> Self {
        self.incidental.push(name);
        self
    }

    /// Declares that the rate of items is not the graph's choice but that of a radio's clock, a
    /// network or a throttle. Only CPU time can be tuned then.
    #[must_use]
    pub fn paced(mut self) -> Self {
        self.is_paced = true;
        self
    }

    /// Whether such a block sets the rate of items.
    #[must_use]
    pub fn is_paced(&self) -> bool {
        self.is_paced
    }

    /// Returns the name in graph files.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the purpose of the type, one sentence.
    #[must_use]
    pub fn summary(&self) -> &str {
        &self.summary
    }

    /// Returns the declared parameters.
    #[must_use]
    pub fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    /// Returns the values of its example, see [`example`](Self::example).
    #[must_use]
    pub fn example_values(&self) -> &'static str {
        self.example
    }

    /// Returns the ports of a type whose example cannot be made, see [`outside`](Self::outside).
    #[must_use]
    pub fn outside_ports(&self) -> Option<&'static [&'static str]> {
        Some(self.ports).filter(|ports| !ports.is_empty())
    }

    /// Whether a rehearsal replaces the block.
    #[must_use]
    pub fn has_rehearsal(&self) -> bool {
        self.rehearsal.is_some()
    }

    pub(crate) fn is_incidental(&self, name: &str) -> bool {
        self.incidental.contains(&name)
    }

    /// Makes the block for a rehearsal: the usual one unless there is a replacement.
    pub(crate) fn make_for_rehearsal(
        &self,
        parameters: &Parameters,
    ) -> Result<Box<dyn Block>, BlockError> {
        match &self.rehearsal {
            Some(make) => make(parameters),
            None => self.make(parameters),
        }
    }

    pub(crate) fn make(&self, parameters: &Parameters) -> Result<Box<dyn Block>, BlockError> {
        // `register` refuses a type without factory.
        self.factory.as_ref().expect("a registered type has a factory")(parameters)
    }
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
    /// If the name is taken or the type has no factory: mistakes in a program, not in a file.
    pub fn register(&mut self, block_type: BlockType) {
        assert!(block_type.factory.is_some(), "block type {} has no factory", block_type.name);
        let name = block_type.name.clone();
        let taken = self.types.insert(name.clone(), block_type).is_some();
        assert!(!taken, "two block types are called {name}");
    }

    /// Returns the type of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&BlockType> {
        self.types.get(name)
    }

    /// Makes the block of a type's [`example`](BlockType::example).
    ///
    /// # Errors
    /// [`GraphFileError`] for an unknown type, and for an error of the factory.
    pub fn make_example(&self, name: &str) -> Result<Box<dyn Block>, GraphFileError> {
        let values = self.get(name).map_or("", BlockType::example_values);
        self.make(name, values)
    }

    /// Makes a block of type `name` with `values`, as a graph file has them under `[[block]]`.
    ///
    /// # Errors
    /// [`GraphFileError`], as for a graph file.
    pub fn make(&self, name: &str, values: &str) -> Result<Box<dyn Block>, GraphFileError> {
        let text = format!("[[block]]\nname = \"block\"\ntype = \"{name}\"\n{values}");
        GraphFile::parse("example", &text)?.make_only_block(self)
    }

    /// Returns every type, by name.
    pub fn types(&self) -> impl Iterator<Item = &BlockType> {
        self.types.values()
    }
}
