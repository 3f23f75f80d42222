//! `millstream lab kernels`: a plan under several kernels, each in a guest.

use super::place::StoreArgs;
use super::planned::PlanArgs;
use super::run::table;
use crate::interrupt;
use crate::output::{Report, note};
use crate::verbs::guest::Options;
use anyhow::bail;
use millstream_guest::Kernel;
use millstream_lab::Record;
use millstream_lab::design::{
    Bench, Cell, Plan, PlannedMeasurement, Unit, Variant, run as carry_out,
};
use millstream_lab::store::Store;

/// Where a guest finds its plan.
const GUEST_PLAN: &str = "/plan.toml";

/// Where its records go: the line that the host reads.
const GUEST_RECORDS: &str = "/dev/ttyS1";

/// Carries out a plan under several kernels: each boot is one fresh start of everything in it, and
/// the kernels' boots are in random order, until each figure is known well enough.
///
/// Results go to the store, a variant for each kernel, so that `lab compare last` and `lab report
/// last` show them side by side. Guests are emulated in software: differences in kind between
/// kernels show, times on silicon do not.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    planned: PlanArgs,

    /// Boots of each kernel, in place of the plan's restarts; up to its `restarts_max` follow while
    /// a figure is not known well enough.
    #[arg(long, default_value_t = 6, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    boots: u32,

    #[command(flatten)]
    store: StoreArgs,

    #[command(flatten)]
    guest: Options,
}

const EXAMPLES: &str = "\
A kernel may be followed by words for its command line, and by `--` and arguments that every
measurement gets beside its own; given twice it is compared with itself.

Examples:
  millstream lab kernels plans/kernels.toml --kernel linux-image-6.1.0-56-amd64 \\
    --kernel linux-image-6.1.0-56-rt-amd64 --kernel 'linux-image-6.12-amd64 mitigations=off'
  millstream lab kernels plans/kernel-delay.toml --module sch_netem \\
    --kernel linux-image-6.1.0-56-amd64 --kernel linux-image-6.1.0-56-amd64 \\
    --kernel 'linux-image-6.1.0-56-amd64 millstream.netem_us=lo:200'
  millstream lab report last --title 'Three kernels' --out kernels.html";

/// One side of the comparison.
struct Side {
    label: String,
    kernel: Kernel,
    words: Vec<String>,
    /// What every measurement gets beside its own arguments.
    arguments: Vec<String>,
}

/// Succeeds when every boot gave its records.
pub fn run(args: Args) -> anyhow::Result<Report> {
    interrupt::install();
    let (plan, name) = args.planned.read()?;
    let sides = sides(&args.guest)?;
    let boots = boots(&plan, &sides, args.boots);
    let store = args.store.open()?;
    store.begin(&name)?;
    note(format_args!("run     {name}"));
    let mut guests = Guests { options: &args.guest, plan: &plan, sides: &sides, store };
    let outcome = carry_out(&boots, &name, &mut guests)?;
    let text =
        table(&boots, &outcome) + "see `millstream lab compare last` and `lab report last`\n";
    let failure = interrupt::asked().then(|| "ended before the plan was".to_owned());
    Ok(Report { text, results: serde_json::to_value(&outcome)?, failure })
}

/// The plan of the boots: a variant for each kernel, one start of which is a boot.
fn boots(plan: &Plan, sides: &[Side], count: u32) -> Plan {
    let variant = |side: &Side| Variant { name: side.label.clone(), args: Vec::new() };
    // A plan that does not say how far to go on ends where it is told to.
    let goes_on = plan.restarts_max > plan.restarts;
    let restarts_max = if goes_on { plan.restarts_max.max(count) } else { count };
    Plan {
        restarts: count,
        restarts_max,
        loads: vec!["idle".to_owned()],
        variants: sides.iter().map(variant).collect(),
        measurements: vec![PlannedMeasurement { name: "boot".to_owned(), args: Vec::new() }],
        ..plan.clone()
    }
}

