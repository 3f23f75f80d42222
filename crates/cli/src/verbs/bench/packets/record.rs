//! The costs of packets as records.

use super::super::costs::Costs;
use super::Args;
use millstream_lab::packets::{PacketTable, WindowCounts, Workload};
use serde_json::json;

/// Adds the CPU time of a packet on both sides of each row.
pub fn add(costs: &mut Costs, args: &Args, workload: Workload, table: &PacketTable) {
    for line in &table.lines {
        let traced = line.traced.as_ref();
        for (_, run) in &line.runs {
            let sides = [
                ("send", &run.sender, traced.map(|traced| &traced.sender)),
                ("receive", &run.receiver, traced.map(|traced| &traced.receiver)),
            ];
            for (name, side, traced) in sides.into_iter().filter(|(_, side, _)| side.packets > 0) {
                let series = format!("{}, {} bytes, {name}", line.name, table.frame_bytes);
                let parameters = json!({
                    "row": line.name, "frame_bytes": table.frame_bytes, "batch": args.batch,
                    "workload": workload, "rate_pps": args.packet_rate,
                });
                let details = json!({
                    "time_of": "a packet", "calls_per_packet": calls(side, traced),
                });
                costs.add(series, side.cpu_ns_per_packet(), parameters, details);
            }
        }
    }
}

/// System calls per packet; the kernel's count replaces the missing count of a link.
fn calls(side: &WindowCounts, traced: Option<&WindowCounts>) -> Option<f64> {
    side.calls_per_packet.or_else(|| traced?.traced_per_packet)
}
