//! Suggestions for misspelt names.

/// Returns the name that `wrong` most likely misspells, if any is close: one change in short names,
/// one in three letters of longer ones; or a name that begins or ends with it.
pub(super) fn closest<'a>(wrong: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let far = (wrong.chars().count() / 3).max(1);
    let score = |name: &'a str| {
        let part = wrong.len() >= 3 && (name.starts_with(wrong) || name.ends_with(wrong));
        let distance = if part { far } else { distance(wrong, name) };
        (distance <= far).then_some((distance, name))
    };
    names.filter_map(score).min().map(|(_, name)| name)
}

/// Names for block types in other programs, and the types here.
const OTHER_NAMES: [(&str, &str); 15] = [
    ("add_const", "add"),
    ("amplifier", "multiply_const"),
    ("band_pass_filter", "fir"),
    ("fir_filter", "fir"),
    ("freq_xlating_fir_filter", "rotator"),
    ("frequency_shift", "rotator"),
    ("gain", "multiply_const"),
    ("high_pass_filter", "fir"),
    ("low_pass", "fir"),
    ("low_pass_filter", "fir"),
    ("mixer", "rotator"),
    ("scale", "multiply_const"),
    ("sig_source", "signal_source"),
    ("uhd_usrp_source", "radio_rx"),
    ("usrp_source", "radio_rx"),
];

/// Returns the block type that `wrong` means: an alias, or a misspelling of a type.
pub(super) fn closest_type<'a>(
    wrong: &str,
    names: impl Iterator<Item = &'a str> + Clone,
) -> Option<&'a str> {
    let other = OTHER_NAMES.iter().find(|(other, _)| wrong.eq_ignore_ascii_case(other));
    let here = other.and_then(|(_, name)| names.clone().find(|known| known == name));
    here.or_else(|| closest(wrong, names))
}

/// Returns the number of letters to insert, drop, change or swap with the next to turn `a` into `b`
/// (Damerau 1964, optimal string alignment).
fn distance(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.to_lowercase().chars().collect();
    let b: Vec<char> = b.to_lowercase().chars().collect();
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut next = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let changed = row[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            next[j] = changed.min(row[j] + 1).min(next[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                next[j] = next[j].min(before[j - 2] + 1);
            }
        }
        before = std::mem::replace(&mut row, next);
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_understood_and_other_words_are_not() {
        let names = ["copy", "file_sink", "file_source", "rational_resampler", "head", "fir"];
        for (wrong, meant) in [
            ("copi", Some("copy")),
            ("file_sinc", Some("file_sink")),
            ("flie_source", Some("file_source")),
            ("resampler", Some("rational_resampler")),
            ("FIR", Some("fir")),
            ("tail", None),
            ("gain", None),
            ("", None),
        ] {
            assert_eq!(closest(wrong, names.into_iter()), meant, "{wrong}");
        }
    }

    #[test]
    fn distances_are_those_of_the_textbook() {
        for (a, b, expected) in [("kitten", "sitting", 3), ("ca", "ac", 1), ("", "abc", 3)] {
            assert_eq!(distance(a, b), expected, "{a} {b}");
        }
    }
}
