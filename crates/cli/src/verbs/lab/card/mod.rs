//! `millstream lab card`: a network card over DPDK and vfio-pci, from refusal to its return.

mod cable;
mod facts;
mod process;
mod refused;
mod rig;
mod stream;

use crate::numbers::Whole;
use crate::output::{Report, note};
use crate::{interrupt, numbers};
use rig::CardSetup;
use serde_json::{Value, json};
use std::fmt::Write;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::Instant;

/// Tests a network card with DPDK and vfio-pci. The emulated radio runs at the other end of the
/// cable.
///
/// The command takes the card from the kernel, runs streams over it, and gives it back. It tests
/// that the link refuses the card before vfio-pci has it, and that the configuration is imported
/// from the kernel. It receives one stream and transmits another without a loss. It kills a process
/// in the middle of a stream, and pulls the cable if --cable is given. `millstream lab guest
/// --cards vmxnet3` starts a virtual machine with everything that the test needs.
#[derive(clap::Args)]
pub struct Args {
    /// PCI address of the card. The kernel cannot use the card during the test.
    #[arg(long, value_name = "ADDRESS")]
    card: String,

    /// Interface of the emulated radio, at the other end of the cable. The default is the interface
    /// of the only other card.
    #[arg(long, value_name = "INTERFACE")]
    interface: Option<String>,

    /// Serial line to QEMU's monitor, and the name of the card there, to pull the virtual cable.
    #[arg(long, value_name = "LINE:NAME")]
    cable: Option<String>,

    /// Number of samples in each stream.
    #[arg(long, value_name = "N", default_value_t = 1_000_000,
          value_parser = Whole(clap::value_parser!(u64)))]
    nsamps: u64,

    /// Sample rate, in Hz.
    #[arg(long, value_name = "HZ", default_value_t = 250e3, value_parser = numbers::rate)]
    rate: f64,

    /// More options of the link, for example memory_mib=256.
    #[arg(long, value_name = "OPTIONS", default_value = "memory_mib=256")]
    link_options: String,
}

/// The host's address and the radio's.
const HOST: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
const RADIO: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);
const PREFIX: u8 = 24;

/// The result of a step: lines that show it, or the error.
type CardResult = anyhow::Result<Vec<String>>;
type Step = (&'static str, fn(&CardSetup) -> CardResult);

/// The steps in order. The card is the kernel's in the first ones, and again after the last.
const STEPS: [Step; 15] = [
    ("the machine", facts::machine),
    ("the kernel has the card: refused", refused::by_the_kernel),
    ("net import, before it is taken", refused::import),
    ("doctor dpdk, before it is taken", facts::doctor_before),
    ("uio_pci_generic has it: refused", refused::as_unsafe),
    ("bound to vfio-pci", facts::bind),
    ("doctor dpdk, bound", facts::doctor_bound),
    ("receive, by the imported file", stream::receive),
    ("kill -9 in the middle of a stream", stream::kill),
    ("receive again", stream::receive),
    ("transmit", stream::transmit),
    ("the cable is pulled: the stream ends", cable::pull),
    ("several queues", stream::queues),
    ("receive, with huge pages", stream::receive_huge),
    ("given back to the kernel", facts::give_back),
];

/// Runs all steps, also after a failed one.
pub fn run(args: Args) -> anyhow::Result<Report> {
    interrupt::install();
    let rig = CardSetup::new(&args)?;
    let (mut text, mut steps, mut failed) = (String::new(), Vec::new(), Vec::new());
    for (name, work) in STEPS {
        if interrupt::asked() {
            let _ = facts::give_back(&rig);
            anyhow::bail!("interrupted");
        }
        let began = Instant::now();
        let outcome = work(&rig);
        let seconds = began.elapsed().as_secs_f64();
        let verdict = if outcome.is_ok() { "ok" } else { "FAILED" };
        let lines = outcome.unwrap_or_else(|error| {
            failed.push(name);
            crate::output::describe(&error).lines().map(str::to_owned).collect()
        });
        note(format_args!("{verdict:<6} {seconds:5.1} s  {name}"));
        if verdict != "ok" {
            lines.iter().for_each(|line| note(format_args!("         {line}")));
        }
        let _ = writeln!(text, "\n{verdict:<6} {name} ({seconds:.1} s)");
        for line in &lines {
            let _ = writeln!(text, "       {line}");
        }
        steps.push(step(name, verdict, seconds, &lines));
    }
    let failure = (!failed.is_empty()).then(|| format!("failed: {}", failed.join(", ")));
    Ok(Report { text, results: json!({ "card": args.card, "steps": steps }), failure })
}

fn step(name: &str, verdict: &str, seconds: f64, lines: &[String]) -> Value {
    json!({ "name": name, "verdict": verdict, "seconds": seconds, "lines": lines })
}

/// Folder of the set-up's files.
fn folder() -> PathBuf {
    std::env::temp_dir()
}
