//! `millstream-lab lab recipe`: a script with which others repeat a run.

use super::place::StoreArgs;
use super::planned::PlanArgs;
use super::resume::begun_by;
use super::{LabVerb, kernels, run as plain};
use crate::output::Report;
use anyhow::bail;
use millstream_cpu::KernelOrigin;
use millstream_measure::Record;
use millstream_measure::design::MeasurementPlan;
use millstream_measure::store::Begun;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Prints a shell script with which others repeat a run: the plan, the kernels and the command.
///
/// The script fetches the package of each kernel of `lab kernels`, in the version that was
/// measured, and checks its SHA-256. For `lab run` it names the kernel, which must run already. A
/// result depends on the machine, too; `lab report` shows it.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  millstream-lab lab recipe last > recipe.sh
  millstream-lab lab recipe 'kernels 2026-11-20T03' > recipe.sh")]
pub struct Args {
    /// Name of the run, or an unambiguous beginning of it. `last` is the run that began last.
    #[arg(value_name = "RUN", default_value = "last")]
    run: String,

    #[command(flatten)]
    store: StoreArgs,
}

crate::results! {
    /// How others repeat a run.
    struct RunRecipe<'a> {
        /// The run.
        run: &'a str,
        /// The shell script.
        script: &'a str,
    }
}

/// Succeeds when the run has a record.
pub fn run(args: Args) -> anyhow::Result<Report> {
    let store = args.store.open()?;
    let begun = store.begun(&args.run)?;
    let records = store.records(&begun.run, None);
    anyhow::ensure!(
        !records.is_empty(),
        "the run {name} has no record yet, so its kernels are unknown: `millstream-lab lab resume \
         '{name}'` continues it",
        name = begun.run
    );
    let script = match begun_by(&begun, "make its recipe")? {
        LabVerb::Kernels(args) => of_guests(&begun, &args, &records)?,
        LabVerb::Run(args) => of_this_machine(&begun, &args, &records),
        _ => bail!("the command {:?} has no recipe", begun.command),
    };
    let results = RunRecipe { run: &begun.run, script: &script };
    Ok(Report::of(script.clone(), &results))
}

/// The script of a run under the kernel of the machine.
fn of_this_machine(begun: &Begun, args: &plain::Args, records: &[Record]) -> String {
    let mut script = head(&begun.run, records);
    for environment in records.iter().take(1).map(|record| &record.environment) {
        let release = environment.kernel_release.as_deref().unwrap_or("unknown");
        let origin = told(environment.kernel_origin.as_ref());
        let line = environment.kernel_command_line.as_deref().unwrap_or("unknown");
        let [release, line] = [release, line].map(one_line);
        let _ =
            writeln!(script, "# Under the kernel {release}{origin}\n# Its command line: {line}");
    }
    plan(&mut script, begun);
    repeat(&mut script, begun, &args.planned, |word| word.to_owned());
    script
}

/// The script of a run under kernels in virtual machines.
fn of_guests(begun: &Begun, args: &kernels::Args, records: &[Record]) -> anyhow::Result<String> {
    let measured = MeasurementPlan::parse(&begun.plan)?;
    let mut script = head(&begun.run, records);
    // The packages, and each kernel as the script gives it.
    let (mut packages, mut given) = (BTreeMap::new(), BTreeMap::new());
    for (index, kernel) in args.guest.kernels.iter().enumerate() {
        let record =
            records.iter().find(|record| kernels::side(&measured, record) as usize == index);
        let origin = record.and_then(|record| record.environment.kernel_origin.as_ref());
        let (name, words) = kernel.split_once(char::is_whitespace).unwrap_or((kernel, ""));
        let known = origin.and_then(|origin| {
            let package = origin.package.as_ref().zip(origin.version.as_ref());
            package.zip(origin.package_sha256.as_ref())
        });
        if let Some(((package, version), hash)) = known {
            let file = format!("{package}_{version}.deb");
            given.insert(kernel, format!("./{file} {words}").trim_end().to_owned());
            let of = record.map(|record| debian_architecture(&record.environment.architecture));
            let package = format!("{package}:{}", of.unwrap_or("amd64"));
            packages.insert(file, [package, version.clone(), hash.clone()]);
        } else {
            let origin = told(origin);
            let _ = writeln!(
                script,
                "# The kernel {} is no package: get the same one{origin}",
                one_line(name)
            );
        }
    }
    if !packages.is_empty() {
        script.push_str(FETCH);
    }
    for (file, [package, version, hash]) in &packages {
        let words = [package, version, file, hash].map(|word| quoted(word));
        let _ = writeln!(script, "fetch {}", words.join(" "));
    }
    plan(&mut script, begun);
    repeat(&mut script, begun, &args.planned, |word| {
        // Also `--kernel=…`, as one word.
        let value = word.strip_prefix("--kernel=").unwrap_or(word);
        let option = &word[..word.len() - value.len()];
        given.get(&value.to_owned()).map_or_else(|| word.to_owned(), |to| format!("{option}{to}"))
    });
    Ok(script)
}

/// The part that gets the packages.
const FETCH: &str = "
# A version that the archive no longer has: https://snapshot.debian.org/binary/PACKAGE/
fetch() {
  if [ ! -e \"$3\" ]; then
    folder=$(mktemp -d)
    (cd \"$folder\" && apt-get download \"$1=$2\")
    mv \"$folder\"/*.deb \"$3\"
    rmdir \"$folder\"
  fi
  echo \"$4  $3\" | sha256sum --check
}
";

/// Debian's name of an architecture.
fn debian_architecture(name: &str) -> &str {
    match name {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

fn head(run: &str, records: &[Record]) -> String {
    let version = records.last().map(|record| &*record.environment.millstream_version);
    let version = version.unwrap_or("unknown");
    format!(
        "#!/bin/sh\n# Repeats the run {}, which was measured with millstream {version}.\nset -eu\n",
        one_line(run)
    )
}

/// What is known of a kernel, behind its name.
fn told(origin: Option<&KernelOrigin>) -> String {
    let Some(origin) = origin else { return String::new() };
    let package = origin.package.as_ref().zip(origin.version.as_ref());
    let package =
        package.map_or_else(String::new, |(name, version)| format!(" of {name} {version}"));
    let hash = origin.image_sha256.as_ref().map(|hash| format!(", SHA-256 of its image {hash}"));
    one_line(&(package + &hash.unwrap_or_default()))
}

/// The plan's file, which no other of the folder is likely to be.
fn plan_file(run: &str) -> String {
    let name = run.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' });
    format!("{}.plan.toml", name.collect::<String>())
}

/// A text within a comment of the script: a line.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

fn plan(script: &mut String, begun: &Begun) {
    let plan = &begun.plan;
    let file = quoted(&plan_file(&begun.run));
    // A line that no plan has, so that it ends only there.
    let mut end = "END".to_owned();
    while plan.lines().any(|line| line == end) {
        end.push('_');
    }
    let _ = write!(script, "\ncat >{file} <<'{end}'\n{}\n{end}\n\n", plan.trim_end());
}

/// Writes the command that began the run, with the plan's file of the script.
fn repeat(script: &mut String, begun: &Begun, planned: &PlanArgs, change: impl Fn(&str) -> String) {
    let path = planned.plan.to_string_lossy();
    let words = begun.command.iter().skip(1).map(|word| match **word == *path {
        true => quoted(&plan_file(&begun.run)),
        false => quoted(&change(word)),
    });
    let words: Vec<_> = words.collect();
    let _ = writeln!(script, "millstream-lab {}", words.join(" "));
}

/// A word as the shell reads it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}
