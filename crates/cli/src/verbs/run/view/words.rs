//! Words, numbers and bars of a picture.

/// A cache by estimate.
pub fn nearest(cache: Option<String>) -> String {
    match cache {
        Some(cache) if cache.starts_with('L') => format!("~{cache}"),
        other => other.unwrap_or_else(dash),
    }
}

/// The lines of a sentence, broken between words.
pub fn wrapped(sentence: &str, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in sentence.split(' ') {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= columns => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// What is not known.
pub fn dash() -> String {
    "-".to_owned()
}

/// Formats a count in three digits with a unit: `999`, `1.23 k`, `45.6 M`.
pub fn scaled(value: f64) -> String {
    const UNITS: [&str; 5] = ["", " k", " M", " G", " T"];
    let (mut value, mut unit) = (value, 0);
    while value >= 999.5 && unit + 1 < UNITS.len() {
        (value, unit) = (value / 1000.0, unit + 1);
    }
    let decimals = match value {
        _ if unit == 0 => 0,
        value if value < 9.995 => 2,
        value if value < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.decimals$}{}", UNITS[unit])
}

/// Draws a share as a bar.
pub fn bar(share: f64, width: usize) -> String {
    let filled = (share.clamp(0.0, 1.0) * width as f64).round() as usize;
    format!("[{}{}]", "#".repeat(filled), ".".repeat(width - filled))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_three_digits() {
        for (value, text) in [
            (0.0, "0"),
            (999.4, "999"),
            (999.5, "1.00 k"),
            (12_345.0, "12.3 k"),
            (99_960.0, "100 k"),
            (1.5e6, "1.50 M"),
            (2e15, "2000 T"),
        ] {
            assert_eq!(scaled(value), text);
        }
    }

    #[test]
    fn bars_fill_up() {
        assert_eq!(bar(0.0, 4), "[....]");
        assert_eq!(bar(0.5, 4), "[##..]");
        assert_eq!(bar(7.0, 4), "[####]");
    }

    #[test]
    fn sentences_break_between_words() {
        assert_eq!(wrapped("a bc def ghij", 6), ["a bc", "def", "ghij"]);
        assert_eq!(wrapped("unbreakable", 4), ["unbreakable"]);
    }

    #[test]
    fn a_cache_is_an_estimate_and_memory_is_none() {
        assert_eq!(nearest(Some("L2".into())), "~L2");
        assert_eq!(nearest(Some("memory".into())), "memory");
        assert_eq!(nearest(None), "-");
    }
}
