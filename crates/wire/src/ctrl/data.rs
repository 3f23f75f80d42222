//! The data words of a control packet.

use crate::{Error, Result};

/// Most data words in one control packet.
pub const MAX_DATA_WORDS: usize = 15;

/// Up to fifteen 32-bit data words, stored in place. Derefs to a slice.
#[derive(Clone, Copy)]
pub struct DataWords {
    words: [u32; MAX_DATA_WORDS],
    len: u8,
}

impl DataWords {
    /// No words: what requests to read carry in protocol 2.0.
    pub const NONE: DataWords = DataWords { words: [0; MAX_DATA_WORDS], len: 0 };

    /// Returns one word.
    #[must_use]
    pub const fn one(word: u32) -> DataWords {
        let mut words = [0; MAX_DATA_WORDS];
        words[0] = word;
        DataWords { words, len: 1 }
    }

    /// Copies 1 to 15 words.
    ///
    /// # Errors
    /// [`Error::NoData`] for an empty slice, [`Error::FieldOverflow`] for more than 15.
    pub fn new(data: &[u32]) -> Result<DataWords> {
        if data.is_empty() {
            return Err(Error::NoData);
        }
        let mut words = [0; MAX_DATA_WORDS];
        words.get_mut(..data.len()).ok_or(Error::FieldOverflow)?.copy_from_slice(data);
        Ok(DataWords { words, len: data.len() as u8 })
    }

    /// Returns the first word, the only one of single reads and writes; 0 without words.
    #[must_use]
    pub const fn first(&self) -> u32 {
        self.words[0]
    }

    /// Returns the words.
    #[must_use]
    pub fn as_slice(&self) -> &[u32] {
        &self.words[..usize::from(self.len)]
    }
}

impl Default for DataWords {
    fn default() -> Self {
        DataWords::one(0)
    }
}

impl core::ops::Deref for DataWords {
    type Target = [u32];

    fn deref(&self) -> &[u32] {
        self.as_slice()
    }
}

impl PartialEq for DataWords {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl Eq for DataWords {}

impl core::fmt::Debug for DataWords {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let Some((first, others)) = self.split_first() else { return f.write_str("no data") };
        write!(f, "{first:#x}")?;
        others.iter().try_for_each(|word| write!(f, " {word:#x}"))
    }
}
