//! The `millstream` command: a thin layer over the rooms. Each verb is one file under `verbs/`.

mod graph_run;
mod interrupt;
mod live;
mod numbers;
mod output;
mod sigmf;
mod signal;
mod verbs;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Radio samples from the network to a decoded result, with every lost sample accounted for.
#[derive(Parser)]
#[command(name = "millstream", version, propagate_version = true)]
struct Cli {
    /// Print one JSON document {command, environment, results or error} on standard output.
    #[arg(long, global = true, display_order = 900)]
    json: bool,

    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// The main job: emulated radio > stream > ATSC receiver > video file. No root, no hardware.
    Demo(verbs::demo::Args),
    /// Lists the radios that answer.
    Find(verbs::find::Args),
    /// Serves an emulated radio that stock UHD tools accept.
    Radio(verbs::radio::Args),
    /// Records samples from a radio to a file.
    Rx(verbs::rx::Args),
    /// Runs a flowgraph.
    Run(verbs::run::Args),
}

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return output::refuse(&error),
    };
    let outcome = match cli.verb {
        Verb::Demo(args) => verbs::demo::run(args),
        Verb::Find(args) => verbs::find::run(args),
        Verb::Radio(args) => verbs::radio::run(args),
        Verb::Rx(args) => verbs::rx::run(args),
        Verb::Run(args) => verbs::run::run(args),
    };
    output::finish(outcome, cli.json)
}
