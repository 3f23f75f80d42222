//! `millstream-lab latency link`: round trips of bare frames.

pub use super::trips::results;
use super::trips::{self, TripArgs};
use crate::output::Report;
use millstream_lab::packets::Carriage;

/// Measures round trips of bare Ethernet frames over links, compared with plain kernel UDP.
///
/// The frames have an Ethernet type of their own, so neither Millstream's UDP/IP stack nor the
/// kernel's handles them. `latency udp` measures the same links with the stack. All links take
/// about half a minute.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  sudo millstream-lab latency link
  sudo millstream-lab latency link --link xdp:mode=native --peer-link packet --wait adaptive
  sudo millstream-lab latency link --class fifo:50 --count 20000 --histograms")]
pub struct Args {
    #[command(flatten)]
    trips: TripArgs,
}

/// Succeeds when at least one row could be measured.
pub fn run(args: Args) -> anyhow::Result<Report> {
    trips::run(&args.trips, Carriage::Frames)
}
