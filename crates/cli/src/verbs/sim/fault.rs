//! `millstream sim fault`: switches the faults of an emulated radio while it runs.

use super::radio::control_address;
use crate::output::{Report, document};
use crate::table::Table;
use anyhow::{Context, anyhow, bail};
use clap::Subcommand;
use millstream_emulator::fault_forms;
use serde::Serialize;
use serde_json::{Map, Value};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, SocketAddrV4, TcpStream};
use std::time::Duration;

/// Time limit of the radio's answer.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Longest accepted answer, bytes.
const ANSWER_BYTES_MAX: u64 = 1 << 20;

/// Controls the faults of an emulated radio that was started with `--control`.
#[derive(clap::Args)]
pub struct Args {
    /// Address of the radio's control port, as given to `sim radio --control`. A port alone means
    /// loopback.
    #[arg(value_name = "[ADDR:]PORT", value_parser = control_address)]
    pub radio: SocketAddrV4,

    #[command(subcommand)]
    pub what: FaultCommand,
}

/// What to do.
#[derive(Subcommand)]
pub enum FaultCommand {
    /// Add a fault and print its number.
    #[command(long_about = add_help())]
    Add {
        /// The fault, as one argument or several.
        #[arg(required = true, value_name = "SPEC")]
        fault: Vec<String>,
    },
    /// Remove a fault. Packets that it delays are sent at once.
    Remove {
        /// Number of the fault.
        id: u64,
    },
    /// List every fault with its counts so far.
    List,
    /// Remove all faults.
    Clear,
    /// Show the counters of the radio.
    Counters,
}

fn add_help() -> String {
    format!("Add a fault and print its number. {}", fault_forms())
}

crate::results! {
    /// The answer of a radio.
    struct FaultAnswer {
        /// Its fields: `id` of an added fault, `fault` that was removed, `faults`, the number
        /// `removed`, or `counters`.
        #[serde(flatten)]
        answer: Map<String, Value>,
    }
}

/// A request to the control port of a radio.
#[derive(Serialize)]
#[serde(tag = "op", rename_all = "lowercase")]
enum FaultRequest {
    Add { fault: String },
    Remove { id: u64 },
    List,
    Clear,
    Counters,
}

/// Sends the request to the radio and shows its answer.
pub fn run(args: Args) -> anyhow::Result<Report> {
    let request = match &args.what {
        FaultCommand::Add { fault } => FaultRequest::Add { fault: fault.join(" ") },
        FaultCommand::Remove { id } => FaultRequest::Remove { id: *id },
        FaultCommand::List => FaultRequest::List,
        FaultCommand::Clear => FaultRequest::Clear,
        FaultCommand::Counters => FaultRequest::Counters,
    };
    let mut answer = ask(args.radio, &document(&request))?;
    let answer = answer.as_object_mut().context(
        "the answer of the radio is not a JSON object: check that the port is a control port of \
         `sim radio`",
    )?;
    if answer.remove("ok") != Some(Value::Bool(true)) {
        let reason = answer.get("error").and_then(Value::as_str);
        bail!("{}", reason.unwrap_or("the radio refused without a reason"));
    }
    let text = match args.what {
        FaultCommand::Add { .. } => format!("fault {}\n", answer["id"]),
        FaultCommand::Clear => format!("removed: {}\n", answer["removed"]),
        FaultCommand::Remove { .. } => table(std::slice::from_ref(&answer["fault"])),
        FaultCommand::List => table(answer["faults"].as_array().map_or(&[], Vec::as_slice)),
        FaultCommand::Counters => counters(&answer["counters"]),
    };
    Ok(Report::of(text, &FaultAnswer { answer: std::mem::take(answer) }))
}

/// Sends one request to the control port of a radio, and returns its answer.
pub fn ask(radio: SocketAddrV4, request: &Value) -> anyhow::Result<Value> {
    let connected = TcpStream::connect_timeout(&SocketAddr::V4(radio), TIMEOUT);
    let mut stream = connected.map_err(|error| {
        anyhow!("nothing listens at {radio} ({error}): start the radio with `--control {radio}`")
    })?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    let lost = || {
        format!(
            "the radio at {radio} did not answer: check that this is the control port of `sim \
             radio`"
        )
    };
    stream.write_all(format!("{request}\n").as_bytes()).with_context(lost)?;
    let mut line = String::new();
    let mut answers = BufReader::new(stream.take(ANSWER_BYTES_MAX));
    if answers.read_line(&mut line).with_context(lost)? == 0 {
        bail!(lost());
    }
    serde_json::from_str(&line).map_err(|error| anyhow!("{}: {error}", lost()))
}

fn table(faults: &[Value]) -> String {
    if faults.is_empty() {
        return "no faults\n".to_owned();
    }
    let number = |name| move |state: &Value| state[name].as_u64().unwrap_or_default();
    Table::of(faults)
        .right("id", number("id"))
        .right("matched", number("matched"))
        .right("hit", number("hit"))
        .right("held", number("held"))
        .left("fault", |state| {
            let done = if state["done"] == true { "  (done)" } else { "" };
            format!("{}{done}", state["fault"].as_str().unwrap_or_default())
        })
        .text()
}

/// Every non-zero counter.
fn counters(counters: &Value) -> String {
    let all = counters.as_object().into_iter().flatten();
    let busy = all.filter(|(_, value)| value.as_u64() != Some(0));
    let lines: String = busy.map(|(name, value)| format!("{name:<28} {value}\n")).collect();
    if lines.is_empty() { "all counters are 0\n".to_owned() } else { lines }
}
