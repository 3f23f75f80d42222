//! The explanation of late answers, as command line options.

use crate::numbers::{seconds, whole, within};

/// Options for explanations.
#[derive(clap::Args)]
pub struct LateArgs {
    /// Explain wake-ups or round trips that take longer than this, 1us to 10s. In each measurement
    /// of a row only the first such round trip is explained. The command records the kernel's
    /// trace, which makes latencies a little longer. Needs root.
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    explain_above: Option<f64>,

    /// Most wake-ups or round trips to explain.
    #[arg(long, value_name = "N", default_value_t = 10, requires = "explain_above",
          value_parser = whole::<usize>(..))]
    pub outliers: usize,
}

impl LateArgs {
    /// The threshold of explained answers, microseconds.
    pub fn above_us(&self) -> anyhow::Result<Option<u64>> {
        self.explain_above.map(|above| explained_us("--explain-above", above)).transpose()
    }
}

/// A limit in whole microseconds.
pub fn explained_us(option: &str, limit_s: f64) -> anyhow::Result<u64> {
    within(option, (limit_s, " s"), 1e-6..=10.0, "1us to 10s")?;
    Ok((limit_s * 1e6).round() as u64)
}
