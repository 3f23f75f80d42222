//! The Rust side of `peers/chdr_oracle.py`: packets as JSON lines, in both directions.
//!
//! ```text
//! chdr_vectors emit SEED COUNT     prints COUNT pseudo-random packets for SEED
//! chdr_vectors check               reads packets from standard input, prints how many agreed
//! ```
//!
//! A line has the packet's bytes (`hex`), its `width`, and the claimed meaning of the bytes. `emit`
//! takes the meaning from the `Repr` that it emits, `check` compares it with the parser's result,
//! and both are also compared with each other here.

#[path = "chdr_vectors/json.rs"]
mod json;
#[path = "chdr_vectors/random.rs"]
mod random;

use std::io::{BufRead, Write};
use std::process::ExitCode;

use serde_json::Value;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let result = match args[..] {
        ["emit", seed, count] => match (seed.parse(), count.parse()) {
            (Ok(seed), Ok(count)) => emit(seed, count),
            _ => Err("SEED and COUNT are numbers".into()),
        },
        ["check"] => check(),
        _ => Err("usage: chdr_vectors emit SEED COUNT | chdr_vectors check".into()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("chdr_vectors: {message}");
            ExitCode::FAILURE
        }
    }
}

fn emit(seed: u64, count: usize) -> Result<(), String> {
    let mut rng = random::Draw::new(seed);
    let mut out = std::io::stdout().lock();
    for _ in 0..count {
        let line = random::packet(&mut rng).map_err(|e| format!("seed {seed}: {e}"))?;
        agrees(&line).map_err(|why| format!("seed {seed}: {why}"))?;
        writeln!(out, "{line}").map_err(|e| e.to_string())?;
    }
    Ok(())
}

fn check() -> Result<(), String> {
    let mut count = 0;
    for line in std::io::stdin().lock().lines() {
        let line = line.map_err(|e| e.to_string())?;
        let claimed: Value = serde_json::from_str(&line).map_err(|e| format!("{e}: {line}"))?;
        agrees(&claimed)?;
        count += 1;
    }
    println!("{count}");
    Ok(())
}

/// Checks that our parser reads from `hex` exactly the claims of the line.
fn agrees(claimed: &Value) -> Result<(), String> {
    let read = json::describe(claimed).map_err(|why| format!("{why}: {claimed}"))?;
    if read == *claimed {
        return Ok(());
    }
    let fields = claimed.as_object().into_iter().flatten();
    let differing: Vec<&String> =
        fields.filter(|(key, value)| read[key.as_str()] != **value).map(|(key, _)| key).collect();
    Err(format!("differs in {differing:?}\nclaimed {claimed}\n   read {read}"))
}
