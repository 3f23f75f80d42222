//! Item types by their names in graph files.

/// The item type of a name in graph files: `u8`, `i8`, `i16`, `sc16` (two 16-bit integers), `f32`,
/// `cf32` (complex).
#[macro_export]
macro_rules! item_type {
    (sc16) => {
        [i16; 2]
    };
    (cf32) => {
        $crate::Complex<f32>
    };
    ($name:ident) => {
        $name
    };
}

/// Makes a block for the item type that the parameter `item` names, one of those listed.
///
/// ```
/// use millstream_flow::registry::{BlockType, Registry};
/// use millstream_flow::{blocks::Copy, for_item};
///
/// let mut registry = Registry::new();
/// registry.register(
///     BlockType::declare("again", "Passes items on unchanged.")
///         .choice("item", &["cf32", "f32"], "type of the items")
///         .pure(|parameters| for_item!(parameters, T: f32 | cf32 => Copy::<T>::new())),
/// );
/// assert!(registry.make("again", "item = \"f32\"").is_ok());
/// ```
#[macro_export]
macro_rules! for_item {
    ($parameters:expr, $T:ident: $($name:ident)|+ => $make:expr) => {
        match $parameters.text("item") {
            $(stringify!($name) => {
                type $T = $crate::item_type!($name);
                let block: Box<dyn $crate::Block> = Box::new($make);
                Ok(block)
            })+
            _ => Err($parameters.wrong("item", concat!($(stringify!($name), " "),+).trim_end())),
        }
    };
}
