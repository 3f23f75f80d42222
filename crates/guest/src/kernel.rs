//! Kernels to boot: a vmlinuz file, a Debian package, or the name of a package that `apt-get`
//! fetches.

use crate::debian::{fetch, field, needed, unpack};
use crate::error::{Error, at};
use crate::modules::{Module, Modules};
use crate::processor::Processor;
use millstream_cpu::{KernelOrigin, sha256};
use std::ffi::OsStr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The longest chain of packages without a kernel.
const META_DEPTH: u32 = 3;

/// The kernels in packages since Debian 14: `linux-image-*` depends on `linux-binary-*` with this
/// file, `linux-modules-*` and `linux-base-*`.
const IMAGE_BESIDE_MODULES: &str = "./usr/lib/modules/*/vmlinuz";

/// A kernel, ready to boot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BootKernel {
    /// The release in the package's name (`6.1.0-56-rt-amd64`), or the file's name.
    pub name: String,
    /// The image.
    pub image: PathBuf,
    /// The processor that it is made for.
    pub processor: Processor,
    /// The package of the kernel, with its modules.
    package: Option<PathBuf>,
    /// The folder of the unpacked package.
    directory: PathBuf,
}

impl BootKernel {
    /// Finds `wanted`: a path to a vmlinuz or to a `.deb`, or else the name of a Debian package,
    /// which is fetched into `cache` unless it is there already; `NAME=VERSION` asks for one
    /// version of it. A package without a kernel that depends on one (`linux-image-6.12-amd64`)
    /// stands for that one.
    ///
    /// # Errors
    /// When it cannot be found, fetched or unpacked.
    pub fn find(wanted: &str, cache: &Path) -> Result<Self, Error> {
        let path = Path::new(wanted);
        if !wanted.contains('/') && !path.exists() {
            // A word that apt-get would take for an option, or for several names, is not a valid
            // name.
            let is_name = |c: char| c.is_ascii_alphanumeric() || "+-.:~_=".contains(c);
            let starts = wanted.starts_with(|c: char| c.is_ascii_alphanumeric());
            if !starts || !wanted.chars().all(is_name) {
                let said = "this is not a package name".to_owned();
                return Err(Error::NoSuchKernel { name: wanted.to_owned(), said });
            }
            return Self::from_package(&fetch(wanted, cache)?, cache, META_DEPTH);
        }
        if path.extension().is_some_and(|extension| extension == "deb") {
            return Self::from_package(path, cache, META_DEPTH);
        }
        std::fs::File::open(path).map_err(at(path))?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let name = name.strip_prefix("vmlinuz-").unwrap_or(&name).to_owned();
        let directory = cache.join(&name);
        Self::of_image(name, path.to_owned(), None, directory)
    }

    fn of_image(
        name: String,
        image: PathBuf,
        package: Option<PathBuf>,
        directory: PathBuf,
    ) -> Result<Self, Error> {
        let processor = Processor::of_image(&image).map_err(at(&image))?;
        Ok(Self { name, image, processor, package, directory })
    }

    fn from_package(package: &Path, cache: &Path, depth: u32) -> Result<Self, Error> {
        let file = std::fs::metadata(package).map_err(at(package))?;
        let stem = package.file_stem().unwrap_or_default().to_string_lossy();
        // A rebuilt kernel may come in a package of the same name.
        let (seconds, rest) = (file.mtime(), file.mtime_nsec());
        let directory = cache.join(format!("{stem}-{}-{seconds}.{rest}", file.len()));
        let Some((name, image)) = image_in(package, &directory)? else {
            let depends = field(package, "Depends")?;
            let needs = kernel_in(&depends).filter(|_| depth > 0);
            let needs = needs.ok_or_else(|| Error::NoKernel(package.to_owned()))?;
            let found = needed(package, needs, cache)?;
            return Self::from_package(&found, cache, depth - 1);
        };
        if !image.starts_with(directory.join("boot")) {
            // Without its configuration it boots as well.
            let base = needed(package, &format!("linux-base-{name}"), cache);
            let _ = base.and_then(|base| unpack(&base, &directory, "./usr/lib/modules/*/config"));
        }
        Self::of_image(name, image, Some(package.to_owned()), directory)
    }

