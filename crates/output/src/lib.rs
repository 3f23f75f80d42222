//! The files that a program writes.
//!
//! [`OutputFile`] opens what a name *is*. A regular file is written as `NAME.part` and gets its
//! name when all of it is on the disk: a file `NAME` is always complete, even after a power
//! failure. What a crash left as `NAME.part` is kept as `NAME.part.1`, and so on. A symbolic link
//! is followed. A device, a FIFO or an open descriptor (`-`, `/dev/stdout`, `/dev/fd/5`) is written
//! into and never replaced.
//!
//! ```
//! use millstream_output::{Existing, OutputFile};
//! use std::io::Write;
//!
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = folder.path().join("levels.csv");
//! let mut file = OutputFile::create(&path, Existing::Refuse)?;
//! file.write_all(b"1,2,3\n")?;
//! file.complete()?;
//! assert!(OutputFile::create(&path, Existing::Refuse).is_err(), "it is not overwritten");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod direct;
mod error;
mod file;
mod part;
mod place;
mod step;
mod whole;

pub use direct::{BLOCK_BYTES, DirectWriter, WRITE_BYTES_MIN};
pub use error::OutputError;
pub use file::OutputFile;
pub use part::{part_of, take_set_aside, whole_of};
pub use place::{check, is_in_use, is_regular, names_standard_output, open_input};
pub use step::name_whole;
pub use whole::{store_whole, update_whole, write_whole};

/// What becomes of a regular file that has the name already. An empty one is always replaced.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Existing {
    /// It stays, and creating the new one is an error.
    #[default]
    Refuse,
    /// The new one takes its place, mode and owner when it is complete.
    Replace,
}

impl Existing {
    /// [`Replace`](Self::Replace) if `overwrite`, the value of an option `--force`.
    #[must_use]
    pub fn replace_if(overwrite: bool) -> Self {
        if overwrite { Self::Replace } else { Self::Refuse }
    }
}
