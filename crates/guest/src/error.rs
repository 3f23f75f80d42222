use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// The reason why a guest did not do its work. Each message has a remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file that a guest needs cannot be used.
    #[error("cannot use the file {path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// A required program is not installed.
    #[error("cannot start {program} ({source}): install the Debian package {package}")]
    Missing {
        /// The name of the program.
        program: String,
        /// The package that holds it.
        package: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// A program ended with a failure.
    #[error("{program} failed: {said}")]
    Failed {
        /// The name of the program.
        program: String,
        /// The end of its output.
        said: String,
    },
    /// A program cannot run in a guest.
    #[error(
        "the program {path} cannot run under a kernel for {processor}: {reason}; give the static \
         millstream for {processor}, as its Debian package has it (for ARM64, `make arm64` \
         compiles one)"
    )]
    Program {
        /// The program.
        path: PathBuf,
        /// The name of the kernel's processor.
        processor: &'static str,
        /// What speaks against it.
        reason: String,
    },
    /// A file is not a kernel package, or holds no kernel.
    #[error("{0} contains no boot/vmlinuz-*: give a Debian linux-image package or a vmlinuz file")]
    NoKernel(PathBuf),
    /// There is no kernel of this name.
    #[error(
        "there is no kernel {name}: it is not a file, and apt-get cannot download a Debian \
         package of this name (it says: {said}). `apt-cache search --names-only \
         '^linux-image-[0-9]'` lists packages, after `apt-get update`; or give the path of a .deb \
         or vmlinuz file, with a slash in it"
    )]
    NoSuchKernel {
        /// The requested name.
        name: String,
        /// The output of apt-get.
        said: String,
    },
    /// A kernel from a single file has no modules.
    #[error(
        "kernel {kernel} comes without modules, but the module {module} is needed: give the \
         Debian package of this kernel"
    )]
    NoModules {
        /// The kernel.
        kernel: String,
        /// The module.
        module: String,
    },
    /// A kernel has no module of this name.
    #[error("kernel {kernel} has no module {module}: check the name, or take another kernel")]
    NoSuchModule {
        /// The kernel.
        kernel: String,
        /// The module.
        module: String,
    },
    /// The guest ended without a result.
    #[error(
        "the virtual machine with kernel {kernel} ended without a result; the end of its \
         console:\n{console}"
    )]
    Silent {
        /// The kernel.
        kernel: String,
        /// The end of the console.
        console: String,
    },
    /// The guest did not end in time and was stopped.
    #[error(
        "the virtual machine with kernel {kernel} was stopped after {limit:?}: give a longer \
         --timeout; the end of its console:\n{console}"
    )]
    TimedOut {
        /// The kernel.
        kernel: String,
        /// The time limit.
        limit: Duration,
        /// The end of the console.
        console: String,
    },
}

/// Adds the path to an error of a file.
pub(crate) fn at(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Error {
    let path = path.into();
    move |source| Error::File { path, source }
}
