//! The page with the ledgers' promise names the tests that enforce it.

use std::path::{Path, PathBuf};

/// Returns the text of all Rust files below a folder.
fn sources(folder: &Path) -> String {
    let mut text = String::new();
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path: PathBuf = entry.expect("an entry").path();
        if path.is_dir() {
            text += &sources(&path);
        } else if path.extension().is_some_and(|end| end == "rs") {
            text += &std::fs::read_to_string(&path).expect("a source file");
        }
    }
    text
}

#[test]
fn the_tests_that_the_ledgers_promise_names_are_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = root.join("../../docs/reference/ledger.md");
    let page = std::fs::read_to_string(page).expect("the page");
    let sources = ["src", "tests"].map(|folder| sources(&root.join(folder))).concat();
    // The name of a test is a sentence.
    let is_sentence = |word: &&str| word.matches('_').count() >= 5 && !word.contains(' ');
    let names: Vec<_> = page.split('`').skip(1).step_by(2).filter(is_sentence).collect();
    assert!(names.len() >= 10, "{names:?}");
    for name in names {
        assert!(sources.contains(&format!("fn {name}(")), "no test is called {name}");
    }
}