/// The kernels with their labels, told apart when one is given twice.
fn sides(options: &Options) -> anyhow::Result<Vec<Side>> {
    let mut sides: Vec<Side> = Vec::new();
    for given in &options.kernels {
        let mut words = given.split_whitespace().map(str::to_owned);
        let Some(wanted) = words.next() else { bail!("--kernel is empty: name a kernel") };
        let kernel = options.kernel(&wanted)?;
        let all: Vec<String> = words.collect();
        // As on the kernel's own command line: what stands behind is not for the kernel.
        let mut parts = all.splitn(2, |word| word == "--").map(<[String]>::to_vec);
        let words = parts.next().unwrap_or_default();
        let arguments = parts.next().unwrap_or_default();
        let mut label = [vec![kernel.name.clone()], all].concat().join(" ");
        while sides.iter().any(|side| side.label == label) {
            label.push_str(" again");
        }
        sides.push(Side { label, kernel, words, arguments });
    }
    Ok(sides)
}

/// Guests as the place where a plan is carried out: every start is a boot.
struct Guests<'g> {
    options: &'g Options,
    plan: &'g Plan,
    sides: &'g [Side],
    store: Store,
}

impl Guests<'_> {
    /// Boots a kernel once, and takes the records of everything in the plan.
    fn boot(&self, side: &Side, round: u32) -> anyhow::Result<Vec<Record>> {
        let mut inner = self.plan.clone();
        (inner.restarts, inner.restarts_max) = (1, 1);
        for measurement in &mut inner.measurements {
            measurement.args.extend_from_slice(&side.arguments);
        }
        inner.seed = self.plan.seed.wrapping_add(u64::from(round) << 16);
        let files = vec![(GUEST_PLAN.to_owned(), toml::to_string(&inner)?.into_bytes())];
        let arguments = ["lab", "run", GUEST_PLAN, "--no-store", "--records", GUEST_RECORDS];
        let arguments = arguments.map(str::to_owned).to_vec();
        let outcome = self.options.run(&side.kernel, &side.words, arguments, files)?;
        if outcome.status != 0 {
            let said = outcome.console.lines().rev().find(|line| line.starts_with("millstream"));
            bail!("the plan failed: {}", said.unwrap_or("--console shows why"));
        }
        // The text of the run stands on the same line behind the records.
        let lines = outcome.output.lines().filter(|line| line.starts_with('{'));
        let records = lines.map(Record::parse).collect::<Result<Vec<_>, _>>()?;
        anyhow::ensure!(!records.is_empty(), "the plan gave no record");
        let (count, took) = (records.len(), outcome.took.as_secs());
        note(format_args!("        {}: {count} records in {took} s", side.label));
        Ok(records)
    }
}

impl Bench for Guests<'_> {
    fn start(&mut self, unit: &Unit<'_>) -> Result<Vec<Record>, String> {
        let (label, (done, all)) = (&unit.cell.variant, unit.number);
        note(format_args!("{:>3}/{all} {label}", done + 1));
        let side = self.sides.iter().find(|side| side.label == *label);
        let side = side.ok_or_else(|| format!("there is no kernel {label}"))?;
        self.boot(side, unit.restart).map_err(|error| format!("{error:#}"))
    }

    fn keep(&mut self, records: &[Record]) -> Result<(), String> {
        self.store.add(records).map(drop).map_err(|error| error.to_string())
    }

    fn ended(&self) -> bool {
        interrupt::asked()
    }

    /// Measurement and load are the guest's, the kernel comes before its variant.
    fn place(&self, record: &mut Record, cell: &Cell) {
        record.side += cell.side * self.plan.variants.len().max(1) as u32;
        record.variant = match record.variant.as_str() {
            "" => cell.variant.clone(),
            variant => format!("{}, {variant}", cell.variant),
        };
    }
}
