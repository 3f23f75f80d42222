//! `millstream host shield`: CPUs kept free for one application.

mod effect;
mod table;

use crate::interrupt;
use crate::numbers::{one_of, seconds_or_0, whole};
use crate::output::{CommandFailed, Report};
use anyhow::Context;
use effect::ShieldEffect;
use millstream_cpu::CpuSet;
use millstream_cpu::sched::{self, Class};
use millstream_host::journal::Journal;
use millstream_host::shield::{
    ChangedSettings, Napi, PacketHandling, Shield, ShieldReport, ShieldSpec,
};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

/// Keeps CPUs free while a command runs, or until Ctrl-C, and then restores all settings. Needs
/// root.
///
/// The shield moves threads and interrupts to the other CPUs, if they can be moved, and keeps the
/// shielded CPUs out of deep sleep states. It measures how fast threads wake up with and without
/// the shield, and prints the result even if the shield made it worse.
///
/// It ends with the exit status of the command, or with 128 plus the signal that killed it. The
/// command writes to standard output. With `--json` the JSON document is on standard output, and
/// the command's output goes to standard error. After a `kill -9` the next start of any
/// `millstream` command restores all settings.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  sudo millstream host shield 2-3 -- millstream rx --args addr=192.168.10.2 --rate 10e6 --out a.sc16
  sudo millstream host shield 3                        until Ctrl-C
  sudo millstream host shield 1 --under mygroup        only threads in that control group are moved
  sudo millstream host shield 3 --interface eth1 --napi with --napi-class fifo:60 --class fifo:50 \\
    -- millstream rx --args addr=192.168.10.2 --rate 6.25e6 --duration 10 --out x.sc16")]
pub struct Args {
    /// CPUs to keep free, for example 2-3.
    #[arg(value_name = "CPUS")]
    cpus: CpuSet,

    /// Only move threads of this control group (path from the root of the cpuset hierarchy).
    #[arg(long, value_name = "GROUP")]
    under: Option<PathBuf>,

    /// Do not move this process. Repeat the option for more.
    #[arg(long, value_name = "PID", value_parser = whole::<i32>(1..))]
    leave: Vec<i32>,

    /// Do not move interrupts.
    #[arg(long)]
    keep_interrupts: bool,

    /// Network interface whose packets --napi places. Repeat the option for more.
    #[arg(long, value_name = "INTERFACE", requires = "napi")]
    interface: Vec<String>,

    /// Where the kernel handles the packets of the interfaces: in soft interrupts or in NAPI
    /// threads. With NAPI threads, the interrupts of the interfaces go to the same CPUs.
    #[arg(long, value_name = "PLACE", requires = "interface", value_parser = one_of(&NAPI_PLACES))]
    napi: Option<PacketHandling>,

    /// Scheduling class of the NAPI threads: other, or fifo:1 to fifo:99.
    #[arg(long, value_name = "CLASS", default_value = "other", requires = "napi")]
    napi_class: Class,

    /// Scheduling class of the interfaces' interrupts, where these are threads (kernels with
    /// PREEMPT_RT, or the boot parameter threadirqs): other, or fifo:1 to fifo:99.
    #[arg(long, value_name = "CLASS", requires = "napi")]
    interrupt_class: Option<Class>,

    /// Scheduling class of the command. The shield warns of packet threads that do not have a
    /// higher one.
    #[arg(long, value_name = "CLASS", default_value = "other")]
    class: Class,

    /// How long to measure wake-ups, without and with the shield; 0 measures nothing.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = seconds_or_0)]
    measure: f64,

    /// Show what would be moved and set, and change nothing; the command does not run.
    #[arg(long)]
    dry_run: bool,

