//! Texts in one line: words in front, and `name=value` behind them. Link strings, faults and the
//! antennas of emulated radios are such lines.

use std::collections::VecDeque;

use super::{NO_PAIR, Options, UNKNOWN, names_for, read};

/// An option that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{option}` {reason}{}{hint}", if hint.is_empty() { "" } else { "; " })]
pub struct BadOption {
    /// The option as written.
    pub option: String,
    /// What is wrong with it.
    pub reason: String,
    /// What there is in its place; may be empty.
    pub hint: String,
}

impl BadOption {
    /// Creates the error of an option, without a hint.
    pub fn new(option: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { option: option.into(), reason: reason.into(), hint: String::new() }
    }
}

/// A line that is being read: what is read is taken out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Line {
    /// The words in front.
    words: VecDeque<String>,
    options: Vec<(String, String)>,
    /// The names of all options that were asked for.
    known: Vec<&'static str>,
}

impl Line {
    /// Reads the words of a line.
    ///
    /// # Errors
    /// A word behind an option that is not of the form `name=value`.
    pub fn of<'a>(words: impl IntoIterator<Item = &'a str>) -> Result<Self, BadOption> {
        let mut line = Self::default();
        for word in words.into_iter().map(str::trim) {
            match word.split_once('=') {
                Some((name, value)) => {
                    line.options.push((name.trim().to_owned(), value.trim().to_owned()));
                }
                None if line.options.is_empty() => line.words.push_back(word.to_owned()),
                None => return Err(BadOption::new(word, NO_PAIR)),
            }
        }
        Ok(line)
    }

    /// Takes the next word in front.
    pub fn word(&mut self) -> Option<String> {
        self.words.pop_front()
    }

    /// Takes the next word in front, which is one of `words` and stands for its value.
    ///
    /// # Errors
    /// That it is missing, or not one of them; `what` says what they are.
    pub fn choice<T: Copy>(
        &mut self,
        what: &str,
        words: &[(&'static str, T)],
    ) -> Result<T, BadOption> {
        let names: Vec<_> = words.iter().map(|(name, _)| *name).collect();
        let word = self.word().unwrap_or_default();
        let found = words.iter().find(|(name, _)| *name == word);
        found.map(|(_, value)| *value).ok_or_else(|| BadOption {
            hint: names_for(&word, &names, "give one of "),
            ..match &word[..] {
                "" => BadOption::new(what, "is missing"),
                word => BadOption::new(word, format!("is no {what}")),
            }
        })
    }

    /// Makes the words in front the values of options with these names; an empty word leaves its
    /// option out.
    ///
    /// # Errors
    /// The first word without a name.
    pub fn name_words(&mut self, names: &[&'static str]) -> Result<(), BadOption> {
        let mut names = names.iter();
        for word in std::mem::take(&mut self.words) {
            match names.next() {
                _ if word.is_empty() => {}
                Some(name) => self.options.push(((*name).to_owned(), word)),
                None => return Err(BadOption::new(word, NO_PAIR)),
            }
        }
        Ok(())
    }

    /// Takes the options of `O`.
    ///
    /// # Errors
    /// The first value that `O` does not have, or an option that is given twice.
    pub fn take<O: Options>(&mut self) -> Result<O, BadOption> {
        self.take_of(O::NAMES)
    }

    /// Takes those options of `O` that have one of these names.
    ///
    /// # Errors
    /// As [`Line::take`].
    pub fn take_of<O: Options>(&mut self, names: &[&'static str]) -> Result<O, BadOption> {
        self.known.extend(names);
        let options = std::mem::take(&mut self.options).into_iter();
        let (own, others): (Vec<_>, _) = options.partition(|(name, _)| names.contains(&&**name));
        self.options = others;
        read(&own)
    }

    /// Checks that everything was taken.
    ///
    /// # Errors
    /// The first word or option that was not, with the options that were asked for.
    pub fn finish(self) -> Result<(), BadOption> {
        if let Some(word) = self.words.front() {
            return Err(BadOption::new(word, NO_PAIR));
        }
        let Some((name, value)) = self.options.first() else { return Ok(()) };
        let hint = match &self.known[..] {
            [] => "there are no options here".to_owned(),
            known => names_for(name, known, "the options here are "),
        };
        Err(BadOption { hint, ..BadOption::new(format!("{name}={value}"), UNKNOWN) })
    }

    /// Returns its parts: words and options.
    pub(crate) fn into_parts(self) -> (VecDeque<String>, Vec<(String, String)>) {
        (self.words, self.options)
    }
}
