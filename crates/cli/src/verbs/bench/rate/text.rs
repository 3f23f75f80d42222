//! Measurements for people.

use super::contender::{Attempt, Details};
use millstream_lab::picture::short_time;
use millstream_lab::rate::{RxChannelOutcome, RxOutcome};
use std::fmt::Write;

/// One measurement in a few lines.
pub fn of_attempt(attempt: &Attempt) -> String {
    match &attempt.details {
        Details::Rx(outcome) => of_receive(outcome),
        Details::Uhd(outcome) => format!("{:?}\n", outcome.summary),
    }
}

fn of_receive(outcome: &RxOutcome) -> String {
    let mut text = format!(
        "receive {} x {:.3} MS/s for {:.2} s: {:.3} MS/s sustained, {}, {:.3} CPU s per \
         gigasample\n",
        outcome.channels.len(),
        outcome.rate_hz / 1e6,
        outcome.seconds,
        outcome.sustained_hz / 1e6,
        if outcome.lossless { "nothing lost" } else { "LOST SAMPLES" },
        outcome.cpu_s_per_gigasample,
    );
    outcome.channels.iter().for_each(|channel| of_channel(channel, &mut text));
    text
}

fn of_channel(channel: &RxChannelOutcome, text: &mut String) {
    let losses: Vec<_> =
        channel.lost.iter().map(|(cause, samples)| format!("{samples} {cause}")).collect();
    let losses = if losses.is_empty() { "nothing".to_owned() } else { losses.join(", ") };
    let balances = if channel.balances { "balances" } else { "DOES NOT BALANCE" };
    let _ = writeln!(
        text,
        "  ledger {}  {} expected = {} delivered; lost: {losses}: {balances}",
        channel.channel, channel.expected, channel.delivered
    );
    let [median, p99, worst] = channel.lag_ns.map(short_time);
    let _ = writeln!(
        text,
        "  window {}  {:.1} MB, in flight {:.0} % (p99 {:.0} %); behind the radio {median} (p99 \
         {p99}, worst {worst}); {} overruns, {} gaps, {} queue drops",
        channel.channel,
        channel.window_bytes as f64 / 1e6,
        channel.window_median * 100.0,
        channel.window_p99 * 100.0,
        channel.overruns,
        channel.gaps,
        channel.queue_drops,
    );
}
