//! Lists the files of the page, so that the program contains them.

use std::fmt::Write;
use std::path::PathBuf;
use std::{env, fs, io};

/// Endings of the names of the page's files, and their media types.
const TYPES: [(&str, &str); 5] = [
    ("html", "text/html; charset=utf-8"),
    ("css", "text/css; charset=utf-8"),
    ("js", "text/javascript; charset=utf-8"),
    ("svg", "image/svg+xml"),
    ("png", "image/png"),
];

fn main() -> io::Result<()> {
    let variable = |name: &str| env::var(name).map(PathBuf::from).map_err(io::Error::other);
    let folder = variable("CARGO_MANIFEST_DIR")?.join("page");
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut files: Vec<_> = fs::read_dir(&folder)?.collect::<io::Result<Vec<_>>>()?;
    files.sort_by_key(fs::DirEntry::file_name);
    let mut list = "[".to_owned();
    for path in files.iter().map(fs::DirEntry::path) {
        println!("cargo::rerun-if-changed={}", path.display());
        let extension = path.extension().unwrap_or_default().to_string_lossy().into_owned();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if let Some((_, media)) = TYPES.iter().find(|(ending, _)| *ending == extension) {
            let _ = write!(list, "({name:?}, {media:?}, include_bytes!({path:?}) as &[u8]),");
        }
    }
    list.push(']');
    fs::write(variable("OUT_DIR")?.join("page.rs"), list)
}