    /// Returns its package and the hashes of its files.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn origin(&self) -> Result<KernelOrigin, Error> {
        let mut origin = KernelOrigin {
            image_sha256: Some(sha256(&self.image).map_err(at(&self.image))?),
            ..KernelOrigin::default()
        };
        if let Some(package) = &self.package {
            let word = |name| field(package, name).map(|text| Some(text.trim().to_owned()));
            (origin.package, origin.version) = (word("Package")?, word("Version")?);
            origin.package_sha256 = Some(sha256(package).map_err(at(package))?);
        }
        Ok(origin)
    }

    /// Returns its configuration with the path in a running system, if the package has one.
    #[must_use]
    pub fn configuration(&self) -> Option<(String, Vec<u8>)> {
        let file = format!("config-{}", self.name);
        let read = |name| std::fs::read(self.image.with_file_name(name)).ok();
        let content = read(&*file).or_else(|| read("config"))?;
        Some((format!("/boot/{file}"), content))
    }

    /// Returns the modules `wanted`, each a name with optional parameters, and their dependencies,
    /// in loading order.
    ///
    /// # Errors
    /// When the kernel lacks such a module, or came without any.
    pub fn modules(&self, wanted: &[String]) -> Result<Vec<Module>, Error> {
        let Some(first) = wanted.first() else { return Ok(Vec::new()) };
        let Some(package) = &self.package else {
            return Err(Error::NoModules { kernel: self.name.clone(), module: first.clone() });
        };
        // Debian 13 has /usr merged in its packages too; later ones have modules apart.
        let files = "*lib/modules/*.ko*";
        let mut with_modules = package.clone();
        if unpack(package, &self.directory, files).is_err() {
            let cache = self.directory.parent().unwrap_or(&self.directory);
            with_modules = needed(package, &format!("linux-modules-{}", self.name), cache)?;
            unpack(&with_modules, &self.directory, files)?;
        }
        // Without this list a module in the kernel itself counts as missing.
        let _ = unpack(&with_modules, &self.directory, "*lib/modules/*/modules.builtin");
        let places = ["lib/modules", "usr/lib/modules"].map(|place| self.directory.join(place));
        let place = places.iter().find(|place| place.is_dir()).unwrap_or(&places[0]);
        Modules::below(&self.name, place)?.closure(wanted)
    }
}

/// Unpacks the kernel of a package into `directory`, and returns its release and its file; `None`
/// for a package without one. It lies in `/boot`, and in packages since Debian 14 beside the
/// modules.
fn image_in(package: &Path, directory: &Path) -> Result<Option<(String, PathBuf)>, Error> {
    let text = |name: &OsStr| name.to_string_lossy().into_owned();
    for (pattern, place) in [("./boot/*", "boot"), (IMAGE_BESIDE_MODULES, "usr/lib/modules")] {
        if unpack(package, directory, pattern).is_err() {
            continue;
        }
        let place = directory.join(place);
        for entry in std::fs::read_dir(&place).map_err(at(&place))? {
            let path = entry.map_err(at(&place))?.path();
            let file = path.file_name().map(text).unwrap_or_default();
            if let Some(name) = file.strip_prefix("vmlinuz-") {
                return Ok(Some((name.to_owned(), path)));
            }
            if path.join("vmlinuz").is_file() {
                return Ok(Some((file, path.join("vmlinuz"))));
            }
        }
    }
    Ok(None)
}

