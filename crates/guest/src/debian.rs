//! Debian packages: found beside others, fetched with `apt-get`, and unpacked.

use crate::error::{Error, at};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns a field of a package's description.
pub(crate) fn field(package: &Path, name: &str) -> Result<String, Error> {
    let mut command = Command::new("dpkg-deb");
    let bytes = output(command.arg("--field").arg(package).arg(name), "dpkg")?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns the file of a package that `package` depends on: from the same folder, or fetched.
pub(crate) fn needed(package: &Path, name: &str, cache: &Path) -> Result<PathBuf, Error> {
    let beside = package.parent().and_then(|folder| file_of(name, folder));
    // For the same processor, which may be another than that of this machine.
    let architecture = field(package, "Architecture").unwrap_or_default();
    let wanted = match architecture.trim() {
        "" | "all" => name.to_owned(),
        architecture => format!("{name}:{architecture}"),
    };
    beside.map_or_else(|| fetch(&wanted, cache), Ok).map_err(|error| match error {
        Error::NoSuchKernel { name, said } => {
            let said = format!("{said}; {} depends on it", package.display());
            Error::NoSuchKernel { name, said }
        }
        other => other,
    })
}

/// Finds the file of a package in a folder; an architecture and a version may follow the name
/// (`NAME:arm64=6.1-1`).
fn file_of(name: &str, folder: &Path) -> Option<PathBuf> {
    let (name, version) = match name.split_once('=') {
        Some((name, version)) => (name, format!("{version}_")),
        None => (name, String::new()),
    };
    let (name, end) = match name.split_once(':') {
        Some((name, architecture)) => (name, format!("_{architecture}.deb")),
        None => (name, ".deb".to_owned()),
    };
    // apt-get writes the colon of a version's epoch as %3a.
    let prefix = format!("{name}_{}", version.replace(':', "%3a"));
    let entries = std::fs::read_dir(folder).ok()?;
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let named =
        |path: &PathBuf| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let fitting = paths.filter(|path| {
        let file = named(path);
        file.starts_with(&prefix) && file.ends_with(&end)
    });
    // Of several versions the newest, whatever the order of the folder.
    fitting.reduce(|one, other| if is_newer(&named(&other), &named(&one)) { other } else { one })
}

/// Whether the first of two files of a package has the newer version (deb-version(7)).
fn is_newer(one: &str, other: &str) -> bool {
    let version = |file: &str| file.split('_').nth(1).unwrap_or_default().replace("%3a", ":");
    let mut command = Command::new("dpkg");
    command.args(["--compare-versions", &version(one), "gt", &version(other)]);
    command.status().map_or(one > other, |status| status.success())
}

/// Downloads a package's file into `cache` with `apt-get`.
pub(crate) fn fetch(name: &str, cache: &Path) -> Result<PathBuf, Error> {
    let directory = cache.join("packages");
    std::fs::create_dir_all(&directory).map_err(at(&directory))?;
    let find = || file_of(name, &directory);
    if let Some(path) = find() {
        return Ok(path);
    }
    let mut command = Command::new("apt-get");
    command.args(["download", "-q", name]).current_dir(&directory);
    let unknown = |said| Error::NoSuchKernel { name: name.to_owned(), said };
    output(&mut command, "apt").map_err(|error| match error {
        Error::Failed { said, .. } => unknown(said),
        other => other,
    })?;
    find().ok_or_else(|| unknown("nothing, and it fetched no file".to_owned()))
}

/// Unpacks the files of a package that match `pattern`, once.
pub(crate) fn unpack(package: &Path, directory: &Path, pattern: &str) -> Result<(), Error> {
    let mark = directory.join(format!(".unpacked{}", pattern.replace(['/', '*', '.'], "-")));
    if mark.exists() {
        return Ok(());
    }
    std::fs::create_dir_all(directory).map_err(at(directory))?;
    let script = "dpkg-deb --fsys-tarfile \"$1\" | tar -x -C \"$2\" --wildcards \"$3\"";
    let mut command = Command::new("bash");
    command.args(["-o", "pipefail", "-c", script, "unpack"]);
    command.arg(package).arg(directory).arg(pattern);
    output(&mut command, "dpkg")?;
    std::fs::write(&mark, "").map_err(at(&mark))
}

/// Returns the output of a program that must succeed.
pub(crate) fn output(command: &mut Command, package: &'static str) -> Result<Vec<u8>, Error> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = match command.output() {
        Ok(output) => output,
        Err(source) => return Err(Error::Missing { program, package, source }),
    };
    if output.status.success() {
        return Ok(output.stdout);
    }
    let text = String::from_utf8_lossy(&output.stderr);
    let said = text.trim().lines().last().unwrap_or("it gave no reason").to_owned();
    Err(Error::Failed { program, said })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_an_architecture_finds_the_file_of_that_one() {
        let folder = tempfile::tempdir().unwrap();
        for architecture in ["amd64", "arm64"] {
            let file = format!("linux-image-9_9.1-1_{architecture}.deb");
            std::fs::write(folder.path().join(file), "").unwrap();
        }
        let found = |name: &str| file_of(name, folder.path());
        for architecture in ["amd64", "arm64"] {
            let file = found(&format!("linux-image-9:{architecture}")).unwrap();
            assert!(file.ends_with(format!("linux-image-9_9.1-1_{architecture}.deb")), "{file:?}");
        }
        assert!(found("linux-image-9").is_some() && found("linux-image-9:riscv64").is_none());
    }
}
