//! The explanations of closed links: why wanted frames did not come, and what to do.

use std::sync::{Mutex, PoisonError};

/// The most sentences kept; more would not be read.
const SENTENCES_MAX: usize = 16;

static SAID: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Stores a sentence for [`take_advice`].
pub(super) fn keep(text: String) {
    let mut said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
    if said.len() < SENTENCES_MAX && !said.contains(&text) {
        said.push(text);
    }
}

/// Takes the explanations of the links that this process has closed since the last call
/// (`FrameLink::explain`), a sentence each.
#[must_use]
pub fn take_advice() -> Vec<String> {
    std::mem::take(&mut *SAID.lock().unwrap_or_else(PoisonError::into_inner))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_sentence_is_told_once_and_not_without_end() {
        keep("first".into());
        (0..100).for_each(|number| keep(format!("{}", number / 2)));
        let said = take_advice();
        assert_eq!(said.len(), SENTENCES_MAX);
        assert_eq!(&said[..3], ["first", "0", "1"]);
        assert!(take_advice().is_empty());
    }
}
