//! `millstream host net check`: a dry run of a configuration file.

use crate::output::{Report, count, shown};
use millstream_net::config::{Config, DryRunFinding, FindingKind, InterfaceSurvey, dry_run};
use std::path::PathBuf;

/// Shows what opening the links of a configuration file would change, and what would prevent it. It
/// opens and changes nothing.
#[derive(clap::Args)]
pub struct Args {
    /// The configuration file (TOML).
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

crate::results! {
    /// What opening the links of a configuration would do.
    struct CheckedConfig {
        /// The configuration file.
        file: String,
        /// What was found.
        findings: Vec<DryRunFinding>,
    }
}

/// Succeeds when the dry run finds no obstacle.
pub fn run(args: Args) -> anyhow::Result<Report> {
    let config = Config::read(&args.file)?;
    let survey = InterfaceSurvey::take()?;
    let cpus: Vec<usize> = millstream_cpu::thread::allowed_cpus()?.iter().collect();
    let findings = dry_run(&config, &survey, &cpus);
    let obstacles = findings.iter().filter(|finding| finding.kind == FindingKind::Obstacle).count();
    let failure = (obstacles > 0)
        .then(|| format!("{}: {}", args.file.display(), count(obstacles as u64, "obstacle")));
    let text = findings.iter().map(line).collect();
    let checked = CheckedConfig { file: shown(&args.file), findings };
    Ok(Report::of(text, &checked).failing(failure))
}

fn line(finding: &DryRunFinding) -> String {
    format!("{:<10} {:<9} {}\n", finding.about, finding.kind.name(), finding.text)
}
