//! What is late is explained, as the command line says it.

/// Which of what is measured is explained.
#[derive(clap::Args)]
pub struct LateArgs {
    /// Say where the time went when something took longer than this, microseconds: a wake-up, or a
    /// round trip (of these, the first in each repetition of each row). Trace events are recorded
    /// meanwhile, which costs a little; needs root.
    #[arg(long, value_name = "US", value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub explain_above_us: Option<u64>,

    /// How many to explain at most.
    #[arg(long, value_name = "N", default_value_t = 10, requires = "explain_above_us")]
    pub outliers: usize,
}
