//! `millstream serve rtl-tcp`: a receive channel for programs that speak the protocol of `rtl_tcp`.

use crate::interrupt;
use crate::live::Live;
use crate::numbers::{decibels, rate, seconds, whole};
use crate::output::{Report, last_words, note};
use crate::start::note_taken;
use anyhow::Context;
use millstream_client::{ClientArgs, Radio, RtlCounts, RtlOptions, RtlServer};
use millstream_web::WebAddress;
use std::collections::BTreeMap;
use std::net::TcpListener;
use std::time::{Duration, Instant};

/// Serves a receive channel to programs that speak the protocol of rtl_tcp, such as gqrx, SDR++ and
/// rtl_433.
///
/// Samples have 8 bits. Clients set frequency, sample rate and gain, and share them; the values
/// here apply until a client sends others. Missing samples become zeros, so that clients keep the
/// time. A client that reads too slowly misses samples, which are counted, and disturbs nobody.
/// The protocol has no encryption and no password: keep it on a network that you trust.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  millstream serve rtl-tcp --args radio=emulated                  an emulated radio
  millstream serve rtl-tcp --args addr=192.168.10.2 --freq 98M
  rtl_433 -d rtl_tcp:127.0.0.1:1234                               a client")]
pub struct Args {
    /// Device arguments: addr=IPV4[,link=LINK], or radio=emulated for one in this process. Without
    /// them the only radio that answers.
    #[arg(long, value_name = "ARGS", default_value = "", hide_default_value = true)]
    args: ClientArgs,

    /// Address and TCP port to listen at. PORT alone is for this machine only.
    #[arg(long, value_name = "[ADDR:]PORT", default_value = "127.0.0.1:1234")]
    listen: WebAddress,

    /// Channel to receive on.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = whole::<usize>(..))]
    channel: usize,

    /// Sample rate, in Hz.
    #[arg(long, value_name = "HZ", default_value_t = 2.048e6, value_parser = rate)]
    rate: f64,

    /// Centre frequency.
    #[arg(long, value_name = "HZ", value_parser = rate)]
    freq: Option<f64>,

    /// Gain of the front end.
    #[arg(long, value_name = "DB", value_parser = decibels, allow_hyphen_values = true)]
    gain: Option<f64>,

    /// Antenna, such as RX2 or TX/RX.
    #[arg(long, value_name = "NAME")]
    antenna: Option<String>,

    /// Most clients at a time; others are closed at once.
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = whole::<u16>(1..=1000))]
    clients: u16,

    /// How long to serve. By default until Ctrl-C.
    #[arg(short = 'D', long, value_name = "TIME", value_parser = seconds)]
    duration: Option<f64>,
}

crate::results! {
    /// What clients got.
    struct ServedClients {
        /// Clients in all.
        clients: u64,
        /// Samples received.
        samples: u64,
        /// Samples passed on, the sum over the clients.
        passed: u64,
        /// Samples that slow clients missed.
        missed: u64,
        /// Commands of clients.
        commands: u64,
        /// Commands that the radio refused.
        refused: u64,
        /// Commands without a setting here.
        ignored: u64,
        /// The samples of the radio.
        ledger: Option<ServedLedger>,
    }

    /// The samples of the radio.
    struct ServedLedger {
        /// Expected samples.
        expected: u64,
        /// Delivered samples.
        delivered: u64,
        /// Samples lost, by cause.
        lost: BTreeMap<&'static str, u64>,
    }
}

/// Succeeds when the stream ran until the end was asked for, and its ledger balances.
pub fn run(args: Args) -> anyhow::Result<Report> {
    interrupt::install();
    let listener = TcpListener::bind(args.listen.0).with_context(|| {
        format!(
            "cannot listen at {}: give an address of this machine and a free port with --listen \
             (`ss -tlnp` shows which programs use ports)",
            args.listen
        )
    })?;
    let radio = Radio::open(&args.args)?;
    let channel = radio.rx(args.channel);
    if let Some(antenna) = &args.antenna {
        channel.set_antenna(antenna)?;
    }
    if let Some(freq) = args.freq {
        channel.set_frequency(freq, None)?;
    }
    if let Some(gain) = args.gain {
        let taken = channel.set_gain(gain)?;
        note_taken("gain", "", (gain, taken), "dB");
    }
    let options = RtlOptions::default()
        .with_channel(args.channel)
        .with_initial_rate_hz(args.rate)
        .with_clients_max(args.clients.into());
    let mut server = RtlServer::start(radio, listener, options)?;
    let taken = server.radio().rx(args.channel).rate()?;
    note_taken("rate", "", (args.rate, taken), "Hz");
    // Scripts wait for this line.
    note(format_args!("ready: {} at {}", server.radio().product(), server.address()));
    let started = Instant::now();
    let mut live = Live::on_terminal_only();
    let mut error = None;
    while !interrupt::asked() && error.is_none() {
        std::thread::sleep(Duration::from_millis(50));
        let now = Instant::now();
        if args.duration.is_some_and(|limit| (now - started).as_secs_f64() >= limit) {
            break;
        }
        error = server.take_error();
        live.show(now, || state(&server, args.channel));
    }
    live.end();
    server.stop();
    let counts = server.counts();
    let balance = server.ledger().map(|ledger| (ledger.balance(), ledger));
    let mut text = format!("served: {}\n", sums(&counts));
    if let Some(refusal) = server.last_refusal() {
        text += &format!("last refused command: {refusal}\n");
    }
    let mut failure = error.or_else(|| server.take_error());
    if let Some((balance, ledger)) = &balance {
        let (delivered, lost) = (ledger.delivered, ledger.lost_total());
        text += &format!("radio:  {delivered} samples delivered, {lost} lost\n");
        let unbalanced = balance.as_ref().err();
        failure = failure.or_else(|| unbalanced.map(ToString::to_string));
    }
    let results = ServedClients {
        clients: counts.clients,
        samples: counts.samples,
        passed: counts.passed,
        missed: counts.missed,
        commands: counts.commands,
        refused: counts.refused,
        ignored: counts.ignored,
        ledger: balance.map(|(_, ledger)| ServedLedger {
            expected: ledger.expected,
            delivered: ledger.delivered,
            lost: ledger.lost_by_name().into_iter().collect(),
        }),
    };
    Ok(Report::of(last_words(&text), &results).failing(failure))
}

/// What the server does now.
fn state(server: &RtlServer, channel: usize) -> String {
    let channel = server.radio().rx(channel);
    let rate = channel.rate().unwrap_or_default() / 1e6;
    let frequency = channel.frequency().map_or(0.0, |parts| parts.freq_hz) / 1e6;
    let counts = server.counts();
    format!("{} clients, {frequency:.3} MHz, {rate:.3} MS/s, {}", counts.connected, sums(&counts))
}

fn sums(counts: &RtlCounts) -> String {
    format!(
        "{} clients in all, {} samples, {} missed by slow clients, {} commands, {} refused, {} \
         without a setting",
        counts.clients,
        counts.samples,
        counts.missed,
        counts.commands,
        counts.refused,
        counts.ignored
    )
}
