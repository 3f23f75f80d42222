//! `millstream-lab bench soak`: hours of streams, faults and reboots, in rounds that a seed
//! repeats.

mod stage;
mod text;

use crate::experiment::{Experiment, Unmeasured, until_done};
use crate::interrupt;
use crate::numbers::{seconds, whole};
use crate::output::{Join, Report, count, describe, note, now};
use anyhow::ensure;
use millstream_lab::CaseRuns;
use millstream_lab::faults::{CASES, FaultCase};
use millstream_lab::soak::{
    self, ProcessVerdict, RoundOutcome, RoundPlan, SoakFile, SoakFileError, SoakRecord,
};
use stage::SoakStage;
use std::path::PathBuf;
use std::time::{Instant, SystemTime};

/// Rounds one after the other whose radio cannot be opened: then it is gone.
const GONE_ROUNDS: u32 = 3;

/// Runs streams of emulated radios for hours, with faults, reboots and retunes.
///
/// Each round opens the radio, runs up to three streams on it and closes it. Its number, --seed,
/// --only and the links say what it does: directions, channels, rate, link, fault. After each
/// stream the ledgers are compared with the counts of the radio and of the fault: every lost sample
/// has to be injected. Memory, open descriptors and threads of this process and of the radios must
/// not grow. With root the links are UDP on loopback, and UDP, packet sockets and AF_XDP on a
/// temporary veth pair; without root they are UDP on loopback alone. A round takes a few seconds.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  sudo millstream-lab bench soak --duration 8h --state soak.json
  millstream-lab bench soak --duration 20min --loopback
  millstream-lab bench soak --count 5 --only reboot --seed 7 --json
  sudo millstream-lab bench soak --seed 3 --round 79")]
pub struct Args {
    /// Time of all rounds together, those of earlier parts in --state included.
    #[arg(long, alias = "for", value_name = "TIME", default_value = "1h", value_parser = seconds)]
    duration: f64,

    /// File with the state of the soak: rounds, results, memory. If it exists, the command
    /// continues with the next round.
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,

    /// Seed of the rounds. The default is the seed of --state, or another one each time.
    #[arg(long, value_name = "N", value_parser = whole::<u64>(..))]
    seed: Option<u64>,

    /// End after this number of rounds, those of earlier parts included.
    #[arg(long, value_name = "N", value_parser = whole::<u64>(1..))]
    count: Option<u64>,

    /// Carry out this round alone, to repeat what it found. Rounds are counted from 0.
    #[arg(long, value_name = "N", requires = "seed",
          conflicts_with_all = ["state", "count", "duration"],
          value_parser = whole::<u64>(..))]
    round: Option<u64>,

    /// Only inject faults whose name contains this text. `bench faults --list` lists them. The
    /// default is that of --state, or all.
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,

    /// Use kernel sockets on the loopback of this machine. This needs no root.
    #[arg(long)]
    loopback: bool,
}

crate::results! {
    /// A soak so far.
    struct SoakResults<'a> {
        /// Its rounds, by fault and by part.
        soak: &'a SoakRecord,
        /// Whether something of a process grew.
        processes: &'a [ProcessVerdict],
    }
}

/// Succeeds when every lost sample was injected and nothing grew.
pub fn run(args: Args) -> anyhow::Result<Report> {
    let (mut file, mut record) = args.record()?;
    let cases = cases(&record.only)?;
    interrupt::install();
    let mut unsaved = None;
    if !args.is_done(&record) {
        let mut soak = Soak::begin(&args, cases, &mut record, &mut file)?;
        let ended = until_done(&mut soak, &[()]).ended;
        match ended.map(anyhow::Error::downcast::<SoakFileError>) {
            Some(Ok(error)) => unsaved = Some(error),
            Some(Err(error)) if !interrupt::asked() => return Err(error),
            _ => {}
        }
    }
    Ok(report(&args, &record, unsaved))
}

impl Args {
    /// The state so far, or a new one.
    fn record(&self) -> anyhow::Result<(Option<SoakFile>, SoakRecord)> {
        let only = self.only.as_deref();
        // Before a file is made.
        cases(only.unwrap_or_default())?;
        let seed = || self.seed.unwrap_or_else(any_seed);
        let new = || SoakRecord::new(seed(), only.unwrap_or_default());
        let Some(path) = &self.state else { return Ok((None, new())) };
        let (mut file, stored) = SoakFile::open(path)?;
        let Some(record) = stored else {
            let record = new();
            // Before hours of work, not after.
            file.save(&record)?;
            return Ok((Some(file), record));
        };
        let seed = self.seed.unwrap_or(record.seed);
        ensure!(
            seed == record.seed,
            "--seed is {seed}, and the soak in --state has {}: leave out --seed, or give another \
             file",
            record.seed
        );
        let only = only.unwrap_or(&record.only);
        ensure!(
            only == record.only,
            "--only is \"{only}\", and the soak in --state has \"{}\": leave out --only, or give \
             another file",
            record.only
        );
        Ok((Some(file), record))
    }

    /// Whether the soak is at its end.
    fn is_done(&self, record: &SoakRecord) -> bool {
        match self.round {
            Some(_) => record.rounds > 0,
            None => {
                record.seconds >= self.duration
                    || self.count.is_some_and(|count| record.rounds >= count)
            }
        }
    }
}

/// The faults whose name contains a text.
fn cases(only: &str) -> anyhow::Result<Vec<&'static FaultCase>> {
    let cases: Vec<_> = CASES.iter().filter(|case| case.name.contains(only)).collect();
    ensure!(
        !cases.is_empty(),
        "there is no fault whose name contains \"{only}\"; the faults are: {}",
        CASES.iter().map(|case| case.name).join(", ")
    );
    Ok(cases)
}

