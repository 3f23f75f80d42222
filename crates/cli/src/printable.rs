//! Text for a terminal: texts from outside (errors of a radio or a server, names of files, blocks
//! and sensors) must not control it.
//!
//! Everything that this program writes to a terminal passes [`printable`] once, where it is
//! written, so that no source of texts can be forgotten.

use std::borrow::Cow;
use std::fmt::Write;

/// Returns the text with the control characters made visible, as JSON writes them: `\u001b`. Line
/// ends, tabs and colours stay.
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(is_control) {
        return Cow::Borrowed(text);
    }
    let (mut shown, mut rest) = (String::with_capacity(text.len() + 16), text);
    while let Some(at) = rest.find(is_control) {
        shown += &rest[..at];
        rest = &rest[at..];
        let colour = colour_len(rest);
        if colour > 0 {
            shown += &rest[..colour];
            rest = &rest[colour..];
            continue;
        }
        let control = rest.chars().next().unwrap_or_default();
        let _ = write!(shown, "\\u{:04x}", u32::from(control));
        rest = &rest[control.len_utf8()..];
    }
    Cow::Owned(shown + rest)
}

/// Whether a terminal obeys the character, or shows the text around it in another order.
fn is_control(one: char) -> bool {
    let reorders = matches!(one, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    one.is_control() && !matches!(one, '\n' | '\t') || reorders
}

/// The length of the change of colour at the beginning, such as `ESC [ 3 2 m`; 0 without one.
fn colour_len(text: &str) -> usize {
    let Some(codes) = text.strip_prefix("\x1b[") else { return 0 };
    let end = codes.find(|one: char| !one.is_ascii_digit() && one != ';');
    end.filter(|end| codes[*end..].starts_with('m')).map_or(0, |end| 2 + end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_control_character_reaches_the_terminal() {
        let all = (0..=0xffff).filter_map(char::from_u32).filter(|one| is_control(*one));
        for control in all {
            let text = printable(&format!("a{control}b")).into_owned();
            assert_eq!(text, format!("a\\u{:04x}b", u32::from(control)));
        }
        let title = "\x1b]0;owned\x07\x1b[2J\x1b[1;31mx\u{9b}2J\r";
        let shown = "\\u001b]0;owned\\u0007\\u001b[2J\x1b[1;31mx\\u009b2J\\u000d";
        assert_eq!(printable(title), shown);
        assert_eq!(printable("\x1b["), "\\u001b[");
    }

    #[test]
    fn text_lines_and_colours_stay() {
        for text in ["", "a\tb\n", "µs – ✔ 中", "\x1b[32mgood\x1b[0m\n"] {
            assert!(matches!(printable(text), Cow::Borrowed(_)) || printable(text) == text);
            assert_eq!(printable(text), text);
        }
    }

    #[test]
    fn a_document_stays_one() {
        let value = serde_json::json!({ "name": "a\u{9b}2J\x1b\u{202e}b" });
        let text = serde_json::to_string_pretty(&value).unwrap();
        let read: serde_json::Value = serde_json::from_str(&printable(&text)).unwrap();
        assert_eq!(read, value);
    }

    /// Files that write to a standard stream and not to a terminal: what another program of ours
    /// said, which has passed here there, and what a worker tells the process that started it.
    const OTHERS: [&str; 3] =
        ["child_radio.rs", "verbs/host/shield/mod.rs", "latency/explain/mod.rs"];

    #[test]
    fn who_writes_to_a_terminal_makes_the_text_printable() {
        let own = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
        // `millstream-lab` writes by the same functions.
        let roots = [own.join("src"), own.join("../lab-cli/src")];
        let (mut folders, mut writers) = (roots.to_vec(), 0);
        while let Some(folder) = folders.pop() {
            for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let within = roots.iter().find_map(|root| path.strip_prefix(root).ok());
                let name = within.unwrap().to_str().unwrap().to_owned();
                let text = std::fs::read_to_string(&path).unwrap();
                let code = text.split("#[cfg(test)]").next().unwrap_or_default();
                let code = code.replace("stderr().is_terminal()", "");
                let marks = ["println!(", "print!(", "stderr().", "stdout().", "stderr(),"];
                if marks.iter().any(|mark| code.contains(mark)) {
                    writers += 1;
                    let is_known = OTHERS.contains(&name.as_str());
                    assert!(is_known || code.contains("printable("), "{name}");
                }
            }
        }
        assert!(writers >= 3, "{writers}");
    }
}
