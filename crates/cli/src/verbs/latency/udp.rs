//! `millstream latency udp`: round trips over UDP ports.

use super::trips::{self, TripArgs};
use crate::output::Report;
use millstream_lab::packets::Carriage;

/// Measures round trips of UDP datagrams over ports of any link, beside plain kernel UDP.
///
/// A process sends numbered datagrams, another one on its own CPU and in its own network sends them
/// back. Whole round trips only: halves need synchronised clocks. It shows its progress; all links
/// take about half a minute.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  sudo millstream latency udp
  millstream latency udp --loopback --packet-rate 10k --only 'udp port'
  sudo millstream latency udp --link xdp:mode=native,io=inline --load 10000,100000,300000")]
pub struct Args {
    #[command(flatten)]
    trips: TripArgs,
}

/// Succeeds when at least one row could be measured.
pub fn run(args: Args) -> anyhow::Result<Report> {
    trips::run(&args.trips, Carriage::Port)
}
