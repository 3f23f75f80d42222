//! Items and their run-time types.

use std::any::TypeId;
use std::fmt;

pub use millstream_ring::Item;

/// The factor that maps a complex sample of 16-bit integers (`sc16`) to floats: 32767 is 1.0, in
/// files, graphs, displays and packets of radios.
pub const SC16_SCALE: f32 = 1.0 / 32767.0;

/// The type of a port's items at run time: two ports connect only if theirs are equal.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ItemType {
    id: TypeId,
    name: &'static str,
    size_bytes: usize,
    align_bytes: usize,
}

impl ItemType {
    /// Returns the run-time type of `T`.
    #[must_use]
    pub fn of<T: Item>() -> Self {
        let (size_bytes, align_bytes) = (size_of::<T>(), align_of::<T>());
        Self { id: TypeId::of::<T>(), name: std::any::type_name::<T>(), size_bytes, align_bytes }
    }

    /// Returns the type itself.
    pub(crate) fn id(&self) -> TypeId {
        self.id
    }

    /// Returns the size of one item in bytes.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        self.size_bytes
    }

    /// Returns the alignment of an item in bytes.
    pub(crate) fn align_bytes(&self) -> usize {
        self.align_bytes
    }
}

/// The name without module paths: `Complex<f32>` rather than `num_complex::Complex<f32>`.
impl fmt::Display for ItemType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_path = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
        let mut rest = self.name;
        while !rest.is_empty() {
            let path = &rest[..rest.find(|c| !is_path(c)).unwrap_or(rest.len())];
            f.write_str(path.rsplit("::").next().unwrap_or(path))?;
            let after = &rest[path.len()..];
            let gap = &after[..after.find(is_path).unwrap_or(after.len())];
            f.write_str(gap)?;
            rest = &after[gap.len()..];
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use num_complex::Complex;

    #[test]
    fn names_are_short() {
        assert_eq!(ItemType::of::<u8>().to_string(), "u8");
        assert_eq!(ItemType::of::<[i16; 2]>().to_string(), "[i16; 2]");
        assert_eq!(ItemType::of::<Complex<f32>>().to_string(), "Complex<f32>");
    }
}