/// A seed of this moment, short enough to be typed.
fn any_seed() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    now.map_or(1, |now| now.as_nanos() as u64 % 1_000_000)
}

/// The version of this program, and the time at which its file was made.
fn version() -> String {
    let made = std::env::current_exe().and_then(std::fs::metadata).and_then(|file| file.modified());
    let made = made.map_or_else(
        |_| "unknown".to_owned(),
        |made| humantime::format_rfc3339_seconds(made).to_string(),
    );
    format!("{}, built {made}", env!("CARGO_PKG_VERSION"))
}

/// The rounds of one part.
struct Soak<'a> {
    args: &'a Args,
    cases: Vec<&'static FaultCase>,
    record: &'a mut SoakRecord,
    file: &'a mut Option<SoakFile>,
    stage: SoakStage,
    /// Complaints that the user has seen.
    told: u64,
    /// Rounds one after the other whose radio could not be opened.
    gone: u32,
    /// A radio's process does not answer.
    is_silent: bool,
}

impl<'a> Soak<'a> {
    /// Starts the radios, and begins a part.
    fn begin(
        args: &'a Args,
        cases: Vec<&'static FaultCase>,
        record: &'a mut SoakRecord,
        file: &'a mut Option<SoakFile>,
    ) -> anyhow::Result<Self> {
        let stage = SoakStage::set(args.loopback)?;
        let links: Vec<_> = stage.links().map(str::to_owned).collect();
        ensure!(
            record.links.is_empty() || record.links == links,
            "the soak in --state has the links {}, and this one would have {}: give the rights and \
             the options of its begin, or another file",
            record.links.join(", "),
            links.join(", ")
        );
        let first = args.round.unwrap_or(record.rounds);
        note(format_args!(
            "soak    seed {}, {} {first}\nlinks   {}",
            record.seed,
            if args.round.is_some() { "only round" } else { "from round" },
            links.join(", ")
        ));
        stage.describe().for_each(note);
        record.begin(now(), version(), links, first);
        let told = record.complaint_count;
        Ok(Self { args, cases, record, file, stage, told, gone: 0, is_silent: false })
    }

    fn plan(&self) -> RoundPlan {
        let SoakRecord { seed, rounds, links, .. } = &*self.record;
        RoundPlan::draw(*seed, self.args.round.unwrap_or(*rounds), links.len(), &self.cases)
    }

    /// Prints the complaints of the last round.
    fn tell(&mut self) {
        let record = &*self.record;
        let new = record.complaint_count - self.told;
        self.told = record.complaint_count;
        let kept = record.complaints.len() as u64 == record.complaint_count;
        for complaint in record.complaints.iter().rev().take(new as usize).rev().filter(|_| kept) {
            note(text::complaint(record, complaint));
        }
    }
}

impl Experiment for Soak<'_> {
    type Case = ();
    type Outcome = ();

    fn name(&self, (): &()) -> String {
        let (record, plan) = (&*self.record, self.plan());
        let [passed, of] = [record.seconds, self.args.duration].map(text::time);
        let complaints = count(record.complaint_count, "complaint");
        let (number, link) = (plan.number, &record.links[plan.link]);
        format!("round {number}, {passed} of {of}, {complaints}: {link}: {plan}")
    }

    fn step(&mut self, (): &(), _: usize) -> Result<(), Unmeasured> {
        let plan = self.plan();
        let link = self.record.links[plan.link].clone();
        let begun = Instant::now();
        let done = soak::run(&plan, &mut self.stage.radio(plan.link), interrupt::asked);
        self.is_silent = done.is_err();
        let outcome = done.unwrap_or_else(|error| {
            let error = self.stage.explain(plan.link, error.into());
            RoundOutcome::of_error(describe(&error))
        });
        if outcome.is_cut && outcome.complaints.is_empty() {
            // The next part carries it out.
            return Ok(());
        }
        self.gone = if outcome.accounts.is_empty() { self.gone + 1 } else { 0 };
        let (seconds, held) = (begun.elapsed().as_secs_f64(), self.stage.holdings());
        self.record.add(&plan, &link, &outcome, seconds, &held);
        self.tell();
        Ok(self.file.as_mut().map_or(Ok(()), |file| file.save(self.record))?)
    }

    fn is_done(&self, _: &[CaseRuns<()>]) -> bool {
        self.args.is_done(self.record) || self.gone >= GONE_ROUNDS || self.is_silent
    }
}

fn report(args: &Args, record: &SoakRecord, unsaved: Option<SoakFileError>) -> Report {
    let verdicts = record.verdicts();
    let mut failures = Vec::new();
    if let Some(error) = unsaved {
        failures.push(format!("{error}; the table above has the last round, the file has not"));
    }
    if record.complaint_count > 0 {
        failures.push(format!(
            "{} of {} show samples that were lost and not injected, or other faults of this \
             program: see the table above",
            count(record.complaint_count, "complaint"),
            count(record.rounds, "round")
        ));
    }
    for verdict in verdicts.iter().filter(|verdict| !verdict.grew.is_empty()) {
        failures.push(format!("{}: {} grew", verdict.name, verdict.grew.join(", ")));
    }
    if failures.is_empty() && !args.is_done(record) {
        let again = match (&args.state, args.round) {
            (None, None) => "with --state FILE the command goes on where it was interrupted",
            _ => "run the command again to go on",
        };
        failures.push(format!(
            "interrupted after {} of {}: {again}",
            text::time(record.seconds),
            text::time(args.duration)
        ));
    }
    let failure = (!failures.is_empty()).then(|| failures.join("; "));
    let results = SoakResults { soak: record, processes: &verdicts };
    Report::of(text::of(record, &verdicts), &results).failing(failure)
}
