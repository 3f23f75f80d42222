//! The `millstream` command: a thin layer over the rooms. Each verb is one file under `verbs/`.

mod child_radio;
mod graph_run;
mod ground;
mod interrupt;
mod live;
mod numbers;
mod output;
mod playback;
mod sigmf;
mod signal;
mod start;
mod verbs;
mod wait;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Radio samples from the network to a decoded result, with every lost sample accounted for.
#[derive(Parser)]
#[command(name = "millstream", version, propagate_version = true)]
struct Cli {
    /// Print one JSON document {command, environment, results, error if it failed}.
    #[arg(long, global = true, display_order = 900)]
    json: bool,

    #[command(subcommand)]
    verb: Verb,
}

/// Each verb describes itself where its arguments are.
#[derive(Subcommand)]
enum Verb {
    Bench(verbs::bench::Args),
    Demo(verbs::demo::Args),
    Fault(verbs::fault::Args),
    Find(verbs::find::Args),
    Grant(verbs::grant::Args),
    Latency(verbs::latency::Args),
    Radio(verbs::radio::Args),
    Rx(verbs::rx::Args),
    Run(verbs::run::Args),
    Tx(verbs::tx::Args),
}

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return output::refuse(&error),
    };
    put_back();
    let outcome = match cli.verb {
        Verb::Bench(args) => verbs::bench::run(args),
        Verb::Demo(args) => verbs::demo::run(args),
        Verb::Fault(args) => verbs::fault::run(args),
        Verb::Find(args) => verbs::find::run(args),
        Verb::Grant(args) => verbs::grant::run(args),
        Verb::Latency(args) => verbs::latency::run(args),
        Verb::Radio(args) => verbs::radio::run(args),
        Verb::Rx(args) => verbs::rx::run(args),
        Verb::Run(args) => verbs::run::run(args),
        Verb::Tx(args) => verbs::tx::run(args),
    };
    output::finish(outcome, cli.json)
}

/// Puts settings of the machine back that a process changed and then was killed. Nothing is there
/// to be found as a rule, and nothing is said then.
fn put_back() {
    let (undone, failed) = match millstream_sys::journal::recover() {
        Ok(found) => (found.undone, found.failed),
        Err(error) => (Vec::new(), vec![format!("the journals cannot be read: {error}")]),
    };
    for (what, list) in [("put back", undone), ("could not put back", failed)] {
        if !list.is_empty() {
            let list = list.join(", ");
            output::note(format_args!("millstream: {what} after a process that died: {list}"));
        }
    }
}
