//! The `millstream` command: a thin layer over the rooms. Each verb is one file under `verbs/`.

mod graph_run;
mod interrupt;
mod live;
mod output;
mod sigmf;
mod signal;
mod verbs;

use clap::{Parser, Subcommand};
use output::Document;
use std::process::ExitCode;

/// Radio samples from the network to a decoded result, with every lost sample accounted for.
#[derive(Parser)]
#[command(name = "millstream", version, propagate_version = true)]
struct Cli {
    /// Print one JSON document {command, environment, results} on standard output.
    #[arg(long, global = true)]
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
    let cli = Cli::parse();
    interrupt::install();
    let mut document = Document::for_command(std::env::args());
    let outcome = match cli.verb {
        Verb::Demo(args) => verbs::demo::run(args, cli.json),
        Verb::Find(args) => verbs::find::run(args, cli.json),
        Verb::Radio(args) => verbs::radio::run(args),
        Verb::Rx(args) => verbs::rx::run(args, cli.json),
        Verb::Run(args) => verbs::run::run(args, cli.json),
    };
    let code = match &outcome {
        Ok(report) if report.ok => ExitCode::SUCCESS,
        Ok(_) | Err(_) => ExitCode::FAILURE,
    };
    if let Err(error) = &outcome {
        eprintln!("millstream: {error:#}");
    }
    if cli.json {
        document.finish(outcome);
        document.print();
    }
    code
}
