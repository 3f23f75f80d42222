//! `millstream-lab lab kernels`: a plan under several kernels, each in a guest.

use super::guest::GuestOptions;
use super::place::StoreArgs;
pub use super::planned::results;
use super::planned::{PlanArgs, PlanResults, Planned, verdict};
use super::run::table;
use crate::interrupt;
use crate::live::{TimeLeft, during};
use crate::numbers::whole;
use crate::output::{Report, note};
use anyhow::{bail, ensure};
use millstream_guest::{BootKernel, Error};
use millstream_measure::design::{
    Cell, MeasurementPlan, MeasuringMachine, PlannedMeasurement, StartFailure, StartResult, Unit,
    Variant, run as carry_out,
};
use millstream_measure::store::Store;
use millstream_measure::{Failure, Record};
use std::time::Instant;

/// The plan's path in a guest.
const GUEST_PLAN: &str = "/plan.toml";

/// Carries out a measurement plan under several kernels, in virtual machines.
///
/// Each boot counts as one fresh start. The kernels boot in random order until each figure is
/// precise enough. The results go to the store with a variant for each kernel, so `lab compare
/// last` and `lab report last` show the kernels side by side. A boot that fails is repeated once;
/// if it fails again, the run records that. `lab resume` repeats such boots and continues an
/// interrupted run. QEMU emulates the CPUs in software, so the times say nothing about real
/// hardware.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    pub planned: PlanArgs,

    /// Number of boots of each kernel, instead of the plan's `restarts`. If a figure is not precise
    /// enough, more boots follow, up to the plan's `restarts_max`.
    #[arg(long, default_value_t = 6, value_name = "N", value_parser = whole::<u32>(1..=1000))]
    boots: u32,

    #[command(flatten)]
    store: StoreArgs,

    #[command(flatten)]
    pub guest: GuestOptions,
}

const EXAMPLES: &str = "\
After the name of a kernel you can write words for its command line, then `--` and arguments for
every measurement. A kernel that is given twice is compared with itself.

Examples:
  millstream-lab lab kernels plans/kernels.toml --kernel linux-image-6.1.0-56-amd64 \\
    --kernel linux-image-6.1.0-56-rt-amd64 --kernel 'linux-image-6.12-amd64 mitigations=off'
  millstream-lab lab kernels plans/kernel-delay.toml --module sch_netem \\
    --kernel linux-image-6.1.0-56-amd64 --kernel linux-image-6.1.0-56-amd64 \\
    --kernel 'linux-image-6.1.0-56-amd64 millstream.netem_us=lo:200'
  millstream-lab lab report last --title 'Three kernels' --out kernels.html";

/// One side of the comparison.
struct KernelSide {
    label: String,
    kernel: BootKernel,
    words: Vec<String>,
    /// Additional arguments of every measurement.
    arguments: Vec<String>,
}

/// Succeeds when every boot gave its records.
pub fn run(args: Args) -> anyhow::Result<Report> {
    let store = args.store.open()?;
    let planned = args.planned.read()?;
    carry_on(&args, planned, store)
}

/// Runs the rest of a run, which is all of it at the beginning.
pub fn carry_on(args: &Args, mut planned: Planned, mut store: Store) -> anyhow::Result<Report> {
    interrupt::install();
    let sides = sides(&args.guest)?;
    args.guest.check_program(sides.iter().map(|side| &side.kernel))?;
    recognise(&planned, &sides)?;
    planned.begin(&mut store)?;
    let Planned { plan, name, known, .. } = planned;
    let boots = boots(&plan, &sides, args.boots);
    note(format_args!("run     {name}"));
    let estimate = TimeLeft::new(Instant::now());
    let mut guests = Guests { options: &args.guest, plan: &plan, sides: &sides, store, estimate };
    let outcome = carry_out(&boots, &name, &known, &mut guests)?;
    let text =
        table(&boots, &outcome) + "see `millstream-lab lab compare last` and `lab report last`\n";
    let failure = verdict(&outcome, interrupt::asked(), true);
    Ok(Report::of(text, &PlanResults { run: &outcome }).failing(failure))
}

