//! Rules for all commands: short spellings, negative values, and help that fits a screen or two.

use crate::output::Join;
use clap::builder::PossibleValue;
use clap::{Arg, Command};

/// The short spellings of options, the same in every verb: those of UHD's tools (`-a`, `-r`, `-N`),
/// of cyclictest (`-D`), and the usual one for output.
const SHORT: [(&str, char); 5] =
    [("args", 'a'), ("rate", 'r'), ("nsamps", 'N'), ("duration", 'D'), ("out", 'o')];

/// Columns of the text above the options.
const COLUMNS: usize = 80;

/// Adapts a command and all its subcommands.
///
/// Every option that has a short spelling gets it. A value such as -5 belongs to the option before
/// it, whose parser then judges it; it is never parsed as an option. `--help` and `-h` print the
/// same: a line for each option, below the text about the command.
pub fn adapted(command: Command) -> Command {
    let mut command = command.mut_args(|arg| on_a_line(with_spellings(arg)));
    if let Some(about) = command.get_long_about().map(ToString::to_string) {
        let about = about.lines().map(filled).join("\n");
        let rest = "{usage-heading} {usage}\n\n{all-args}{after-help}";
        command = command.long_about(None).help_template(format!("{about}\n\n{rest}"));
    }
    let names: Vec<_> = command.get_subcommands().map(|verb| verb.get_name().to_owned()).collect();
    names.into_iter().fold(command, |command, name| command.mut_subcommand(name, adapted))
}

fn with_spellings(arg: Arg) -> Arg {
    let short = SHORT.iter().find(|(long, _)| arg.get_long() == Some(long));
    let arg = short.into_iter().fold(arg, |arg, (_, short)| arg.short(*short));
    let takes = !arg.is_positional() && arg.get_action().takes_values();
    if takes { arg.allow_negative_numbers(true) } else { arg }
}

/// Appends the meaning of its values to its help, without paragraphs.
fn on_a_line(arg: Arg) -> Arg {
    let help = arg.get_long_help().or(arg.get_help()).map(ToString::to_string).unwrap_or_default();
    let help = help.split_whitespace().join(" ");
    let values = arg.get_possible_values();
    let told = |value: &PossibleValue| value.get_help().is_some() && !value.is_hide_set();
    if !values.iter().any(told) {
        return arg.help(help).long_help(None);
    }
    let shown = values.iter().filter(|value| !value.is_hide_set()).map(|value| {
        let help = value.get_help().map(|help| format!(": {help}")).unwrap_or_default();
        format!("{}{help}", value.get_name())
    });
    let shown = shown.join("; ");
    arg.help(format!("{help} [{shown}]")).long_help(None).hide_possible_values(true)
}

/// Wraps a paragraph at this many columns.
fn filled(paragraph: &str) -> String {
    let mut text = String::new();
    let mut column = 0;
    for word in paragraph.split_whitespace() {
        let length = word.chars().count();
        if column > 0 && column + 1 + length > COLUMNS {
            text.push('\n');
            column = 0;
        }
        if column > 0 {
            text.push(' ');
            column += 1;
        }
        text += word;
        column += length;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_paragraph_is_filled_up_to_the_last_column() {
        let (word, filled_up) = ("a".repeat(39), filled(&"a ".repeat(39 + 2)));
        assert_eq!(filled(&format!("{word} {word} b c")), format!("{word} {word}\nb c"));
        assert_eq!(filled_up.lines().map(str::len).collect::<Vec<_>>(), [79, 1]);
        assert_eq!(filled(""), "");
    }
}
