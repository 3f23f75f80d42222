//! Names of numbered ports.

use std::fmt::Write;
use std::ops::Deref;

/// Longest name and number together, bytes.
const LONGEST: usize = 64;

/// A name and a number, such as `in0`, without heap memory: ports are visited while a graph runs,
/// and nothing is allocated there.
#[derive(Clone, Copy, Debug)]
pub struct NumberedName {
    bytes: [u8; LONGEST],
    length: usize,
}

impl NumberedName {
    /// Appends `number` to `name`.
    ///
    /// # Panics
    /// If that is longer than 64 bytes.
    #[must_use]
    pub fn new(name: &str, number: usize) -> Self {
        let mut text = Self { bytes: [0; LONGEST], length: 0 };
        write!(text, "{name}{number}").expect("a port's name and number have at most 64 bytes");
        text
    }
}

impl Write for NumberedName {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        let end = self.length + text.len();
        let room = self.bytes.get_mut(self.length..end).ok_or(std::fmt::Error)?;
        room.copy_from_slice(text.as_bytes());
        self.length = end;
        Ok(())
    }
}

impl Deref for NumberedName {
    type Target = str;

    fn deref(&self) -> &str {
        std::str::from_utf8(&self.bytes[..self.length]).expect("it was written as text")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_stands_behind_the_name() {
        assert_eq!(&*NumberedName::new("in", 0), "in0");
        assert_eq!(&*NumberedName::new("gerät", 12_345), "gerät12345");
        assert_eq!(NumberedName::new("", usize::MAX).len(), usize::MAX.to_string().len());
    }

    #[test]
    #[should_panic(expected = "at most 64 bytes")]
    fn a_name_that_is_too_long_is_refused() {
        let _ = NumberedName::new(&"a".repeat(64), 1);
    }
}
