//! Padding that keeps counters of different owners on different cache lines.

use std::ops::{Deref, DerefMut};

/// A value alone on its cache lines. 128 bytes, because x86 prefetches lines in pairs and
/// some Arm cores have lines of 128.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Padded<T>(pub T);

impl<T> Deref for Padded<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for Padded<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}
