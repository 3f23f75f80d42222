//! What holds for every verb of a program.

use super::millstream;
use clap::Command;
use std::path::Path;

/// Groups whose verbs have little in common.
const GROUPS: [&str; 4] = ["batch", "graph", "sim", "host"];

/// All verbs, as the program reports them: those of a group with its name.
fn verbs(commands: &Command) -> Vec<Vec<String>> {
    let mut verbs = Vec::new();
    for verb in commands.get_subcommands() {
        let name = verb.get_name().to_owned();
        verbs.push(vec![name.clone()]);
        if GROUPS.contains(&&*name) {
            let inner = verb.get_subcommands().map(|one| one.get_name().to_owned());
            verbs.extend(inner.map(|one| vec![name.clone(), one]));
        }
    }
    verbs
}

/// Checks that every verb is listed, has a help, and `--json`.
pub fn has_help_and_json(commands: &Command) {
    let folder = Path::new("/");
    for verb in verbs(commands) {
        let words: Vec<_> = verb.iter().map(String::as_str).collect();
        let outcome = millstream(folder, &[&words[..], &["--help"]].concat());
        assert!(outcome.succeeds().stdout.contains("--json"), "{outcome:?}");
        assert_eq!(outcome.stderr, "");
        let (name, group) = words.split_last().unwrap();
        let all = millstream(folder, &[group, &["--help"]].concat()).stdout;
        let listed = all.lines().any(|line| line.starts_with(&format!("  {name} ")));
        assert!(listed, "{verb:?} is not listed: {all}");
    }
}

/// Checks that each of these command lines, which together have every verb, fails with one document
/// and one reason.
pub fn fails_with_one_reason(commands: &Command, folder: &Path, lines: &[&[&str]]) {
    for verb in verbs(commands) {
        let of = |command: &[&str]| {
            let words: Vec<_> = command.iter().filter(|word| **word != "--json").collect();
            words.len() >= verb.len() && verb.iter().zip(words).all(|(word, said)| word == said)
        };
        assert!(lines.iter().any(|line| of(line)), "no command for {verb:?}");
    }
    for command in lines {
        let outcome = millstream(folder, command);
        let document = outcome.fails(1, "millstream: ").json();
        assert!(document.get("results").is_none(), "{document}");
        let reason = document["error"].as_str().unwrap();
        // A note of the searched networks may come before; the reason comes once, and last.
        assert!(outcome.stderr.ends_with(&format!("millstream: {reason}\n")), "{outcome:?}");
        assert_eq!(outcome.stderr.matches("millstream: ").count(), 1, "{outcome:?}");
    }
}
