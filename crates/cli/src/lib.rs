//! The `millstream` command: a thin layer over the crates. Each verb is one file under `verbs/`. It
//! is a library so that tests can call [`command`] (all verbs, options and help texts), and so that
//! `millstream-lab` has the same command line, output and helpers with other verbs.

pub mod account;
pub mod block_types;
pub mod child_radio;
mod command_line;
mod crossings;
pub mod dashboard;
pub mod force;
mod front_end;
pub mod graph_report;
pub mod graph_run;
mod help;
pub mod interrupt;
pub mod live;
pub mod numbers;
pub mod output;
mod playback;
mod printable;
pub mod program;
pub mod results;
mod signal;
mod start;
mod stdout;
pub mod stored;
pub mod table;
mod verbs;

pub use command_line::{Verbs, command_of, parse, run_program};
pub use verbs::sim::{ask, device};
pub use verbs::{Args as UserVerbs, Verb as UserVerb};

use std::ffi::OsString;
use std::process::ExitCode;

/// The features of this crate that a user can ask for; [`features`] has those that are on.
const FEATURES: [(&str, bool); 4] = [
    ("cuda", cfg!(feature = "cuda")),
    ("dpdk", cfg!(feature = "dpdk")),
    ("gpu", cfg!(feature = "gpu")),
    ("zenoh", cfg!(feature = "zenoh")),
];

fn features() -> String {
    let on: Vec<_> = FEATURES.iter().filter(|(_, on)| *on).map(|(name, _)| *name).collect();
    if on.is_empty() { "none".to_owned() } else { on.join(", ") }
}

/// The commit, where the build was told it.
fn commit() -> Option<&'static str> {
    option_env!("MILLSTREAM_COMMIT").filter(|commit| !commit.is_empty())
}

/// Returns the version, with the commit where the build was told it, and the features that are on.
fn version() -> &'static str {
    static VERSION: std::sync::LazyLock<String> = std::sync::LazyLock::new(|| {
        let commit = commit().map(|commit| format!("commit {commit}, ")).unwrap_or_default();
        format!("{} ({commit}features: {})", env!("CARGO_PKG_VERSION"), features())
    });
    &VERSION
}

/// Returns what decides the results of a run: the version, with the commit where it is known, and
/// otherwise a hash of this program, so that changed code is another release.
fn release() -> &'static str {
    static RELEASE: std::sync::LazyLock<String> = std::sync::LazyLock::new(|| {
        let program = || {
            let hash = millstream_cpu::sha256("/proc/self/exe".as_ref());
            format!("program {}", hash.as_deref().map_or("unknown", |hash| &hash[..16]))
        };
        let code = commit().map_or_else(program, |commit| format!("commit {commit}"));
        format!("{} ({code})", env!("CARGO_PKG_VERSION"))
    });
    &RELEASE
}

/// Every verb with its options and help.
#[must_use]
pub fn command() -> clap::Command {
    command_of::<UserVerbs>()
}

/// Every verb with the objects of its documents (`--json`).
#[must_use]
pub fn documents() -> Vec<results::VerbShapes> {
    verbs::results()
}

/// Runs the verb of this process's command line.
#[must_use]
pub fn main() -> ExitCode {
    main_with(|_| (), std::env::args_os())
}

/// Runs the verb of the command line `args`, which begins with the program's name. `register` adds
/// the block types of the caller, which `run` and `graph` then know like those of the library. Only
/// the first call in a process can add some.
///
/// ```no_run
/// # fn register(registry: &mut millstream_flow::Registry) {}
/// fn main() -> std::process::ExitCode {
///     millstream_cli::main_with(register, std::env::args_os())
/// }
/// ```
#[must_use]
pub fn main_with(
    register: fn(&mut millstream_flow::Registry),
    args: impl IntoIterator<Item = OsString>,
) -> ExitCode {
    block_types::add_blocks(register);
    run_program::<UserVerbs>(args)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_lists_every_feature_of_this_crate() {
        let manifest: toml::Table = toml::from_str(include_str!("../Cargo.toml")).unwrap();
        let mut declared: Vec<_> = manifest["features"].as_table().unwrap().keys().collect();
        declared.sort();
        assert_eq!(declared, FEATURES.map(|(name, _)| name));
        let on = FEATURES.iter().filter(|(_, on)| *on).map(|(name, _)| *name);
        let told = version().split_once("features: ").unwrap().1.trim_end_matches(')');
        assert!(told == "none" || told.split(", ").eq(on), "{told}");
    }

    #[test]
    fn a_release_without_a_commit_is_named_by_its_code() {
        let (_, code) = release().split_once(" (").unwrap();
        let (kind, value) = code.trim_end_matches(')').split_once(' ').unwrap();
        let is_hash = value.len() == 16 && value.chars().all(|digit| digit.is_ascii_hexdigit());
        assert!(kind == "commit" || is_hash, "{code}");
    }
}
