//! The costs of packets as records.

use super::super::costs::cost;
use super::Args;
use millstream_lab::packets::{PacketTable, WindowCounts, Workload};
use millstream_measure::Measured;
use serde::Serialize;

/// Returns the CPU time of a packet on both sides of each row, once for each repetition.
pub fn of(
    args: &Args,
    workload: Workload,
    table: &PacketTable,
    topology: &str,
    started: &str,
) -> Vec<Measured> {
    let mut records = Vec::new();
    for line in &table.lines {
        let traced = line.traced.as_ref();
        for run in line.taken.outcomes() {
            let sides = [
                ("send", &run.sender, traced.map(|traced| &traced.sender)),
                ("receive", &run.receiver, traced.map(|traced| &traced.receiver)),
            ];
            for (name, side, traced) in sides.into_iter().filter(|(_, side, _)| side.packets > 0) {
                let (row, bytes, work) = (&line.name, table.frame_bytes, workload.name());
                let series = format!("{row}, {work}, {bytes} bytes, {name}: CPU time of a packet");
                let parameters = Parameters {
                    row,
                    frame_bytes: bytes,
                    batch: args.batch,
                    receive_batch: args.receive_batch,
                    workload,
                    rate_pps: args.packet_rate,
                };
                let ns = side.cpu_ns_per_packet();
                let mut record = cost("packets", series, ns, started, &parameters);
                record.seconds = side.seconds;
                topology.clone_into(&mut record.topology);
                if let Some(calls) = calls_per_packet(side.calls_per_packet, traced) {
                    record.details.insert("calls_per_packet".to_owned(), calls.into());
                }
                records.push(record);
            }
        }
    }
    records
}

#[derive(Serialize)]
struct Parameters<'a> {
    row: &'a str,
    frame_bytes: usize,
    batch: Option<u32>,
    receive_batch: Option<u32>,
    workload: Workload,
    rate_pps: Option<f64>,
}

/// System calls per packet: the link's count, or the kernel's where the link does not count.
pub(super) fn calls_per_packet(link: Option<f64>, traced: Option<&WindowCounts>) -> Option<f64> {
    link.or_else(|| traced?.traced_per_packet)
}
