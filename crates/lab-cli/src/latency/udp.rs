//! `millstream-lab latency udp`: round trips over UDP ports.

pub use super::trips::results;
use super::trips::{self, TripArgs};
use crate::output::Report;
use millstream_lab::packets::Carriage;

/// Measures round trips of UDP datagrams over any link, compared with plain kernel UDP.
///
/// One process sends numbered datagrams. A second process, on its own CPU and in its own network
/// namespace, returns them. The two directions cannot be separated, because that would need
/// synchronised clocks. All links take about half a minute.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  sudo millstream-lab latency udp
  millstream-lab latency udp --loopback --packet-rate 10k --only 'udp port'
  sudo millstream-lab latency udp --link xdp:mode=native,io=inline --load 10000,100000,300000")]
pub struct Args {
    #[command(flatten)]
    trips: TripArgs,
}

/// Succeeds when at least one row could be measured.
pub fn run(args: Args) -> anyhow::Result<Report> {
    trips::run(&args.trips, Carriage::Port)
}
