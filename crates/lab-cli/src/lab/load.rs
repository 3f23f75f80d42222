//! `millstream-lab lab load`: a load profile by hand.

use super::worker::WORKER;
use crate::interrupt;
use crate::live::during;
use crate::numbers::{allowed_cpus, seconds};
use crate::output::Report;
use crate::program;
use crate::table::Table;
use anyhow::Context;
use millstream_cpu::CpuSet;
use millstream_lab::load::RunningLoad;
use millstream_measure::load::{LoadProfile, Profiles};
use millstream_measure::record::LoadSeen;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Runs a load profile for a while and shows how much work it did. Without a name it lists the
/// profiles.
#[derive(clap::Args)]
pub struct Args {
    /// Name of the profile.
    name: Option<String>,

    /// How long to run the load.
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = seconds)]
    duration: f64,

    /// CPUs whose latency is measured at the same time. The load does not run there.
    #[arg(long, value_name = "CPUS", default_value = "")]
    cpus: CpuSet,

    /// File with more profiles (TOML).
    #[arg(long, value_name = "FILE")]
    profiles: Option<PathBuf>,
}

crate::results! {
    /// A load profile, and what it did.
    struct LoadResults<'a> {
        /// Its name.
        profile: &'a str,
        /// Its work, and the machine's activity meanwhile.
        seen: &'a LoadSeen,
    }

    /// Without a name: all profiles.
    struct KnownProfiles<'a> {
        /// Each profile.
        profiles: &'a [LoadProfile],
    }
}

/// Succeeds when every worker did some work.
pub fn run(args: Args) -> anyhow::Result<Report> {
    let mut profiles = Profiles::builtin();
    if let Some(path) = &args.profiles {
        let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
        profiles.all.extend(Profiles::parse(&text)?.all);
    }
    let Some(name) = &args.name else {
        let table = Table::of(&profiles.all).left("", |one| &one.name).left("", |one| &one.about);
        return Ok(Report::of(table.text(), &KnownProfiles { profiles: &profiles.all }));
    };
    interrupt::install();
    let allowed = allowed_cpus()?;
    let worker: Vec<String> = WORKER.iter().map(|&word| word.to_owned()).collect();
    let start = || program::command(&worker);
    let mut load = RunningLoad::begin(profiles.get(name)?, &allowed, &args.cpus, &start)?;
    let until = Instant::now() + Duration::from_secs_f64(args.duration);
    during(name, Some(Duration::from_secs_f64(args.duration)), || {
        while Instant::now() < until && !interrupt::asked() {
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    let seen = load.seen()?;
    drop(load);
    let mut text = format!(
        "{name}: {:.0} % of a CPU, {:.0} interrupts/s, {:.0} context switches/s, load average \
         {:.1}, stolen {:.1} %\n",
        seen.cpu_share * 100.0,
        seen.interrupts_per_s,
        seen.switches_per_s,
        seen.load_average,
        seen.steal_share * 100.0
    );
    text += &Table::of(&seen.work_per_s)
        .left("", |(worker, _)| format!("  {worker}"))
        .right("", |(_, rate)| format!("{rate:.1} /s"))
        .text();
    Ok(Report::of(text, &LoadResults { profile: name, seen: &seen }))
}
