//! `millstream latency link`: round trips of bare frames.

use super::trips::{self, TripArgs};
use crate::output::Report;
use millstream_lab::packets::Carriage;

/// Measures round trips of bare Ethernet frames over frame links, beside plain kernel UDP.
///
/// The frames have an Ethernet type of their own, so that no stack, ours or the kernel's, handles
/// them: only the link is left. `latency udp` shows the same with our stack above it. It shows its
/// progress; all links take about half a minute.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  sudo millstream latency link
  sudo millstream latency link --link xdp:mode=native --peer-link packet --wait adaptive
  sudo millstream latency link --class fifo:50 --count 20000 --histograms")]
pub struct Args {
    #[command(flatten)]
    trips: TripArgs,
}

/// Succeeds when at least one row could be measured.
pub fn run(args: Args) -> anyhow::Result<Report> {
    trips::run(&args.trips, Carriage::Frames)
}
