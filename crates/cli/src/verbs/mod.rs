//! One file or folder a verb.

/// The arguments of a group of verbs, and `run`, which runs the given one: `Name(module)` is the
/// verb `name`, with `Args` and `run` in the module. With `typed;` before, each module also has
/// `results` (see [`results!`](crate::results!)).
#[macro_export]
macro_rules! group {
    (typed; $(#[$about:meta])* $group:ident:
     $($(#[$of:meta])* $verb:ident($module:ident)),+ $(,)?) => {
        $crate::group! { $(#[$about])* $group: $($(#[$of])* $verb($module)),+ }

        /// Each verb of the group, with the objects of its documents.
        pub fn results() -> Vec<$crate::results::VerbShapes> {
            let mut all = Vec::new();
            $(all.extend($crate::results::Below::below($module::results(), stringify!($module)));)+
            all
        }
    };
    ($(#[$about:meta])* $group:ident: $($(#[$of:meta])* $verb:ident($module:ident)),+ $(,)?) => {
        $(#[$about])*
        #[derive(clap::Args)]
        pub struct Args {
            /// The given verb.
            #[command(subcommand)]
            pub what: $group,
        }

        /// The verbs, documented with their arguments.
        // Only one value exists, for a moment.
        #[allow(clippy::large_enum_variant)]
        #[allow(missing_docs)]
        #[derive(clap::Subcommand)]
        pub enum $group {
            $($(#[$of])* $verb($module::Args),)+
        }

        /// Runs the verb.
        ///
        /// # Errors
        /// Those of the verb.
        pub fn run(args: Args) -> anyhow::Result<$crate::output::Report> {
            match args.what {
                $($group::$verb(args) => $module::run(args),)+
            }
        }
    };
}

mod batch;
mod demo;
mod find;
mod graph;
mod host;
mod inspect;
mod probe;
mod relay;
mod run;
mod rx;
mod serve;
pub mod sim;
mod tx;
mod view;
mod watch;

use crate::Verbs;
use crate::output::Report;

group! {
    typed;
    /// The verbs of `millstream`.
    // Daily ones first.
    Verb:
    Demo(demo), Find(find), Probe(probe), Rx(rx), Tx(tx), Run(run), Watch(watch),
    Inspect(inspect), View(view), Batch(batch), Graph(graph),
    Relay(relay), Serve(serve), Sim(sim), Host(host),
}

impl Verb {
    /// Whether it may open links, for which the configuration is needed.
    #[must_use]
    pub fn opens_links(&self) -> bool {
        match self {
            Verb::Find(_) | Verb::Inspect(_) => false,
            Verb::Batch(args) => args.opens_links(),
            Verb::Graph(args) => args.opens_links(),
            Verb::Sim(args) => args.opens_links(),
            Verb::Host(args) => args.opens_links(),
            _ => true,
        }
    }
}

impl Verbs for Args {
    const PROGRAM: &'static str = "millstream";
    const ABOUT: &'static str = "Receives samples from networked radios, processes them, and \
                                 accounts for every lost sample";

    fn opens_links(&self) -> bool {
        self.what.opens_links()
    }

    fn run(self) -> anyhow::Result<Report> {
        run(self)
    }
}
