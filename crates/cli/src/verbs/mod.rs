//! One file or folder a verb.

/// The arguments of a group of verbs, and `run`, which runs the given one: `Name(module)` is the
/// verb `name`, with `Args` and `run` in the module.
macro_rules! group {
    ($(#[$about:meta])* $group:ident: $($(#[$of:meta])* $verb:ident($module:ident)),+ $(,)?) => {
        $(#[$about])*
        #[derive(clap::Args)]
        pub struct Args {
            #[command(subcommand)]
            pub what: $group,
        }

        /// The verbs, documented with their arguments.
        // Only one value exists, for a moment.
        #[allow(clippy::large_enum_variant)]
        #[derive(clap::Subcommand)]
        pub enum $group {
            $($(#[$of])* $verb($module::Args),)+
        }

        /// Runs the verb.
        pub fn run(args: Args) -> anyhow::Result<crate::output::Report> {
            match args.what {
                $($group::$verb(args) => $module::run(args),)+
            }
        }
    };
}

pub mod batch;
pub mod bench;
pub mod demo;
pub mod find;
pub mod graph;
pub mod host;
pub mod inspect;
pub mod lab;
pub mod latency;
pub mod probe;
pub mod relay;
pub mod run;
pub mod rx;
pub mod serve;
pub mod sim;
pub mod tx;
pub mod view;

group! {
    // Daily ones first.
    Verb:
    Demo(demo), Find(find), Probe(probe), Rx(rx), Tx(tx), Run(run), Inspect(inspect), View(view),
    Batch(batch), Graph(graph),
    Relay(relay), Serve(serve), Sim(sim), Host(host), Bench(bench), Latency(latency), Lab(lab),
}

impl Args {
    /// Whether it may open links, for which the configuration is needed.
    pub fn opens_links(&self) -> bool {
        match &self.what {
            Verb::Find(_) | Verb::Inspect(_) | Verb::Lab(_) => false,
            Verb::Batch(args) => args.opens_links(),
            Verb::Graph(args) => args.opens_links(),
            Verb::Sim(args) => args.opens_links(),
            Verb::Host(args) => args.opens_links(),
            _ => true,
        }
    }
}
