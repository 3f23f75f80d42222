//! The command line of a program, with what all verbs share: `--json`, `--config`, the settings
//! that a killed process left, and the end.

use crate::output::{Join, Report};
use crate::{help, interrupt, output, version};
use clap::{CommandFactory, FromArgMatches, Parser};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

/// The environment variable with the configuration file when `--config` is not given.
const CONFIG_VARIABLE: &str = "MILLSTREAM_CONFIG";

/// Groups of verbs that only `millstream-lab` has.
const LABORATORY: [&str; 3] = ["bench", "latency", "lab"];

/// The verbs of a program.
pub trait Verbs: clap::Args {
    /// The program's name.
    const PROGRAM: &'static str;
    /// What the program does: the first line of its help.
    const ABOUT: &'static str;

    /// Whether the given verb may open links, for which the configuration is needed.
    fn opens_links(&self) -> bool;

    /// Runs the given verb.
    ///
    /// # Errors
    /// Those of the verb.
    fn run(self) -> anyhow::Result<Report>;

    /// Changes the command line, for example to hide some verbs.
    #[must_use]
    fn arranged(command: clap::Command) -> clap::Command {
        command
    }
}

/// A command line.
#[derive(Parser)]
#[command(version = version(), propagate_version = true)]
struct Cli<V: Verbs> {
    /// Print one JSON document with the fields command, environment and results; after a failure
    /// also error.
    #[arg(long, global = true, display_order = 900)]
    json: bool,

    /// Read the settings of links from this network configuration (TOML). `millstream host net
    /// import` writes one.
    #[arg(long, global = true, value_name = "FILE", display_order = 901)]
    config: Option<PathBuf>,

    #[command(flatten)]
    verb: V,
}

impl<V: Verbs> Cli<V> {
    fn read(args: &[OsString]) -> Result<Self, clap::Error> {
        let mut matches = command_of::<V>().try_get_matches_from(args)?;
        Self::from_arg_matches_mut(&mut matches)
    }
}

/// Every verb of a program with its options and help.
#[must_use]
pub fn command_of<V: Verbs>() -> clap::Command {
    let command = Cli::<V>::command().name(V::PROGRAM).about(V::ABOUT);
    help::adapted(V::arranged(command))
}

/// Returns the verb of a command line, which begins with the program's name.
///
/// # Errors
/// When the program does not have it.
pub fn parse<V: Verbs>(args: &[OsString]) -> Result<V, clap::Error> {
    Cli::<V>::read(args).map(|cli| cli.verb)
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
fn named_bytes<V: Verbs>(error: clap::Error, args: &[OsString]) -> clap::Error {
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
    command_of::<V>().error(InvalidValue, text)
}

/// Adds the full path to the error about a verb that was given without its group.
fn whole_path<V: Verbs>(error: clap::Error) -> clap::Error {
    use clap::error::{ContextKind, ContextValue, ErrorKind};
    let Some(ContextValue::String(given)) = error.get(ContextKind::InvalidSubcommand) else {
        return error;
    };
    if LABORATORY.contains(&given.as_str()) {
        let text = format!(
            "`{given}` is in the laboratory: run `millstream-lab {given} …` (package \
             millstream-lab)"
        );
        return command_of::<V>().error(ErrorKind::InvalidSubcommand, text);
    }
    let mut command = command_of::<V>();
    let groups = command.get_subcommands().filter(|group| group.find_subcommand(given).is_some());
    let of_group = |group: &clap::Command| {
        let about = group.find_subcommand(given).and_then(clap::Command::get_about);
        let about = about.map(|about| format!(" ({about})")).unwrap_or_default();
        format!("`{} {} {given}`{about}", V::PROGRAM, group.get_name())
    };
    let found = groups.map(of_group).join(" or ");
    if found.is_empty() {
        return error;
    }
    let text = format!("'{given}' belongs to a group of commands: write {found}");
    command.error(ErrorKind::InvalidSubcommand, text)
}

/// Runs the verb of the command line `args`, which begins with the program's name.
#[must_use]
pub fn run_program<V: Verbs>(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    interrupt::survive_file_limit();
    let args: Vec<_> = args.into_iter().collect();
    let cli = match Cli::<V>::read(&args) {
        Ok(cli) => cli,
        Err(error) => {
            return output::refuse(&named_bytes::<V>(
                with_option(whole_path::<V>(error), &args),
                &args,
            ));
        }
    };
    crate::stdout::set_json(cli.json);
    put_back();
    let configured = if cli.verb.opens_links() { configure(cli.config) } else { Ok(None) };
    // The configuration applies as long as the verb runs.
    let outcome = configured.and_then(|_configured| cli.verb.run());
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
