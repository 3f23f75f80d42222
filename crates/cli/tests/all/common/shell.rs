//! Commands in documents, split into words as by a shell: quotes, a backslash at the end of a line,
//! remarks after them. There are no variables and no globs, because no document has any.

/// The commands that documents explain.
pub const PROGRAMS: [&str; 2] = ["millstream", "millstream-lab"];

/// A command, up to the first operator of the shell.
#[derive(Debug, PartialEq)]
pub struct Line {
    words: Vec<String>,
}

impl Line {
    /// The words from `millstream` or `millstream-lab` on, if it is that command: `sudo` and its
    /// environment are removed.
    pub fn millstream(&self) -> Option<&[String]> {
        let at = self.words.iter().position(|word| PROGRAMS.contains(&word.as_str()))?;
        let before = &self.words[..at];
        let known = before.iter().all(|word| ["sudo", "$"].contains(&word.as_str()));
        (known && self.words.len() > at + 1).then_some(&self.words[at..])
    }

    /// The file and the folder, if it copies a file into a folder.
    pub fn copy(&self) -> Option<[&str; 2]> {
        match &self.words[..] {
            [copy, from, to] if copy == "cp" => Some([from, to]),
            _ => None,
        }
    }
}

/// The commands in these lines of text, several of one line included. A backslash or an open quote
/// at the end of a line continues it in the next.
pub fn lines<'a>(text: impl Iterator<Item = &'a str>) -> Vec<Line> {
    let (mut all, mut begun) = (Vec::new(), String::new());
    for line in text {
        let line = line.trim();
        let joined = if begun.is_empty() { line.to_owned() } else { format!("{begun} {line}") };
        let (command, open) = without_remark(&joined);
        // An apostrophe in a command's output opens nothing.
        let open = open
            && ["sudo ", "millstream ", "millstream-lab ", "$ "]
                .iter()
                .any(|c| command.starts_with(c));
        if let Some(command) = command.strip_suffix('\\') {
            begun = command.trim_end().to_owned();
        } else if open {
            begun = command.to_owned();
        } else {
            all.extend(split(command).into_iter().filter(|words| !words.is_empty()));
            begun.clear();
        }
    }
    all.into_iter().map(|words| Line { words }).collect()
}

/// The line without a remark, which follows two spaces, or a space and `#`; and whether a quote is
/// open at its end.
fn without_remark(line: &str) -> (&str, bool) {
    let mut quote = None;
    for (at, c) in line.char_indices() {
        match quote {
            Some(end) if c == end => quote = None,
            Some(_) => {}
            None if c == '\'' || c == '"' => quote = Some(c),
            None if line[at..].starts_with("  ") || line[at..].starts_with(" #") => {
                return (&line[..at], false);
            }
            None => {}
        }
    }
    (line, quote.is_some())
}

/// Commands between operators, each as its words. A redirection and its target are left out.
fn split(line: &str) -> Vec<Vec<String>> {
    let (mut all, mut words, mut word) = (Vec::new(), Vec::new(), None::<String>);
    let mut quote = None;
    let mut redirected = false;
    for c in line.chars() {
        match quote {
            Some(end) if c == end => quote = None,
            Some(_) => word.get_or_insert_default().push(c),
            None if c == '\'' || c == '"' => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            None if c.is_whitespace() || "&|;>".contains(c) => {
                words.extend(word.take().filter(|_| !redirected));
                redirected |= c == '>';
                if "&|;".contains(c) {
                    all.push(std::mem::take(&mut words));
                    redirected = false;
                }
            }
            None => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word.filter(|_| !redirected));
    all.push(words);
    all
}

#[test]
fn a_document_is_read_as_a_shell_would() {
    let words = |text: &str| -> Vec<Vec<String>> {
        lines(text.lines()).into_iter().map(|line| line.words).collect()
    };
    let of = |list: &[&str]| list.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    assert_eq!(words("$ a 'b c' --d=\"e f\"   remark"), [of(&["$", "a", "b c", "--d=e f"])]);
    assert_eq!(words("a b \\\n  -- c d     # remark"), [of(&["a", "b", "--", "c", "d"])]);
    let shell = words("sudo sh -c 'a &&\n  b'   remark\nc the machine's");
    assert_eq!(shell, [of(&["sudo", "sh", "-c", "a && b"]), of(&["c", "the", "machines"])]);
    assert_eq!(words("a '#' &\nb > c && d"), [of(&["a", "#"]), of(&["b"]), of(&["d"])]);
    assert_eq!(words("a '>' x:20dB>y"), [of(&["a", ">", "x:20dB"])]);
    let line = lines("sudo millstream find".lines()).remove(0);
    assert_eq!(line.millstream(), Some(&of(&["millstream", "find"])[..]));
    assert_eq!(lines("taskset 1 millstream find".lines())[0].millstream(), None);
}
