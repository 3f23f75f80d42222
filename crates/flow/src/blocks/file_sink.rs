//! Items into a file.

use crate::{Block, BlockError, Context, In, Item, PortVisitor, Work};
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Small slices are gathered to this many bytes.
const BUFFER_BYTES: usize = 256 << 10;

/// Why a file could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}: {source}{}", path.display(), hint(source))]
pub struct FileSinkError {
    /// The file.
    pub path: PathBuf,
    /// Why.
    pub source: io::Error,
}

fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull => "; free some space, or write elsewhere",
        io::ErrorKind::NotFound => "; make its folder first",
        _ => "",
    }
}

/// Writes items into a file as they lie in memory.
///
/// The file gets its name when everything is written: until then it is called `NAME.part`, so
/// a file of that name is always a whole one. Pipes and devices are written directly.
///
/// Ports: `in`.
#[derive(Debug)]
pub struct FileSink<T: Item> {
    /// Items.
    pub input: In<T>,
    path: PathBuf,
    /// Where the bytes go until the end.
    part: PathBuf,
    file: BufWriter<File>,
}

impl<T: Item + bytemuck::NoUninit> FileSink<T> {
    /// Creates the file (or its `.part`).
    ///
    /// # Errors
    /// [`FileSinkError`] when it cannot be created.
    pub fn create(path: &Path) -> Result<Self, FileSinkError> {
        let special = fs::metadata(path).is_ok_and(|data| !data.is_file() && !data.is_dir());
        let part = if special {
            path.to_owned()
        } else {
            let mut name = path.as_os_str().to_owned();
            name.push(".part");
            name.into()
        };
        let file = if path.is_dir() {
            Err(io::ErrorKind::IsADirectory.into())
        } else if special {
            File::options().write(true).open(&part)
        } else {
            File::create(&part)
        };
        let path = path.to_owned();
        match file {
            Ok(file) => {
                let file = BufWriter::with_capacity(BUFFER_BYTES, file);
                Ok(Self { input: In::new(), path, part, file })
            }
            Err(source) => Err(FileSinkError { path, source }),
        }
    }

    fn fail(&self) -> impl Fn(io::Error) -> FileSinkError + use<T> {
        let path = self.path.clone();
        move |source| FileSinkError { path: path.clone(), source }
    }
}

impl<T: Item + bytemuck::NoUninit> Block for FileSink<T> {
    fn ports(&mut self, ports: &mut dyn PortVisitor) {
        ports.input("in", &mut self.input);
    }

    fn work(&mut self, _: &mut Context) -> Result<Work, BlockError> {
        let input = self.input.slice();
        let items = input.len();
        if let Err(source) = self.file.write_all(bytemuck::cast_slice(input)) {
            return Err(self.fail()(source).into());
        }
        self.input.consume(items);
        Ok(Work::Continue)
    }

    fn finish(&mut self) -> Result<(), BlockError> {
        let fail = self.fail();
        self.file.flush().map_err(&fail)?;
        if self.part != self.path {
            fs::rename(&self.part, &self.path).map_err(&fail)?;
        }
        Ok(())
    }
}