/// Finds the kernel's package in a list of dependencies (deb-control(5): `a (= 1), b | c`).
fn kernel_in(depends: &str) -> Option<&str> {
    let names = depends.split([',', '|']).filter_map(|one| one.split_whitespace().next());
    let mut names = names.map(|name| name.split(':').next().unwrap_or(name));
    names.find(|name| ["linux-image-", "linux-binary-"].iter().any(|kind| name.starts_with(kind)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::debian::output;
    use std::process::Command;

    #[test]
    fn a_file_is_a_kernel_by_its_name() {
        let directory = tempfile::tempdir().unwrap();
        let image = directory.path().join("vmlinuz-6.12.1-test");
        std::fs::write(&image, "x").unwrap();
        let kernel = BootKernel::find(image.to_str().unwrap(), directory.path()).unwrap();
        assert_eq!(kernel.name, "6.12.1-test");
        let error = kernel.modules(&["vfio".into()]).unwrap_err().to_string();
        assert!(error.contains("comes without modules, but the module vfio"), "{error}");
    }

    #[test]
    fn a_file_that_is_not_there_is_named() {
        let error = BootKernel::find("/nowhere/vmlinuz-1", Path::new("/tmp")).unwrap_err();
        assert!(
            error.to_string().starts_with("cannot use the file /nowhere/vmlinuz-1: "),
            "{error}"
        );
    }

    #[test]
    fn a_kernel_that_is_not_known_is_said_with_what_to_do() {
        for name in ["--version", "linux;image", ""] {
            let error = BootKernel::find(name, Path::new("/tmp")).unwrap_err().to_string();
            assert!(error.contains("there is no kernel") && error.contains("apt-cache"), "{error}");
        }
    }

    #[test]
    fn a_package_that_was_built_anew_is_unpacked_anew() {
        let directory = tempfile::tempdir().unwrap();
        let package = directory.path().join("linux-image-9.deb");
        for content in ["one", "another"] {
            if !build(&package, "", &[("boot/vmlinuz-9", content)]) {
                return;
            }
            let kernel = BootKernel::find(package.to_str().unwrap(), directory.path()).unwrap();
            assert_eq!(std::fs::read_to_string(&kernel.image).unwrap(), content);
        }
    }

    /// Makes a package with these dependencies and files; false when that fails, with a message
    /// when there is no dpkg-deb.
    fn build(package: &Path, depends: &str, files: &[(&str, &str)]) -> bool {
        let root = tempfile::tempdir().unwrap();
        let control = format!(
            "Package: made-up\nVersion: 1\nArchitecture: all\n{depends}Maintainer: nobody \
             <nobody@localhost>\nDescription: none\n"
        );
        for (path, content) in [&[("DEBIAN/control", &*control)], files].concat() {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
        let mut command = Command::new("dpkg-deb");
        match output(command.arg("--build").arg(root.path()).arg(package), "dpkg") {
            Err(Error::Missing { program, .. }) => {
                eprintln!("skipped: {program} is not installed");
                false
            }
            built => built.is_ok_and(|_| true),
        }
    }

    #[test]
    fn a_package_that_only_depends_on_a_kernel_stands_for_it() {
        let cache = tempfile::tempdir().unwrap();
        let packages = cache.path().join("packages");
        std::fs::create_dir(&packages).unwrap();
        let (meta, real) = ("linux-image-9-amd64", "linux-image-9.1.2+deb99-amd64");
        let depends = format!("Depends: dash, {real}:any (= 9.1.2-1) | other\n");
        let files =
            [("boot/vmlinuz-9.1.2+deb99-amd64", "kernel"), ("boot/config-9.1.2+deb99-amd64", "y")];
        if !build(&packages.join(format!("{meta}_9.1_all.deb")), &depends, &[]) {
            return;
        }
        assert!(build(&packages.join(format!("{real}_9.1.2-1_all.deb")), "", &files));
        let kernel = BootKernel::find(meta, cache.path()).unwrap();
        assert_eq!(kernel.name, "9.1.2+deb99-amd64");
        assert_eq!(std::fs::read_to_string(&kernel.image).unwrap(), "kernel");
        let configuration = kernel.configuration().unwrap();
        assert_eq!(configuration, ("/boot/config-9.1.2+deb99-amd64".to_owned(), b"y".to_vec()));
        let origin = kernel.origin().unwrap();
        assert_eq!(
            (origin.package.as_deref(), origin.version.as_deref()),
            (Some("made-up"), Some("1"))
        );
        // `kernel`, by sha256sum.
        let image = "6923dd1b";
        assert!(origin.image_sha256.unwrap().starts_with(image));
        assert_eq!(origin.package_sha256.unwrap().len(), 64);
        let version = format!("{real}=9.1.2-1");
        assert_eq!(BootKernel::find(&version, cache.path()).unwrap(), kernel);
        // Without a version, the newest of those that are there.
        let newer = [("boot/vmlinuz-9.1.2+deb99-amd64", "newer")];
        assert!(build(&packages.join(format!("{real}_9.1.10-1_all.deb")), "", &newer));
        let kernel = BootKernel::find(real, cache.path()).unwrap();
        assert_eq!(std::fs::read_to_string(&kernel.image).unwrap(), "newer");
        std::fs::remove_file(packages.join(format!("{real}_9.1.10-1_all.deb"))).unwrap();
        let kernel = BootKernel::find(real, cache.path()).unwrap();
        // Also by its file; a package that leads to no kernel is an error.
        let path = packages.join(format!("{meta}_9.1_all.deb"));
        assert_eq!(BootKernel::find(path.to_str().unwrap(), cache.path()).unwrap(), kernel);
        assert!(build(&path, "", &[("usr/share/doc/x", "no kernel")]));
        let error = BootKernel::find(meta, cache.path()).unwrap_err();
        assert!(matches!(error, Error::NoKernel(_)), "{error}");
    }

    #[test]
    fn a_kernel_in_several_packages_is_put_together() {
        let cache = tempfile::tempdir().unwrap();
        let packages = cache.path().join("packages");
        std::fs::create_dir(&packages).unwrap();
        let file = |kind: &str| packages.join(format!("linux-{kind}-9.1-amd64_9.1-1_all.deb"));
        let place = |name: &str| format!("usr/lib/modules/9.1-amd64/{name}");
        let depends = "Depends: linux-base-9.1-amd64 (= 9.1-1), linux-binary-9.1-amd64 (= 9.1-1), \
                       linux-modules-9.1-amd64 (= 9.1-1)\n";
        if !build(&file("image"), depends, &[("usr/share/doc/x", "none")]) {
            return;
        }
        assert!(build(&file("binary"), "", &[(&place("vmlinuz"), "kernel")]));
        // The name is that of a made-up release, for which apt-get has nothing.
        let kernel = BootKernel::find("linux-image-9.1-amd64", cache.path()).unwrap();
        assert_eq!((kernel.name.as_str(), kernel.configuration()), ("9.1-amd64", None));
        assert!(kernel.modules(&["dummy".into()]).is_err());
        assert!(build(&file("base"), "", &[(&place("config"), "y")]));
        let module = place("kernel/drivers/net/dummy.ko");
        assert!(build(&file("modules"), "", &[(&module, "\0name=dummy\0")]));
        let kernel = BootKernel::find("linux-image-9.1-amd64", cache.path()).unwrap();
        assert_eq!(std::fs::read_to_string(&kernel.image).unwrap(), "kernel");
        let configuration = kernel.configuration().unwrap();
        assert_eq!(configuration, ("/boot/config-9.1-amd64".to_owned(), b"y".to_vec()));
        assert!(kernel.origin().unwrap().image_sha256.unwrap().starts_with("6923dd1b"));
        assert_eq!(kernel.modules(&["dummy".into()]).unwrap().len(), 1);
    }

    #[test]
    fn a_file_that_is_no_package_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let package = directory.path().join("x.deb");
        std::fs::write(&package, "no archive").unwrap();
        let error = BootKernel::find(package.to_str().unwrap(), directory.path()).unwrap_err();
        assert!(matches!(error, Error::Failed { .. } | Error::Missing { .. }), "{error}");
    }
}
