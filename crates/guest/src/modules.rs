//! Kernel modules and their dependencies, read from the modules themselves: a package has no index;
//! `depmod` would make it.

use crate::error::{Error, at};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A module, with its parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Module {
    /// The name, with `_`.
    pub name: String,
    /// The content of its file, unpacked.
    pub content: Vec<u8>,
    /// The parameters, `a=1 b=2`.
    pub parameters: String,
}

/// The modules below a directory, by name.
pub struct Modules {
    kernel: String,
    files: BTreeMap<String, PathBuf>,
    /// Those that are part of the kernel itself.
    built_in: BTreeSet<String>,
}

impl Modules {
    /// Finds the modules (`*.ko`, `*.ko.xz`), and those that are built into the kernel
    /// (`modules.builtin`). `kernel` is for errors.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub fn below(kernel: &str, directory: &Path) -> Result<Self, Error> {
        let (mut files, mut built_in) = (BTreeMap::new(), BTreeSet::new());
        let mut open = vec![directory.to_owned()];
        while let Some(directory) = open.pop() {
            for entry in std::fs::read_dir(&directory).map_err(at(&directory))? {
                let path = entry.map_err(at(&directory))?.path();
                if path.is_dir() && !path.is_symlink() {
                    open.push(path);
                } else if let Some(name) = module_name(&path) {
                    files.insert(name, path);
                } else if path.file_name().is_some_and(|name| name == "modules.builtin") {
                    let list = std::fs::read_to_string(&path).map_err(at(&path))?;
                    built_in.extend(list.lines().filter_map(|line| module_name(Path::new(line))));
                }
            }
        }
        Ok(Self { kernel: kernel.to_owned(), files, built_in })
    }

    /// Returns the modules `wanted`, each a name with optional parameters, and all their
    /// dependencies, each once, in loading order, without those that are built into the kernel.
    ///
    /// # Errors
    /// When one is missing or cannot be unpacked.
    pub fn closure(&self, wanted: &[String]) -> Result<Vec<Module>, Error> {
        let mut order = Vec::new();
        for words in wanted {
            let (name, parameters) = words.split_once(' ').unwrap_or((words, ""));
            let name = plain(name);
            self.add(&name, &mut order)?;
            if let Some(module) = order.iter_mut().find(|module| module.name == name) {
                parameters.clone_into(&mut module.parameters);
            }
        }
        Ok(order)
    }

    fn add(&self, name: &str, order: &mut Vec<Module>) -> Result<(), Error> {
        if self.built_in.contains(name) || order.iter().any(|known| known.name == name) {
            return Ok(());
        }
        let missing =
            || Error::NoSuchModule { kernel: self.kernel.clone(), module: name.to_owned() };
        let path = self.files.get(name).ok_or_else(missing)?;
        let content = read(path)?;
        // Dependencies have no cycles: the kernel could not load such modules.
        for needed in dependencies(&content) {
            self.add(&needed, order)?;
        }
        order.push(Module { name: name.to_owned(), content, parameters: String::new() });
        Ok(())
    }
}

/// Converts `-` to `_`: module names are the same with both.
fn plain(name: &str) -> String {
    name.replace('-', "_")
}

fn module_name(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    name.strip_suffix(".xz").unwrap_or(name).strip_suffix(".ko").map(plain)
}

fn read(path: &Path) -> Result<Vec<u8>, Error> {
    if path.extension().is_none_or(|extension| extension != "xz") {
        return std::fs::read(path).map_err(at(path));
    }
    let mut command = Command::new("xz");
    crate::debian::output(command.args(["-dc"]).arg(path), "xz-utils")
}

/// Returns the names after `depends=` in the module's information: strings that end with a zero
/// byte.
fn dependencies(module: &[u8]) -> Vec<String> {
    const KEY: &[u8] = b"\0depends=";
    let Some(at) = module.windows(KEY.len()).position(|window| window == KEY) else {
        return Vec::new();
    };
    let list = module[at + KEY.len()..].split(|&byte| byte == 0).next().unwrap_or_default();
    let names = String::from_utf8_lossy(list);
    names.split(',').filter(|name| !name.is_empty()).map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        let net = directory.path().join("drivers/net");
        std::fs::create_dir_all(&net).unwrap();
        let module = |depends: &str| format!("ELF\0license=GPL\0depends={depends}\0x");
        std::fs::write(net.join("vfio-pci.ko"), module("vfio-core,vfio")).unwrap();
        std::fs::write(net.join("vfio-core.ko"), module("vfio")).unwrap();
        std::fs::write(net.join("vfio.ko"), module("")).unwrap();
        std::fs::write(net.join("notes.txt"), "nothing").unwrap();
        let built_in = "kernel/drivers/virtio/virtio-pci.ko\n";
        std::fs::write(directory.path().join("modules.builtin"), built_in).unwrap();
        directory
    }

    #[test]
    fn what_is_needed_comes_first_and_once() {
        let tree = tree();
        let modules = Modules::below("k", tree.path()).unwrap();
        let order = modules.closure(&["vfio-pci ids=1:2 x".into(), "vfio".into()]).unwrap();
        let names: Vec<_> = order.iter().map(|m| (m.name.as_str(), &*m.parameters)).collect();
        assert_eq!(names, [("vfio", ""), ("vfio_core", ""), ("vfio_pci", "ids=1:2 x")]);
    }

    #[test]
    fn a_module_in_the_kernel_itself_needs_no_loading() {
        let tree = tree();
        let modules = Modules::below("k", tree.path()).unwrap();
        let order = modules.closure(&["virtio_pci".into(), "vfio".into()]).unwrap();
        assert_eq!(order.iter().map(|m| m.name.as_str()).collect::<Vec<_>>(), ["vfio"]);
    }

    #[test]
    fn a_module_that_is_not_there_is_named() {
        let tree = tree();
        let modules = Modules::below("6.1-test", tree.path()).unwrap();
        let error = modules.closure(&["igb".into()]).unwrap_err().to_string();
        assert!(error.contains("kernel 6.1-test has no module igb"), "{error}");
    }
}
