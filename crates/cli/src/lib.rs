//! The `millstream` command: a thin layer over the crates. Each verb is one file under `verbs/`. It
//! is a library so that tests can call [`command`]: all verbs, options and help texts.

mod child_radio;
mod crossings;
mod dashboard;
mod force;
mod front_end;
mod graph_run;
mod help;
mod interrupt;
mod live;
mod network;
mod numbers;
mod output;
mod playback;
mod printable;
mod program;
mod signal;
mod start;
mod stdout;
mod stored;
mod table;
mod verbs;

use crate::output::Join;
use clap::{CommandFactory, FromArgMatches, Parser};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

/// The environment variable with the configuration file when `--config` is not given.
const CONFIG_VARIABLE: &str = "MILLSTREAM_CONFIG";

/// Receives samples from networked radios, processes them, and accounts for every lost sample.
#[derive(Parser)]
#[command(name = "millstream", version = version(), propagate_version = true)]
struct Cli {
    /// Print one JSON document with the fields command, environment and results; after a failure
    /// also error.
    #[arg(long, global = true, display_order = 900)]
    json: bool,

    /// Read the settings of links from this network configuration (TOML). `millstream host net
    /// import` writes one.
    #[arg(long, global = true, value_name = "FILE", display_order = 901)]
    config: Option<PathBuf>,

    #[command(flatten)]
    verb: verbs::Args,
}

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
    help::adapted(Cli::command())
}

/// Adds the option that an argument without one was probably meant for.
fn with_option(mut error: clap::Error, args: &[OsString]) -> clap::Error {
    use clap::error::{ContextKind, ContextValue, ErrorKind};
    let given = match (error.kind(), error.get(ContextKind::InvalidArg)) {
        (ErrorKind::UnknownArgument, Some(ContextValue::String(given))) => given.clone(),
        _ => return error,
    };
    let option = match args.get(1).and_then(|verb| verb.to_str()) {
        Some("run" | "graph") if given.contains('=') => "--set",
        Some("tx") => "--in",
        Some("rx") => "--out",
        _ => return error,
    };
    if !given.starts_with('-') {
        let tip = format!("write `{option} {given}`");
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

/// Names the argument that is no UTF-8, where only text is possible.
fn named_bytes(error: clap::Error, args: &[OsString]) -> clap::Error {
    use clap::error::ErrorKind::{InvalidUtf8, InvalidValue};
    let Some(bytes) = args.iter().find(|arg| arg.to_str().is_none()) else { return error };
    if error.kind() != InvalidUtf8 {
        return error;
    }
    let text = format!(
        "the argument '{}' is not valid UTF-8, which this place needs: give a file another name, \
         or give a link to it that has one",
        bytes.to_string_lossy()
    );
    command().error(InvalidValue, text)
}

/// Adds the full path to the error about a verb that was given without its group.
fn whole_path(error: clap::Error) -> clap::Error {
    use clap::error::{ContextKind, ContextValue, ErrorKind};
    let Some(ContextValue::String(given)) = error.get(ContextKind::InvalidSubcommand) else {
        return error;
    };
    let mut command = command();
    let groups = command.get_subcommands().filter(|group| group.find_subcommand(given).is_some());
    let of_group = |group: &clap::Command| {
        let about = group.find_subcommand(given).and_then(clap::Command::get_about);
        let about = about.map(|about| format!(" ({about})")).unwrap_or_default();
        format!("`millstream {} {given}`{about}", group.get_name())
    };
    let found = groups.map(of_group).join(" or ");
    if found.is_empty() {
        return error;
    }
    let text = format!("'{given}' belongs to a group of commands: write {found}");
    command.error(ErrorKind::InvalidSubcommand, text)
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
    interrupt::survive_file_limit();
    graph_run::add_blocks(register);
    if millstream_guest::init::is_first_process() {
        millstream_guest::init::run();
    }
    let read = |mut matches| Cli::from_arg_matches_mut(&mut matches);
    let args: Vec<_> = args.into_iter().collect();
    let cli = match command().try_get_matches_from(&args).and_then(read) {
        Ok(cli) => cli,
        Err(error) => {
            return output::refuse(&named_bytes(with_option(whole_path(error), &args), &args));
        }
    };
    output::set_json(cli.json);
    put_back();
    let configured = if cli.verb.opens_links() { configure(cli.config) } else { Ok(None) };
    // The configuration applies as long as the verb runs.
    let outcome = configured.and_then(|_configured| verbs::run(cli.verb));
    for advice in millstream_net::engine::take_advice() {
        output::note(format_args!("millstream: {advice}"));
    }
    for wrong in millstream_radio::convert::ConvertForm::wrong() {
        output::note(format_args!(
            "millstream: this processor executes the vector instructions of the conversion \
             `{}` wrongly, so another was used; check the processor and its hypervisor, and please \
             report it",
            wrong.name()
        ));
    }
    output::finish(outcome)
}

/// Installs the configuration of `--config`, or of the environment, for the process.
fn configure(said: Option<PathBuf>) -> anyhow::Result<Option<millstream_net::config::Configured>> {
    let path = said.or_else(|| std::env::var_os(CONFIG_VARIABLE).map(PathBuf::from));
    let Some(path) = path else { return Ok(None) };
    let config = millstream_net::config::Config::read(&path)?;
    Ok(Some(millstream_net::configure(&config)?))
}

/// Restores settings of the machine that a killed process left changed. Prints nothing when there
/// are none, as is usual.
fn put_back() {
    // A tracer ends before its settings are restored.
    millstream_host::trace::recover();
    let found = millstream_host::journal::recover().unwrap_or_else(|error| {
        let failed = vec![format!("the journals cannot be read: {error}")];
        millstream_host::journal::Recovered { failed, ..Default::default() }
    });
    let told = [
        ("put back", found.undone),
        ("left settings that others changed or use", found.left),
        ("could not put back", found.failed),
    ];
    for (what, list) in told {
        if !list.is_empty() {
            let list = list.join(", ");
            output::note(format_args!("millstream: {what} after a process that died: {list}"));
        }
    }
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
