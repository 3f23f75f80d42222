//! Fuzzes the texts that people write about links: link strings, faults and configuration files.
//! Each is accepted or refused, and an accepted link string means the same when written again.
#![no_main]

use millstream_link::Spec;
use millstream_link::fault::Select;
use millstream_link::fault::text::{ACTIONS, effect};
use millstream_link::options::{BadOption, Line};
use std::path::Path;

/// Reads a fault with each action in turn.
fn faults(text: &str) -> Result<(), BadOption> {
    for (action, _) in ACTIONS {
        let mut line = Line::of(text.split_whitespace())?;
        let effect = effect(action, &mut line)?;
        let select: Select = line.take()?;
        assert!((0.0..=1.0).contains(&select.probability), "{effect:?}");
        line.finish()?;
    }
    Ok(())
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let _ = faults(text);
    let _ = millstream_net::config::Config::parse(text, Path::new("fuzzed.toml"));
    let Ok(spec) = Spec::parse(text) else { return };
    let again = Spec::parse(&spec.to_string()).expect("it was understood before");
    assert_eq!(again, spec);
    let (first, second) = (millstream_net::check(text), millstream_net::check(&spec.to_string()));
    assert_eq!(first.is_ok(), second.is_ok());
});
