//! What links had to say when they were closed: why wanted frames did not come, and the way out.

use std::sync::{Mutex, PoisonError};

/// More sentences than anybody reads.
const SENTENCES_MAX: usize = 16;

static SAID: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Keeps a sentence for whoever asks.
pub(super) fn keep(text: String) {
    let mut said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
    if said.len() < SENTENCES_MAX && !said.contains(&text) {
        said.push(text);
    }
}

/// Takes what the links that this process has closed since had to say (`FrameLink::explain`), a
/// sentence each.
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
