//! The values of the options of both commands: each accepts its units, and a wrong one is answered
//! with the form that is expected.

/// Every option with a value, of every verb, with the words that lead to it.
fn options() -> Vec<(Vec<String>, clap::Arg)> {
    fn find(command: &clap::Command, path: &[String], found: &mut Vec<(Vec<String>, clap::Arg)>) {
        for arg in command.get_arguments() {
            if let Some(long) = arg.get_long().filter(|_| arg.get_action().takes_values()) {
                found.push(([path, &[format!("--{long}")]].concat(), arg.clone()));
            }
        }
        for verb in command.get_subcommands().filter(|verb| verb.get_name() != "help") {
            find(verb, &[path, &[verb.get_name().to_owned()]].concat(), found);
        }
    }
    let mut found = Vec::new();
    for command in [millstream_cli::command(), millstream_lab_cli::command()] {
        find(&command, &[command.get_name().to_owned()], &mut found);
    }
    assert!(found.len() > 200, "{}", found.len());
    found
}

/// Parses a command line, whose first word is the program.
fn parse(line: &[String]) -> Result<clap::ArgMatches, clap::Error> {
    crate::documents::command_of(&line[0]).try_get_matches_from(line)
}

/// Rates and times accept their units wherever one is given.
#[test]
fn every_rate_and_every_time_may_have_its_unit() {
    /// Names of options, and words of help texts, that indicate a rate or a time.
    const NAMES: [&str; 6] = ["rate", "step", "offset", "duration", "seconds", "time"];
    const WORDS: [&str; 4] = ["Hz", "per second", "seconds", "a second that"];
    let (mut rates, mut times, mut wrong) = (0, 0, Vec::new());
    for (line, arg) in options() {
        let named = arg.get_value_names().unwrap_or_default()[0].to_string();
        let values: &[&str] = match named.split([',', ':']).next().unwrap_or_default() {
            "HZ" | "PPS" => &["10k", "0.01M"],
            "BIT/S" => &["10M", "0.01G"],
            "TIME" => &["2s", "500ms"],
            // An echo has four units, and a factor has none; a goal is a word, and a fault is words
            // with keys.
            "FACTOR" | "DB" | "ECHO" | "GOAL" | "SPEC" => continue,
            _ => {
                let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
                let named = NAMES.contains(&arg.get_long().unwrap_or_default());
                if named || WORDS.iter().any(|word| help.contains(word)) {
                    wrong.push(format!("{line:?} is a rate or a time, and not named like one"));
                }
                continue;
            }
        };
        let count = if values[0].starts_with("10") { &mut rates } else { &mut times };
        *count += 1;
        for value in values {
            let value = value.to_string() + if named == "HZ:DB" { ":-10" } else { "" };
            let line = [&line[..], &[value]].concat();
            let Err(error) = parse(&line) else {
                continue;
            };
            // The verb's other arguments are missing here.
            if error.kind() == clap::error::ErrorKind::ValueValidation {
                wrong.push(format!("{line:?}: {error}"));
            }
        }
    }
    assert!(rates > 15 && times > 15, "{rates} rates, {times} times");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What a user sees of a wrong value names the form that is expected, and never shows the words of
/// a parser inside.
#[test]
fn every_wrong_value_is_answered_with_the_form_that_is_expected() {
    const PARSERS: [&str; 12] = [
        "invalid digit",
        "integral type",
        "float literal",
        "address syntax",
        "is not in ",
        "number too",
        "cannot parse",
        "ParseInt",
        "invalid port",
        "from empty string",
        "valid boolean",
        "invalid value for one",
    ];
    const FORMS: [&str; 13] = [
        "give ",
        "possible values",
        "write ",
        "written",
        "a value is required",
        "known",
        "unknown",
        "expected",
        "such as",
        " are: ",
        "the devices are",
        "the widths are",
        "there is no",
    ];
    let mut wrong = Vec::new();
    for (line, arg) in options() {
        for value in
            ["\u{7}junk", "-5", "1.5", "1e20", "4294967296", "99999999999999999999", "0 1", "A", ""]
        {
            let line = [&line[..], &[value.to_owned()]].concat();
            let Err(error) = parse(&line) else {
                continue;
            };
            use clap::error::ErrorKind::{InvalidValue, ValueValidation};
            let text = error.to_string();
            let of_value = matches!(error.kind(), InvalidValue | ValueValidation);
            let essence = text.split("\n\nFor more").next().unwrap_or_default().to_owned();
            let inside = PARSERS.iter().any(|words| essence.contains(words));
            let form = FORMS.iter().any(|words| essence.contains(words));
            if inside || (of_value && !form) {
                wrong.push(format!("{} {value:?}: {essence}", arg.get_id()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The option reports the error of its own value.
#[test]
fn a_negative_value_belongs_to_its_option() {
    for (mut line, _) in options() {
        line.push("-5".to_owned());
        let Err(error) = parse(&line) else { continue };
        let is_stranger = error.kind() == clap::error::ErrorKind::UnknownArgument;
        assert!(!is_stranger, "{line:?}: {error}");
    }
}
