//! `millstream-lab bench`: the rates that this machine sustains. One file a measurement.

mod atsc;
mod buffer;
mod convert;
mod costs;
mod faults;
mod graph;
mod offload;
mod packets;
mod peer;
mod rate;
mod ring;
mod soak;
mod wait;
mod way;
mod worker;

pub use packets::{places, refusals};

use millstream_cli::group;

group! {
    typed;
    /// Measures rates and costs on this machine.
    BenchVerb:
    Atsc(atsc), Buffer(buffer), Convert(convert), Faults(faults), Graph(graph), Offload(offload),
    Packets(packets), Rate(rate), Ring(ring), Soak(soak), Wait(wait),
    #[command(hide = true)]
    Worker(worker),
}
