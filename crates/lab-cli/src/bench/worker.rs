//! `millstream-lab bench worker`: one side of `bench packets` and `latency`; for internal use.

use crate::output::Report;
use crate::results::ResultShape;
use millstream_lab::packets::{testbed, worker};
use std::io::{BufReader, Write, stdin, stdout};

/// Serves the jobs of `bench packets` and `latency`.
#[derive(clap::Args)]
pub struct Args {
    /// The network to work in: `new`, or the name of a namespace.
    #[arg(long, value_name = "NAMESPACE")]
    namespace: Option<String>,
}

/// It prints no document.
pub fn results() -> Vec<ResultShape> {
    Vec::new()
}

/// Ends with its input.
pub fn run(args: Args) -> anyhow::Result<Report> {
    if let Some(Err(reason)) = args.namespace.as_deref().map(testbed::enter_new_network) {
        // The other process reports it, once for both sides.
        writeln!(stdout(), "{reason}")?;
        return Ok(Report::none());
    }
    worker::serve(BufReader::new(stdin()), &mut stdout())?;
    Ok(Report::none())
}
