//! The copies to other devices and back, which blocks that run there make.

use millstream_flow::{BlockStats, Snapshot};

/// A line for each block that runs on a device: rates since `before`, time of a batch, and samples
/// that the CPU calculated in place of the device.
pub fn lines(before: Option<&Snapshot>, now: &Snapshot, elapsed_s: f64) -> Vec<String> {
    let old = |name: &str| before.and_then(|before| before.block(name));
    now.blocks.iter().filter_map(|block| line(old(&block.name), block, elapsed_s)).collect()
}

fn line(before: Option<&BlockStats>, block: &BlockStats, elapsed_s: f64) -> Option<String> {
    let value = |name| block.metric(name).filter(|value| value.is_finite());
    let since = |name| {
        let before = before.and_then(|before| before.metric(name)).unwrap_or(0.0);
        (value(name).unwrap_or(0.0) - before) / elapsed_s.max(1e-9) / 1e6
    };
    value("to_device_bytes")?;
    let name = &block.name;
    let mut text = format!(
        "{name} > device {:.1} MB/s, device > {name} {:.1} MB/s",
        since("to_device_bytes"),
        since("from_device_bytes")
    );
    if let (Some(p50), Some(p99)) = (value("device_latency_us"), value("device_latency_p99_us")) {
        text += &format!(", a batch {p50:.0} µs (p99 {p99:.0} µs)");
    }
    for (metric, cause) in [
        ("accelerator_stall_items", "stalled"),
        ("accelerator_lost_items", "was lost"),
        ("accelerator_wrong_items", "was wrong"),
    ] {
        let items = value(metric).unwrap_or(0.0);
        if items > 0.0 {
            text += &format!(", {items:.0} samples on the CPU because the device {cause}");
        }
    }
    Some(text)
}
