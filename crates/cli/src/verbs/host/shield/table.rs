//! The result of a shield, as text.

use super::effect::ShieldEffect;
use crate::output::Join;
use crate::table::Table;
use millstream_host::packet_threads::PacketThreadKind;
use millstream_host::shield::{Interrupt, ShieldReport, ShieldSpec};
use millstream_stats::Histogram;
use std::fmt::Write;

/// Moved threads and interrupts, and those that could not be moved.
pub fn account(account: &ShieldReport) -> String {
    let mut text = format!(
        "{} kept free by {}; all others run on {}\n",
        account.cpus.named(),
        account.hierarchy,
        account.rest
    );
    let mut row = |name: &str, count: usize, which: String| {
        if count > 0 {
            let _ = writeln!(text, "  {name:<26} {count:>5}  {which}");
        }
    };
    row("threads moved", account.moved, String::new());
    row("threads of one CPU, kept", account.kept.len(), few(&account.kept));
    row("groups kept off them", account.narrowed.len(), few(&account.narrowed));
    row("groups that keep them", account.wide.len(), few(&account.wide));
    row("interrupts sent away", account.interrupts.len(), names(&account.interrupts));
    row("interrupts sent to them", account.near.len(), names(&account.near));
    row("interrupts that stay", account.stuck.len(), names(&account.stuck));
    let packets = account.packet_threads.iter().filter(|one| one.kind != PacketThreadKind::Soft);
    let packets: Vec<_> = packets
        .map(|one| format!("{} {} on {}", one.thread.name, one.thread.class, one.thread.allowed))
        .collect();
    row("threads of the network", packets.len(), few(&packets));
    if !account.awake {
        text += "  deep sleep of CPUs is not held off: /dev/cpu_dma_latency cannot be opened\n";
    }
    for warning in &account.warnings {
        let _ = writeln!(text, "  warning: {warning}");
    }
    text
}

/// What a shield would do.
pub fn planned(account: &ShieldReport, plan: &ShieldSpec, command: &[String]) -> String {
    let whose = match &plan.under {
        Some(group) => format!("of the group {}", group.display()),
        None => "of the machine".to_owned(),
    };
    let mut text = format!(
        "{} would be kept free by {}; threads {whose} that can be moved would run on {}\n",
        account.cpus.named(),
        account.hierarchy,
        account.rest
    );
    let mut row = |what: &str, which: String| {
        let _ = writeln!(text, "  {what:<26} {which}");
    };
    if !account.interrupts.is_empty() {
        row("interrupts sent away", names(&account.interrupts));
    }
    if let Some(napi) = &plan.napi {
        let place = format!("{:?}, {}", napi.place, napi.class).to_lowercase();
        row("threads of the network", format!("{}: {place}", napi.interfaces.join(", ")));
    }
    row("deep sleep of CPUs", "held off".to_owned());
    if !command.is_empty() {
        row("command", format!("{}, in class {}", command.join(" "), plan.class));
    }
    text + "nothing was changed: this was a dry run\n"
}

/// The users of interrupts.
fn names(list: &[Interrupt]) -> String {
    let name = |one: &Interrupt| match one.name.as_str() {
        "" => format!("irq {}", one.number),
        name => name.to_owned(),
    };
    list.iter().map(name).join(", ")
}

/// Settings left as they were when the shield was lowered.
pub fn lowered(left: &[String], moved: &[String]) -> String {
    let mut text = "the shield is down".to_owned();
    if left.is_empty() && moved.is_empty() {
        text += ", and all is as it was";
    }
    if !left.is_empty() {
        text += "; left, because others changed or use it: ";
        text += &left.join(", ");
    }
    if !moved.is_empty() {
        text += "; moved by the kernel, which binds them again before they run: ";
        text += &few(moved);
    }
    text + "\n"
}

/// The first of many names.
fn few(names: &[String]) -> String {
    const FEW: usize = 8;
    let more = if names.len() > FEW { ", …" } else { "" };
    names[..names.len().min(FEW)].join(", ") + more
}

/// Both distributions and the conclusion; empty without a measurement.
pub fn effect(effect: &ShieldEffect) -> String {
    if effect.before.count() == 0 || effect.behind.count() == 0 {
        return String::new();
    }
    let us = |ns: u64| format!("{:.1}", ns as f64 / 1e3);
    let quantile = |share| move |row: (_, &Histogram)| us(row.1.quantile_ns(share));
    let table = Table::of([("  before", &effect.before), ("  behind", &effect.behind)])
        .left("", |(name, _)| name)
        .right("median", quantile(0.5))
        .right("p99", quantile(0.99))
        .right("p99.9", quantile(0.999))
        .right("max", |(_, histogram)| us(histogram.max_ns()));
    let mut text = format!(
        "how late an ordinary thread is on CPU {}, microseconds\n{}",
        effect.cpu,
        table.text()
    );
    let ratio = effect.behind.quantile_ns(0.99) as f64 / effect.before.quantile_ns(0.99) as f64;
    let verdict = match ratio {
        better if better < 0.8 => "a gain",
        worse if worse > 1.25 => "a loss",
        _ => "no clear difference",
    };
    let _ = writeln!(text, "  p99 behind the shield is {ratio:.2} times that before: {verdict}");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(ns: u64) -> Histogram {
        let mut histogram = Histogram::default();
        (0..100).for_each(|_| histogram.record(ns));
        histogram
    }

    #[test]
    fn a_loss_is_told_like_a_gain() {
        let text = |before, behind| {
            effect(&ShieldEffect { cpu: 1, before: of(before), behind: of(behind) })
        };
        assert!(text(100_000, 10_000).contains(": a gain"), "{}", text(100_000, 10_000));
        assert!(text(10_000, 100_000).contains(": a loss"));
        assert!(text(10_000, 10_000).contains("no clear difference"));
        let nothing = ShieldEffect { cpu: 1, before: Histogram::default(), behind: of(1) };
        assert_eq!(effect(&nothing), "");
    }

    #[test]
    fn what_could_not_be_moved_is_named() {
        let stuck = vec![Interrupt { number: 36, name: "virtio1-req.0".into() }];
        let kept = vec!["ksoftirqd/1".to_owned()];
        let text = account(&ShieldReport { moved: 7, kept, stuck, ..ShieldReport::default() });
        assert!(text.contains("ksoftirqd/1") && text.contains("virtio1-req.0"), "{text}");
        assert!(lowered(&["/x (0)".into()], &[]).contains("use it: /x (0)"));
        let moved = lowered(&[], &["thread rcu_gp (0-3, was 2)".into()]);
        assert!(moved.contains("by the kernel") && moved.contains("was 2)"), "{moved}");
        assert!(lowered(&[], &[]).ends_with("all is as it was\n"));
        assert!(!text.contains("sent away") && text.contains("cpu_dma_latency"), "{text}");
    }
}
