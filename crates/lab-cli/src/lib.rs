//! The `millstream-lab` command: measurements of rates and latencies, each in one file, and the
//! measurement plans that repeat and compare them.
//!
//! It is `millstream` with other verbs. It runs those of `millstream`, too, without showing them:
//! a radio that is measured, or a command in a guest, is this program started again.

mod bench;
mod experiment;
mod lab;
mod latency;
mod network;
mod samples;

use millstream_cli::output::Report;
use millstream_cli::{
    UserVerb, UserVerbs, Verbs, block_types, child_radio, command_of, dashboard, force,
    graph_report, group, interrupt, live, numbers, output, program, results, run_program, stored,
    table,
};
use std::process::ExitCode;

group! {
    typed;
    /// The verbs of the laboratory.
    LaboratoryVerb: Bench(bench), Latency(latency), Lab(lab),
}

impl LaboratoryVerb {
    /// Whether it may open links itself.
    fn opens_links(&self) -> bool {
        !matches!(self, Self::Lab(_))
    }
}

/// The verbs of the laboratory, and behind them those of `millstream`.
#[derive(clap::Args)]
struct AllVerbs {
    #[command(subcommand)]
    what: AnyVerb,
}

// Only one value exists, for a moment.
#[allow(clippy::large_enum_variant)]
#[derive(clap::Subcommand)]
enum AnyVerb {
    #[command(flatten)]
    Laboratory(LaboratoryVerb),
    #[command(flatten)]
    User(UserVerb),
}

impl Verbs for Args {
    const PROGRAM: &'static str = "millstream-lab";
    const ABOUT: &'static str = "Measures rates and latencies of this machine, its links and its \
                                 radios";

    fn opens_links(&self) -> bool {
        self.what.opens_links()
    }

    fn run(self) -> anyhow::Result<Report> {
        run(self)
    }
}

impl Verbs for AllVerbs {
    const PROGRAM: &'static str = Args::PROGRAM;
    const ABOUT: &'static str = Args::ABOUT;

    fn opens_links(&self) -> bool {
        match &self.what {
            AnyVerb::Laboratory(what) => what.opens_links(),
            AnyVerb::User(what) => what.opens_links(),
        }
    }

    fn run(self) -> anyhow::Result<Report> {
        match self.what {
            AnyVerb::Laboratory(what) => run(Args { what }),
            AnyVerb::User(what) => UserVerbs { what }.run(),
        }
    }

    fn arranged(command: clap::Command) -> clap::Command {
        let shown = command_of::<Args>();
        let names = command.get_subcommands().map(|verb| verb.get_name().to_owned());
        let hidden: Vec<_> = names.filter(|name| shown.find_subcommand(name).is_none()).collect();
        let hide = |command: clap::Command, name| {
            command.mut_subcommand(name, |verb: clap::Command| verb.hide(true))
        };
        hidden.into_iter().fold(command, hide)
    }
}

/// Every verb of the laboratory with its options and help.
#[must_use]
pub fn command() -> clap::Command {
    command_of::<Args>()
}

/// The same, with the verbs of `millstream` that the program has, too.
#[must_use]
pub fn whole_command() -> clap::Command {
    command_of::<AllVerbs>()
}

/// Runs the verb of this process's command line, or the job of a guest whose first process this is.
#[must_use]
pub fn main() -> ExitCode {
    if millstream_guest::init::is_first_process() {
        millstream_guest::init::run();
    }
    run_program::<AllVerbs>(std::env::args_os())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    const HEAD: &str = "# JSON documents of the laboratory

The fields of `results` for each command of `millstream-lab`, as [JSON documents](json.md) has them
for `millstream`. Where a command has `records`, a measurement plan can use it
([file formats](file-formats.md)).

The page is made from the structs of the program, and a test compares it with them.
";

    /// Run with `MILLSTREAM_WRITE=1` the test writes the page.
    #[test]
    fn every_verb_has_documents_and_the_page_is_made_of_them() {
        let verbs = super::results();
        let silent = ["bench worker", "lab adc", "lab worker"];
        for (verb, shapes) in &verbs {
            assert_eq!(shapes.is_empty(), silent.contains(&&**verb), "{verb}");
        }
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/lab-json.md");
        let test = "-p millstream-lab-cli --lib every_verb_has_documents";
        crate::results::check_page(&path, HEAD, &verbs, test);
    }
}
