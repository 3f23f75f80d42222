//! `millstream-lab latency`: latencies of this machine, as distributions. One file a measurement.

mod class;
mod explain;
mod irq;
mod late;
mod launch;
mod link;
mod port;
mod radio;
mod timer;
mod trips;
mod udp;

use millstream_cli::group;

group! {
    typed;
    /// Measures latencies of this machine as distributions.
    LatencyVerb:
    Explain(explain), Irq(irq), Launch(launch), Link(link), Port(port), Radio(radio),
    Timer(timer), Udp(udp),
}