/// The plan of the boots: a variant for each kernel, one start of which is a boot.
fn boots(plan: &MeasurementPlan, sides: &[KernelSide], count: u32) -> MeasurementPlan {
    let variant = |side: &KernelSide| Variant { name: side.label.clone(), args: Vec::new() };
    // A plan without an upper limit ends after the given number.
    let goes_on = plan.restarts_max > plan.restarts;
    let restarts_max = if goes_on { plan.restarts_max.max(count) } else { count };
    MeasurementPlan {
        restarts: count,
        restarts_max,
        loads: vec!["idle".to_owned()],
        variants: sides.iter().map(variant).collect(),
        measurements: vec![PlannedMeasurement { name: "boot".to_owned(), args: Vec::new() }],
        ..plan.clone()
    }
}

/// The kernels with their labels, which are unique even when one is given twice.
fn sides(options: &GuestOptions) -> anyhow::Result<Vec<KernelSide>> {
    let mut sides: Vec<KernelSide> = Vec::new();
    for given in &options.kernels {
        let mut words = given.split_whitespace().map(str::to_owned);
        let Some(wanted) = words.next() else {
            bail!("--kernel is empty: give the name or file of a kernel")
        };
        let kernel = options.kernel(&wanted)?;
        let all: Vec<String> = words.collect();
        // As on the kernel's own command line: words after `--` are not for the kernel.
        let mut parts = all.splitn(2, |word| word == "--").map(<[String]>::to_vec);
        let words = parts.next().unwrap_or_default();
        let arguments = parts.next().unwrap_or_default();
        let mut label = [vec![kernel.name.clone()], all].concat().join(" ");
        while sides.iter().any(|side| side.label == label) {
            label.push_str(" again");
        }
        sides.push(KernelSide { label, kernel, words, arguments });
    }
    Ok(sides)
}

/// Checks that the kernels are those of the known records.
fn recognise(planned: &Planned, sides: &[KernelSide]) -> anyhow::Result<()> {
    for record in &planned.known.records {
        let index = side(&planned.plan, record) as usize;
        let label = sides.get(index).map(|side| side.label.as_str());
        ensure!(
            label.is_some_and(|label| is_under(label, &record.variant)),
            "the run contains records of {}, but that kernel is {} now: begin a new run",
            record.variant,
            label.unwrap_or("not among those given")
        );
    }
    Ok(())
}

/// The kernel of a record.
pub(super) fn side(plan: &MeasurementPlan, record: &Record) -> u32 {
    record.side / variants(plan)
}

fn variants(plan: &MeasurementPlan) -> u32 {
    plan.variants.len().max(1) as u32
}

/// Guests as the place where a plan runs: every start is a boot.
struct Guests<'g> {
    options: &'g GuestOptions,
    plan: &'g MeasurementPlan,
    sides: &'g [KernelSide],
    store: Store,
    estimate: TimeLeft,
}

