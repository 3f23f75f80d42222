//! `millstream-lab lab resume`: resumes an incomplete run.

use super::place::StoreArgs;
use super::planned::Planned;
pub use super::planned::results;
use super::{LabVerb, kernels, run as plain};
use crate::output::{Report, note};
use crate::{Args as Laboratory, LaboratoryVerb};
use anyhow::{Context, bail};
use millstream_cli::parse;
use millstream_cpu::Environment;
use millstream_measure::Record;
use millstream_measure::design::MeasurementPlan;
use millstream_measure::store::Begun;
use std::ffi::OsString;
use std::path::Path;

/// Continues a run of `lab run` or `lab kernels` that was interrupted or in which starts failed.
///
/// It uses the plan and the command line that the store recorded when the run began. It measures
/// only the missing starts, in the order that the seed of the plan gives.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  sudo millstream-lab lab resume
  sudo millstream-lab lab resume 'timer 2026-11-20T03'")]
pub struct Args {
    /// Name of the run, or an unambiguous beginning of it. `last` is the run that began last.
    #[arg(value_name = "RUN", default_value = "last")]
    run: String,

    #[command(flatten)]
    store: StoreArgs,
}

/// Succeeds when the plan is complete.
pub fn run(args: Args) -> anyhow::Result<Report> {
    let mut store = args.store.open()?;
    let begun = store.begun(&args.run)?;
    let known = store.take_up(&begun.run)?;
    // Paths in its command line are relative to it.
    let folder = || {
        format!(
            "the run was begun in the folder {}, which cannot be entered now",
            begun.folder.display()
        )
    };
    std::env::set_current_dir(&begun.folder).with_context(folder)?;
    let plan = MeasurementPlan::parse(&begun.plan)?;
    let what = begun_by(&begun, "resume it")?;
    note(format_args!("resume  {} records are known", known.records.len()));
    let planned = Planned { plan, name: begun.run, known, begun: None };
    match what {
        LabVerb::Run(args) => {
            same_machine(&planned.known.records)?;
            plain::carry_on(&args, planned, Some(store))
        }
        LabVerb::Kernels(args) => kernels::carry_on(&args, planned, store),
        _ => bail!(
            "the command {:?} cannot be resumed: only `lab run` and `lab kernels` can",
            begun.command
        ),
    }
}

/// Returns what began a run. `what_to_do` with it, as the error says if this version cannot tell.
pub fn begun_by(begun: &Begun, what_to_do: &str) -> anyhow::Result<LabVerb> {
    let command: Vec<_> = begun.command.iter().map(OsString::from).collect();
    let Ok(Laboratory { what: LaboratoryVerb::Lab(lab) }) = parse(&command) else {
        bail!(
            "this millstream cannot read the command that began the run: {:?}; {what_to_do} with \
             the version that began it",
            begun.command
        );
    };
    Ok(lab.what)
}

/// Checks that results of two machines, or of two kernels, are not mixed.
fn same_machine(known: &[Record]) -> anyhow::Result<()> {
    let now = Environment::read(Path::new("/"), "");
    for Record { environment: then, .. } in known {
        let differs = [
            ("processor", &then.cpu_model, &now.cpu_model),
            ("kernel", &then.kernel_release, &now.kernel_release),
            ("kernel's build", &then.kernel_version, &now.kernel_version),
            ("kernel's command line", &then.kernel_command_line, &now.kernel_command_line),
        ]
        .into_iter()
        .find(|(_, then, now)| then != now);
        let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "unknown".to_owned());
        if let Some((what, then, now)) = differs {
            bail!(
                "the run was measured on another machine or kernel: the {what} was `{}` and is \
                 `{}` now; resume it there, or begin another run",
                text(then),
                text(now)
            );
        }
    }
    Ok(())
}
