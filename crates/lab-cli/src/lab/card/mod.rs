//! `millstream-lab lab card`: a network card over DPDK and vfio-pci, from refusal to its return.

mod cable;
mod facts;
mod outside;
mod process;
mod refused;
mod rig;
mod stream;
mod uio;

use crate::experiment::{Experiment, Unmeasured, in_rounds};
use crate::numbers::whole;
use crate::output::{Join, Report, note};
use crate::{interrupt, numbers};
use rig::CardSetup;
use std::fmt::Write;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::Instant;

/// A driver that gives a program the registers and the interrupt of a card, and no protection.
const UIO: &str = "uio_pci_generic";

/// Tests a network card with DPDK and vfio-pci. The emulated radio runs at the other end of the
/// cable.
///
/// The command takes the card from the kernel, runs streams over it, and gives it back. It tests
/// that the link refuses the card before vfio-pci has it, and that the configuration is imported
/// from the kernel. It receives one stream and transmits another without a loss. It kills a process
/// in the middle of a stream, and pulls the cable if --cable is given. `millstream-lab lab guest
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

    /// Pull the virtual cable of a card in QEMU. LINE is the serial device that leads to QEMU's
    /// monitor, and NAME is the id of the card there, as in /dev/ttyS1:net0.
    #[arg(long, value_name = "LINE:NAME")]
    cable: Option<String>,

    /// PCI address of a device `edu` of QEMU. The test makes it access memory that is not mapped
    /// for it. The IOMMU must refuse that, and the kernel's log must report it.
    #[arg(long, value_name = "ADDRESS")]
    dma_tester: Option<String>,

    /// Also receive and transmit over uio_pci_generic. Without the protection of an IOMMU the card
    /// can then write to any memory of this machine.
    #[arg(long)]
    unsafe_uio: bool,

    /// Number of samples in each stream.
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = whole::<u64>(..))]
    nsamps: u64,

    /// Sample rate, in Hz.
    #[arg(long, value_name = "HZ", default_value_t = 250e3, value_parser = numbers::rate)]
    rate: f64,

    /// More options of the link, for example memory_mib=256.
    #[arg(long, value_name = "OPTIONS", default_value = "memory_mib=256")]
    link_options: String,

    /// Show what would be taken, set and tried, and do nothing of it.
    #[arg(long)]
    dry_run: bool,
}

/// The host's address and the radio's.
const HOST: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
const RADIO: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);
const PREFIX: u8 = 24;

/// The result of a step: lines that show it, or the error.
type CardResult = anyhow::Result<Vec<String>>;
type Step = (&'static str, fn(&CardSetup) -> CardResult);

/// The steps in order. The card is the kernel's in the first ones, and again after the last.
const STEPS: [Step; 17] = [
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
    ("both directions over UIO, unprotected", uio::streams),
    ("an access to memory that is not mapped", outside::unmapped),
    ("given back to the kernel", facts::give_back),
];

crate::results! {
    /// The test of a card.
    struct CardResults<'a> {
        /// Its PCI address.
        card: &'a str,
        /// Each step.
        steps: Vec<CardStep>,
    }

    /// With `--dry-run`: the test that would be made.
    struct CardPlan<'a> {
        /// Its PCI address.
        card: &'a str,
        /// True: nothing was done.
        dry_run: bool,
        /// The names of the steps.
        steps: Vec<&'static str>,
    }

    /// A step.
    pub struct CardStep {
        /// Its name.
        name: &'static str,
        /// `ok` or `FAILED`.
        verdict: &'static str,
        /// How long it took, seconds.
        seconds: f64,
        /// What shows it, or the error.
        lines: Vec<String>,
    }
}

/// Runs all steps, also after a failed one.
pub fn run(args: Args) -> anyhow::Result<Report> {
    interrupt::install();
    let mut rig = CardSetup::find(&args)?;
    if args.dry_run {
        let steps = STEPS.iter().map(|step| step.0).collect();
        let results = CardPlan { card: &args.card, dry_run: true, steps };
        return Ok(Report::of(planned(&rig), &results));
    }
    rig.prepare()?;
    let all = in_rounds(&mut rig, &STEPS, 1);
    if all.ended.is_some() {
        let _ = facts::give_back(&rig);
    }
    let steps: Vec<_> = all.whole()?.outcomes().collect();
    let mut text = String::new();
    for CardStep { name, verdict, seconds, lines } in &steps {
        let _ = writeln!(text, "\n{verdict:<6} {name} ({seconds:.1} s)");
        for line in lines {
            let _ = writeln!(text, "       {line}");
        }
    }
    let failed = steps.iter().filter(|step| step.verdict != "ok").map(|step| step.name);
    let failed = failed.join(", ");
    let failure = (!failed.is_empty()).then(|| format!("failed: {failed}"));
    Ok(Report::of(text, &CardResults { card: &args.card, steps }).failing(failure))
}

impl Experiment for CardSetup {
    type Case = Step;
    type Outcome = CardStep;

    fn name(&self, (name, _): &Step) -> String {
        (*name).to_owned()
    }

    fn step(&mut self, (name, work): &Step, _: usize) -> Result<CardStep, Unmeasured> {
        let began = Instant::now();
        let outcome = work(self);
        let seconds = began.elapsed().as_secs_f64();
        let verdict = if outcome.is_ok() { "ok" } else { "FAILED" };
        note(format_args!("{verdict:<6} {seconds:5.1} s  {name}"));
        let lines = outcome.unwrap_or_else(|error| {
            let lines = crate::output::describe(&error);
            lines.lines().for_each(|line| note(format_args!("         {line}")));
            lines.lines().map(str::to_owned).collect()
        });
        Ok(CardStep { name, verdict, seconds, lines })
    }
}

/// What would be done.
fn planned(rig: &CardSetup) -> String {
    let CardSetup { card, name, driver, radio, .. } = rig;
    let steps: String = STEPS.iter().map(|(step, _)| format!("  {step}\n")).collect();
    format!(
        "{card} would be taken from {driver}, which calls it {name}, and be given back\n{name} \
         would be set up with {HOST}/{PREFIX}, and {radio}, where the radio would be, with \
         {RADIO}/{PREFIX}\nsteps:\n{steps}nothing was changed: this was a dry run\n"
    )
}

/// Folder of the set-up's files.
fn folder() -> PathBuf {
    std::env::temp_dir()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dry_run_names_the_card_the_addresses_and_every_step() {
        let text = planned(&CardSetup {
            card: "0000:00:04.0".to_owned(),
            name: "eth1".to_owned(),
            driver: "e1000e".to_owned(),
            radio: "eth2".to_owned(),
            ..CardSetup::default()
        });
        assert!(text.starts_with("0000:00:04.0 would be taken from e1000e"), "{text}");
        assert!(text.contains("eth2, where the radio would be, with 10.77.0.2/24"), "{text}");
        assert!(STEPS.iter().all(|(step, _)| text.contains(step)), "{text}");
        assert!(text.ends_with("nothing was changed: this was a dry run\n"), "{text}");
    }
}