impl Guests<'_> {
    /// Boots a kernel once, and collects the records of the whole plan.
    fn boot(&self, side: &KernelSide, round: u32) -> anyhow::Result<StartResult> {
        let mut inner = self.plan.clone();
        (inner.restarts, inner.restarts_max) = (1, 1);
        for measurement in &mut inner.measurements {
            measurement.args.extend_from_slice(&side.arguments);
        }
        inner.seed = self.plan.seed.wrapping_add(u64::from(round) << 16);
        let files = vec![(GUEST_PLAN.to_owned(), toml::to_string(&inner)?.into_bytes())];
        // Records leave the guest by its output line.
        let records = side.kernel.processor.output();
        let arguments = ["lab", "run", GUEST_PLAN, "--no-store", "--records", records];
        let arguments = arguments.map(str::to_owned).to_vec();
        let outcome = self.options.run(&side.kernel, &side.words, arguments, files)?;
        // The text of the run follows the records on the same line.
        let lines = || outcome.output.lines().filter(|line| line.starts_with('{'));
        let mut failures: Vec<_> = lines().filter_map(Failure::of_line).collect();
        let is_record = |line: &&str| Failure::of_line(line).is_none();
        let records =
            lines().filter(is_record).map(Record::parse).collect::<Result<Vec<_>, _>>()?;
        if outcome.status != 0 && (records.is_empty() || failures.is_empty()) {
            let said = outcome.console.lines().rev().find(|line| line.starts_with("millstream"));
            let why = failures.first().map(|failure| failure.reason.as_str()).or(said);
            bail!(
                "the measurement plan failed under this kernel: {}",
                why.unwrap_or("--console shows why")
            );
        }
        ensure!(!records.is_empty(), "the measurement plan gave no record under this kernel");
        failures.extend(missing(&inner, &records, &failures)?);
        for failure in &mut failures {
            failure.variant = within(&side.label, &failure.variant);
        }
        let (count, lost, took) = (records.len(), failures.len(), outcome.took.as_secs());
        let but = if lost == 0 { String::new() } else { format!(", parts that failed: {lost}") };
        note(format_args!("        {}: {count} records{but} in {took} s", side.label));
        Ok(StartResult { records, failures })
    }
}

/// Cells of a guest's plan without a record: it ended before.
fn missing(
    plan: &MeasurementPlan,
    records: &[Record],
    failures: &[Failure],
) -> anyhow::Result<Vec<Failure>> {
    let told = |cell: &Cell| {
        let is = |variant: &str, name: &str, load: &str| {
            (variant, name, load) == (&*cell.variant, &*cell.name, &*cell.load.name)
        };
        records.iter().any(|one| is(&one.variant, &one.name, &one.load))
            || failures.iter().any(|one| is(&one.variant, &one.name, &one.load))
    };
    let failure = |cell: Cell| Failure {
        variant: cell.variant,
        name: cell.name,
        load: cell.load.name,
        reason: "the boot ended before this start".to_owned(),
        ..Failure::default()
    };
    Ok(plan.cells()?.into_iter().filter(|cell| !told(cell)).map(failure).collect())
}

/// Whether a variant is one under this kernel.
pub(super) fn is_under(label: &str, variant: &str) -> bool {
    variant.strip_prefix(label).is_some_and(|rest| rest.is_empty() || rest.starts_with(", "))
}

/// The name of a plan's variant under a kernel.
fn within(label: &str, variant: &str) -> String {
    if variant.is_empty() { label.to_owned() } else { format!("{label}, {variant}") }
}

impl MeasuringMachine for Guests<'_> {
    fn start(&mut self, unit: &Unit<'_>) -> Result<StartResult, StartFailure> {
        let (label, (done, all)) = (&unit.cell.variant, unit.number);
        let now = Instant::now();
        let left = self.estimate.left(now, done, all);
        note(format_args!("{:>3}/{all} {label}{left}", done + 1));
        let side = &self.sides[unit.cell.side as usize];
        let expected = self.estimate.each(now, done);
        during(label, expected, || self.boot(side, unit.restart)).map_err(|error| {
            let (text, guest) = (format!("{error:#}"), error.downcast_ref::<Error>());
            match guest {
                Some(Error::Missing { .. }) => StartFailure::Place(text),
                _ => {
                    note(format_args!("        {label}: {text}"));
                    StartFailure::Start(text)
                }
            }
        })
    }

    fn keep(&mut self, unit: &Unit<'_>, given: &StartResult) -> Result<(), String> {
        self.store.keep(unit, given).map_err(|error| error.to_string())
    }

    fn ended(&self) -> bool {
        interrupt::asked()
    }

    /// Measurement and load are the guest's; the kernel precedes its variant.
    fn place(&self, record: &mut Record, cell: &Cell) {
        record.side += cell.side * variants(self.plan);
        record.variant = within(&cell.variant, &record.variant);
    }

    fn is_of(&self, record: &Record, cell: &Cell) -> bool {
        side(self.plan, record) == cell.side
    }
}
