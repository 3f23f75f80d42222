//! Measurements as text.

use super::contender::{Details, RateAttempt};
use crate::graph_report::verdict;
use crate::output::{Join, percent};
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
        let busy = percent(radio_s / seconds);
        let _ = writeln!(text, "  the emulated radio was busy for {busy} of that time");
    }
    text
}

fn of_receive(outcome: &RxOutcome) -> String {
    let mut text = sustained("receive", outcome);
    let [median, p99, worst] = outcome.lag_ns.unwrap_or_default().map(short_time);
    let _ = writeln!(text, "  behind the radio {median} (p99 {p99}, worst {worst})");
    for channel in &outcome.channels {
        let RxChannelOutcome { expected, delivered, overruns, queue_drops, .. } = channel;
        let accepted = format!("{expected} expected = {delivered} delivered");
        let events = format!("{overruns} overruns, {queue_drops} queue drops");
        let window = (channel.window_bytes, channel.window_median, channel.window_p99);
        let lost = (&channel.lost, channel.balances);
        text += &of_channel(channel.channel, &accepted, lost, window, &events);
    }
    text
}

fn of_transmit(outcome: &TxOutcome) -> String {
    let mut text = sustained("transmit", outcome);
    for channel in &outcome.channels {
        let TxChannelOutcome { accepted, transmitted, unknown, .. } = channel;
        let TxChannelOutcome { underflows, lates, sequence_errors, .. } = channel;
        let accepted =
            format!("{accepted} accepted = {transmitted} transmitted + {unknown} unknown");
        let end = if channel.acknowledged { "acknowledged" } else { "NOT ACKNOWLEDGED" };
        let events = format!(
            "{underflows} underflows, {lates} late, {sequence_errors} sequence errors, the end \
             {end}"
        );
        let window = (channel.window_bytes, channel.window_median, channel.window_p99);
        let lost = (&channel.lost, channel.balances);
        text += &of_channel(channel.channel, &accepted, lost, window, &events);
    }
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

/// The common two lines of a channel: its ledger, and its credit window.
fn of_channel(
    channel: usize,
    accepted: &str,
    (lost, balances): (&BTreeMap<&'static str, u64>, bool),
    (bytes, median, p99): (u64, f64, f64),
    events: &str,
) -> String {
    let lost = match lost.is_empty() {
        true => "nothing".to_owned(),
        false => lost.iter().map(|(cause, samples)| format!("{samples} {cause}")).join(", "),
    };
    let (kb, median, p99) = (bytes as f64 / 1e3, percent(median), percent(p99));
    format!(
        "  ledger {channel}  {accepted}; lost: {lost}: {}\n  window {channel}  {kb:.0} kB, in \
         flight {median} (p99 {p99}); {events}\n",
        verdict(balances)
    )
}
