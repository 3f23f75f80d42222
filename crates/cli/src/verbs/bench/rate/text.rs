//! Measurements as text.

use super::contender::{Details, RateAttempt};
use millstream_lab::rate::{Outcome, RxChannelOutcome, RxOutcome, TxChannelOutcome, TxOutcome};
use millstream_measure::picture::short_time;
use std::collections::BTreeMap;
use std::fmt::Write;

/// One measurement in a few lines.
pub fn of_attempt(attempt: &RateAttempt) -> String {
    let (mut text, seconds) = match &attempt.details {
        Details::Rx(outcome) => (of_receive(outcome), outcome.seconds),
        Details::Tx(outcome) => (of_transmit(outcome), outcome.seconds),
        Details::Duplex(both) => {
            (of_receive(&both.rx) + &of_transmit(&both.tx), both.rx.seconds.max(both.tx.seconds))
        }
        Details::Uhd(outcome) => return format!("{:?}\n", outcome.summary),
    };
    if let Some(radio_s) = attempt.radio_cpu_s {
        let busy = radio_s / seconds * 100.0;
        let _ = writeln!(text, "  the emulated radio was busy for {busy:.0} % of that time");
    }
    text
}

fn of_receive(outcome: &RxOutcome) -> String {
    let mut text = sustained("receive", outcome);
    let [median, p99, worst] = outcome.lag_ns.unwrap_or_default().map(short_time);
    let _ = writeln!(text, "  behind the radio {median} (p99 {p99}, worst {worst})");
    outcome.channels.iter().for_each(|channel| of_channel(channel, &mut text));
    text
}

fn of_transmit(outcome: &TxOutcome) -> String {
    let mut text = sustained("transmit", outcome);
    outcome.channels.iter().for_each(|channel| of_source(channel, &mut text));
    text
}

/// The common first line of both directions.
fn sustained<C>(way: &str, outcome: &Outcome<C>) -> String {
    let Outcome { seconds, cpu_s_per_gigasample, channels, .. } = outcome;
    let channels = channels.len();
    let [asked, sustained] = [outcome.rate_hz, outcome.sustained_hz].map(|rate_hz| rate_hz / 1e6);
    let verdict = if outcome.lossless { "nothing lost" } else { "LOST SAMPLES" };
    format!(
        "{way} {channels} x {asked:.3} MS/s for {seconds:.2} s: {sustained:.3} MS/s sustained, \
         {verdict}, {cpu_s_per_gigasample:.3} CPU s per gigasample\n"
    )
}

fn of_channel(channel: &RxChannelOutcome, text: &mut String) {
    let _ = writeln!(
        text,
        "  ledger {}  {} expected = {} delivered; lost: {}",
        channel.channel,
        channel.expected,
        channel.delivered,
        losses(&channel.lost, channel.balances)
    );
    let _ = writeln!(
        text,
        "  window {}  {}; {} overruns, {} queue drops",
        channel.channel,
        window(channel.window_bytes, channel.window_median, channel.window_p99),
        channel.overruns,
        channel.queue_drops,
    );
}

fn of_source(channel: &TxChannelOutcome, text: &mut String) {
    let _ = writeln!(
        text,
        "  ledger {}  {} accepted = {} transmitted + {} unknown; lost: {}",
        channel.channel,
        channel.accepted,
        channel.transmitted,
        channel.unknown,
        losses(&channel.lost, channel.balances)
    );
    let _ = writeln!(
        text,
        "  window {}  {}; {} underflows, {} late, {} sequence errors, the end {}",
        channel.channel,
        window(channel.window_bytes, channel.window_median, channel.window_p99),
        channel.underflows,
        channel.lates,
        channel.sequence_errors,
        if channel.acknowledged { "acknowledged" } else { "NOT ACKNOWLEDGED" },
    );
}

fn losses(lost: &BTreeMap<&'static str, u64>, balances: bool) -> String {
    let each = lost.iter().map(|(cause, samples)| format!("{samples} {cause}"));
    let each: Vec<_> = each.collect();
    let each = if each.is_empty() { "nothing".to_owned() } else { each.join(", ") };
    format!("{each}: {}", if balances { "balances" } else { "DOES NOT BALANCE" })
}

fn window(bytes: u64, median: f64, p99: f64) -> String {
    let (kb, median, p99) = (bytes as f64 / 1e3, median * 100.0, p99 * 100.0);
    format!("{kb:.0} kB, in flight {median:.0} % (p99 {p99:.0} %)")
}
