//! Kernels to boot: a vmlinuz file, a Debian package, or the name of one that `apt-get` fetches.

use crate::error::{Error, at};
use crate::modules::{Module, Modules};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A kernel, ready to boot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// Its release as a package names it (`6.1.0-56-rt-amd64`), or its file's name.
    pub name: String,
    /// The image.
    pub image: PathBuf,
    /// The package that it came from, which has its modules.
    package: Option<PathBuf>,
    /// Where its package is unpacked.
    directory: PathBuf,
}

impl Kernel {
    /// Finds `wanted`: a path to a vmlinuz or to a `.deb`, or else the name of a Debian package,
    /// which is fetched into `cache` unless it is there from an earlier time.
    ///
    /// # Errors
    /// When it cannot be found, fetched or unpacked.
    pub fn find(wanted: &str, cache: &Path) -> Result<Self, Error> {
        let path = Path::new(wanted);
        if !wanted.contains('/') && !path.exists() {
            // A word that apt-get would take for an option, or for several names, is none.
            let is_name = |c: char| c.is_ascii_alphanumeric() || "+-.:~_".contains(c);
            let starts = wanted.starts_with(|c: char| c.is_ascii_alphanumeric());
            if !starts || !wanted.chars().all(is_name) {
                let said = "that is no name of a package".to_owned();
                return Err(Error::NoSuchKernel { name: wanted.to_owned(), said });
            }
            return Self::from_package(&fetch(wanted, cache)?, cache);
        }
        if path.extension().is_some_and(|extension| extension == "deb") {
            return Self::from_package(path, cache);
        }
        std::fs::File::open(path).map_err(at(path))?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let name = name.strip_prefix("vmlinuz-").unwrap_or(&name).to_owned();
        let directory = cache.join(&name);
        Ok(Self { name, image: path.to_owned(), package: None, directory })
    }

    fn from_package(package: &Path, cache: &Path) -> Result<Self, Error> {
        let file = std::fs::metadata(package).map_err(at(package))?;
        let stem = package.file_stem().unwrap_or_default().to_string_lossy();
        // A kernel that was built anew may come in a package of the same name.
        let (seconds, rest) = (file.mtime(), file.mtime_nsec());
        let directory = cache.join(format!("{stem}-{}-{seconds}.{rest}", file.len()));
        unpack(package, &directory, "./boot/*")?;
        let boot = directory.join("boot");
        let none = || Error::NoKernel(package.to_owned());
        for entry in std::fs::read_dir(&boot).map_err(|_| none())? {
            let image = entry.map_err(at(&boot))?.path();
            let file = image.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if let Some(name) = file.strip_prefix("vmlinuz-") {
                let (name, package) = (name.to_owned(), Some(package.to_owned()));
                return Ok(Self { name, image, package, directory });
            }
        }
        Err(none())
    }

    /// The modules `wanted`, each a name and perhaps parameters behind it, and what they need, in
    /// loading order.
    ///
    /// # Errors
    /// When the kernel has no such modules, or came without any.
    pub fn modules(&self, wanted: &[String]) -> Result<Vec<Module>, Error> {
        let Some(first) = wanted.first() else { return Ok(Vec::new()) };
        let Some(package) = &self.package else {
            return Err(Error::NoModules { kernel: self.name.clone(), module: first.clone() });
        };
        // Debian 13 has /usr merged in its packages too.
        unpack(package, &self.directory, "*lib/modules/*")?;
        let places = ["lib/modules", "usr/lib/modules"].map(|place| self.directory.join(place));
        let place = places.iter().find(|place| place.is_dir()).unwrap_or(&places[0]);
        Modules::below(&self.name, place)?.closure(wanted)
    }
}

/// Has `apt-get` put a package's file into `cache`.
fn fetch(name: &str, cache: &Path) -> Result<PathBuf, Error> {
    let directory = cache.join("packages");
    std::fs::create_dir_all(&directory).map_err(at(&directory))?;
    let prefix = format!("{name}_");
    let find = || {
        let entries = std::fs::read_dir(&directory).ok()?;
        let mut paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
        paths.find(|path| {
            let file = path.file_name().unwrap_or_default().to_string_lossy();
            file.starts_with(&prefix) && file.ends_with(".deb")
        })
    };
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
    find().ok_or_else(|| unknown("nothing, and no file came".to_owned()))
}

/// Unpacks what of a package matches `pattern`, once.
fn unpack(package: &Path, directory: &Path, pattern: &str) -> Result<(), Error> {
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

/// The output of a program that must succeed.
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
    fn a_file_is_a_kernel_by_its_name() {
        let directory = tempfile::tempdir().unwrap();
        let image = directory.path().join("vmlinuz-6.12.1-test");
        std::fs::write(&image, "x").unwrap();
        let kernel = Kernel::find(image.to_str().unwrap(), directory.path()).unwrap();
        assert_eq!(kernel.name, "6.12.1-test");
        let error = kernel.modules(&["vfio".into()]).unwrap_err().to_string();
        assert!(error.contains("came without modules, but vfio"), "{error}");
    }

    #[test]
    fn a_file_that_is_not_there_is_named() {
        let error = Kernel::find("/nowhere/vmlinuz-1", Path::new("/tmp")).unwrap_err();
        assert!(error.to_string().starts_with("/nowhere/vmlinuz-1: "), "{error}");
    }

    #[test]
    fn a_kernel_that_is_not_known_is_said_with_what_to_do() {
        for name in ["--version", "linux;image", ""] {
            let error = Kernel::find(name, Path::new("/tmp")).unwrap_err().to_string();
            assert!(error.contains("there is no kernel") && error.contains("apt-cache"), "{error}");
        }
    }

    #[test]
    fn a_package_that_was_built_anew_is_unpacked_anew() {
        let directory = tempfile::tempdir().unwrap();
        let package = directory.path().join("linux-image-9.deb");
        let build = |content: &str| {
            let root = tempfile::tempdir().unwrap();
            for folder in ["boot", "DEBIAN"] {
                std::fs::create_dir(root.path().join(folder)).unwrap();
            }
            std::fs::write(root.path().join("boot/vmlinuz-9"), content).unwrap();
            let control = "Package: linux-image-9\nVersion: 1\nArchitecture: all\n\
                           Maintainer: nobody <nobody@localhost>\nDescription: none\n";
            std::fs::write(root.path().join("DEBIAN/control"), control).unwrap();
            let mut command = Command::new("dpkg-deb");
            command.arg("--build").arg(root.path()).arg(&package);
            output(&mut command, "dpkg").map(drop)
        };
        for content in ["one", "another"] {
            if let Err(Error::Missing { program, .. }) = build(content) {
                eprintln!("skipped: {program} is not installed");
                return;
            }
            let kernel = Kernel::find(package.to_str().unwrap(), directory.path()).unwrap();
            assert_eq!(std::fs::read_to_string(&kernel.image).unwrap(), content);
        }
    }

    #[test]
    fn a_file_that_is_no_package_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let package = directory.path().join("x.deb");
        std::fs::write(&package, "no archive").unwrap();
        let error = Kernel::find(package.to_str().unwrap(), directory.path()).unwrap_err();
        assert!(matches!(error, Error::Failed { .. } | Error::Missing { .. }), "{error}");
    }
}
