//! `millstream lab kernels`: a plan under several kernels, each in a guest.

use super::place::StoreArgs;
use super::planned::PlanArgs;
use crate::interrupt;
use crate::output::{Report, note};
use crate::verbs::guest::Options;
use anyhow::{Context, bail};
use millstream_guest::Kernel;
use millstream_lab::Record;
use millstream_lab::design::Plan;
use serde_json::json;

/// Where a guest finds its plan.
const GUEST_PLAN: &str = "/plan.toml";

/// Where its records go: the line that the host reads.
const GUEST_RECORDS: &str = "/dev/ttyS1";

/// Carries out a plan under several kernels: each boot is one fresh start of everything in it, and
/// the kernels' boots are in random order.
///
/// Results go to the store, a variant for each kernel, so that `lab compare last` and `lab report
/// last` show them side by side. Guests are emulated in software: differences in kind between
/// kernels show, times on silicon do not.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    planned: PlanArgs,

    /// Boots of each kernel, in place of the plan's restarts.
    #[arg(long, default_value_t = 6, value_name = "N")]
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
  millstream lab kernels plans/kernels.toml --kernel linux-image-6.1.0-56-amd64 \\
    --kernel linux-image-6.1.0-56-amd64 --kernel 'linux-image-6.1.0-56-amd64 -- --handicap-us 200'
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
    let mut store = args.store.open()?;
    note(format_args!("run     {name}"));
    let (mut booted, mut seconds, all) = (0, 0.0, args.boots as usize * sides.len());
    for round in 0..args.boots {
        // The first round is in the order given: so reports list the kernels, and changes are
        // looked for along it.
        let order =
            if round == 0 { (0..sides.len()).collect() } else { plan.order(round, sides.len()) };
        for index in order {
            if interrupt::asked() {
                bail!("ended after {booted} of {all} boots; their records are kept in {name}");
            }
            let side = &sides[index];
            let (records, took) = boot(&args.guest, &plan, side, round)?;
            let count = records.len();
            store.add(&placed(records, &name, &side.label, round))?;
            booted += 1;
            seconds += took;
            let label = &side.label;
            note(format_args!("{booted:>3}/{all} {label}: {count} records in {took:.0} s"));
        }
    }
    let labels: Vec<_> = sides.iter().map(|side| &side.label).collect();
    let text = format!(
        "{booted} boots of {} kernels, {seconds:.0} s; see `millstream lab compare last` and \
         `millstream lab report last`\n",
        sides.len()
    );
    Ok(Report::done(text, json!({ "run": name, "boots": booted, "variants": labels })))
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

/// Boots one kernel once, and takes the records of everything in the plan.
fn boot(
    options: &Options,
    plan: &Plan,
    side: &Side,
    round: u32,
) -> anyhow::Result<(Vec<Record>, f64)> {
    let mut inner = plan.clone();
    (inner.restarts, inner.restarts_max) = (1, 1);
    for measurement in &mut inner.measurements {
        measurement.args.extend_from_slice(&side.arguments);
    }
    inner.seed = plan.seed.wrapping_add(u64::from(round) << 16);
    let files = vec![(GUEST_PLAN.to_owned(), toml::to_string(&inner)?.into_bytes())];
    let arguments = ["lab", "run", GUEST_PLAN, "--no-store", "--records", GUEST_RECORDS];
    let arguments = arguments.map(str::to_owned).to_vec();
    let outcome = options.run(&side.kernel, &side.words, arguments, files)?;
    let label = &side.label;
    if outcome.status != 0 {
        let said = outcome.console.lines().rev().find(|line| line.starts_with("millstream"));
        bail!("the plan failed under {label}: {}", said.unwrap_or("--console shows why"));
    }
    // The text of the run stands on the same line behind the records.
    let lines = outcome.output.lines().filter(|line| line.starts_with('{'));
    let records: Result<Vec<_>, _> = lines.map(Record::parse).collect();
    let records = records.with_context(|| format!("under {label}"))?;
    anyhow::ensure!(!records.is_empty(), "the plan gave no record under {label}");
    Ok((records, outcome.took.as_secs_f64()))
}

/// Says of records that came from a guest which boot of which kernel they belong to.
fn placed(mut records: Vec<Record>, run: &str, label: &str, round: u32) -> Vec<Record> {
    for record in &mut records {
        run.clone_into(&mut record.run);
        record.variant = match record.variant.as_str() {
            "" => label.to_owned(),
            variant => format!("{label}, {variant}"),
        };
        record.restart = round;
    }
    records
}