    /// Command to run on the shielded CPUs. Without a command the shield stays until Ctrl-C.
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

crate::results! {
    /// What a shield does.
    struct RaisedShield {
        /// What was moved and set, or would be.
        account: ShieldReport,
        /// True if nothing was changed.
        #[serde(skip_serializing_if = "Option::is_none")]
        dry_run: Option<bool>,
        /// The shield that was up and is down; all its fields are here.
        #[serde(flatten)]
        lowered: Option<LoweredShield>,
    }

    /// A shield that was up.
    struct LoweredShield {
        /// How fast threads woke up without it and with it.
        effect: ShieldEffect,
        /// True: it is down.
        lowered: bool,
        /// Settings that others changed or use.
        left: Vec<String>,
        /// Threads that the kernel moved.
        moved: Vec<String>,
        /// The command's exit status.
        command_status: Option<i32>,
    }
}

/// The places of packets' handling.
const NAPI_PLACES: [(&str, &str, PacketHandling); 4] = [
    (
        "soft",
        "No NAPI threads: in soft interrupts, on the CPU of the interrupt",
        PacketHandling::Soft,
    ),
    ("with", "In NAPI threads on the shielded CPUs", PacketHandling::With),
    ("away", "In NAPI threads on the other CPUs", PacketHandling::Away),
    ("anywhere", "In NAPI threads on all CPUs", PacketHandling::Anywhere),
];

/// Succeeds when the shield was raised and lowered, and the command succeeded; otherwise ends with
/// its status.
pub fn run(args: Args) -> anyhow::Result<Report> {
    let plan = ShieldSpec {
        cpus: args.cpus.clone(),
        under: args.under.clone(),
        // The measuring thread goes behind the shield by itself.
        leave: args.leave.iter().copied().chain([std::process::id() as i32]).collect(),
        interrupts: !args.keep_interrupts,
        awake: true,
        napi: args.napi.map(|place| Napi {
            interfaces: args.interface.clone(),
            place,
            class: args.napi_class,
            interrupts: args.interrupt_class,
        }),
        class: args.class,
    };
    let cpu = args
        .cpus
        .iter()
        .next()
        .context("no CPU is given: name the CPUs to keep free, for example `2-3`")?;
    if args.dry_run {
        let account = Shield::plan(Path::new("/"), &plan)?;
        let text = table::planned(&account, &plan, &args.command);
        return Ok(Report::of(text, &RaisedShield { account, dry_run: Some(true), lowered: None }));
    }
    let span = Duration::from_secs_f64(args.measure);
    interrupt::install();
    let before = effect::measure(cpu, span, None)?;
    let shield = Shield::raise(Path::new("/"), &plan, &Journal::of_process())?;
    let account = shield.account().clone();
    let behind = effect::measure(cpu, span, Some(&shield))?;
    let effect = ShieldEffect { cpu, before, behind };
    let told = table::account(&account) + &table::effect(&effect);
    crate::output::note(told.trim_end());
    let status = match args.command.as_slice() {
        [] => {
            crate::output::note("the shield is up; Ctrl-C lowers it");
            while !interrupt::asked() {
                std::thread::sleep(Duration::from_millis(50));
            }
            None
        }
        command => Some(attend(start(command, args.class, shield.door())?)?),
    };
    let ChangedSettings { left, moved } = shield.lower().context(
        "the shield could not restore all settings; the next start of any millstream command \
         tries again",
    )?;
    let failure = status
        .filter(|status| !status.success())
        .map(|status| format!("{}: {status}", args.command.first().map_or("", String::as_str)));
    let mut text = table::lowered(&left, &moved);
    let command_status = status.and_then(|status| status.code());
    let lowered = Some(LoweredShield { effect, lowered: true, left, moved, command_status });
    if status.is_some() {
        // Standard output belonged to the command.
        crate::output::note(text.trim_end());
        text.clear();
    }
    let raised = RaisedShield { account, dry_run: None, lowered };
    let report = Report::of(text, &raised).failing(failure);
    match status.map_or(0, crate::output::status_of) {
        0 => Ok(report),
        status => Err(CommandFailed { status, report }.into()),
    }
}

/// Starts a command that goes behind the shield before it begins. Its output goes to standard error
/// if standard output belongs to the document.
fn start(command: &[String], class: Class, door: &Path) -> anyhow::Result<Child> {
    let mut process = Command::new(&command[0]);
    process.args(&command[1..]);
    if crate::stdout::is_json() {
        let errors = std::io::stderr().as_fd().try_clone_to_owned();
        process.stdout(errors.context("cannot connect the command's output to standard error")?);
    }
    millstream_host::child::tie(&mut process, None);
    let door = std::fs::OpenOptions::new().write(true).open(door)?;
    // SAFETY: between fork and exec only write(2) is called, which is safe there; `0` is the
    // writer.
    unsafe { process.pre_exec(move || Ok(rustix::io::write(&door, b"0").map(drop)?)) };
    let child =
        process.spawn().with_context(|| format!("cannot start the command {}", command[0]))?;
    if class != Class::Other {
        sched::set_thread(child.id(), class).with_context(|| {
            format!("cannot set the scheduling class of the command to {class}")
        })?;
    }
    Ok(child)
}

/// Waits for it; forwards a request to end.
fn attend(mut child: Child) -> anyhow::Result<std::process::ExitStatus> {
    let mut told = false;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        interrupt::forward(&child, &mut told);
        std::thread::sleep(Duration::from_millis(20));
    }
}
