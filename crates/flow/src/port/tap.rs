//! Taps: code that sees the items of an output as they are produced, without a ring of its own.
//!
//! A tap can neither hold up the graph nor change it: no reader is added, no plan and no end of a
//! block depends on it. Without a tap an output pays one comparison for each call.

use crate::item::Item;
use crate::tag::Tag;
use std::fmt;

/// Code that sees the items of one output, on the thread of its block: it must not wait, allocate
/// or lock.
pub trait OutputTap<T: Item>: Send {
    /// Sees a tag that the block puts on an item, before that item is produced. Tags that the
    /// runtime forwards from an input are not among them.
    fn tagged(&mut self, _tag: &Tag) {}

    /// Sees items before any reader; `position` is the [offset](Tag::offset) of the first.
    fn produced(&mut self, position: u64, items: &[T]);
}

/// The place of a tap at an output.
pub(crate) struct TapSlot<T>(Option<Box<dyn OutputTap<T>>>);

impl<T: Item> TapSlot<T> {
    pub(crate) fn new(tap: Box<dyn OutputTap<T>>) -> Self {
        Self(Some(tap))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    #[inline]
    pub(crate) fn get(&mut self) -> Option<&mut dyn OutputTap<T>> {
        match &mut self.0 {
            Some(tap) => Some(&mut **tap),
            None => None,
        }
    }
}

impl<T> Default for TapSlot<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T> fmt::Debug for TapSlot<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "tapped" } else { "free" })
    }
}
