//! Letters as bitmaps, from the font DejaVu Sans (`letters.py` makes the file, and describes it).

/// The letters of both faces.
const FILE: &[u8] = include_bytes!("letters.bin");

/// The bytes of a letter in front of its coverage.
const HEAD: usize = 9;

/// A size and weight of the font.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Face {
    Text,
    Title,
}

/// A letter: where it lies and how much of each pixel it covers, of 255.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Letter {
    /// The distance to the next letter, pixels.
    pub advance: i32,
    /// Where the bitmap begins: to the right of the pen, and below the base line.
    pub corner: (i32, i32),
    pub width: usize,
    /// Row by row.
    pub coverage: &'static [u8],
}

/// Returns the letters of a text; `?` stands for those that the font lacks.
pub(crate) fn letters(face: Face, text: &str) -> impl Iterator<Item = Letter> {
    let one = move |letter| find(face, letter).or_else(|| find(face, '?'));
    text.chars().filter_map(one)
}

fn find(face: Face, wanted: char) -> Option<Letter> {
    let (mut rest, mut faces) = (FILE, face as usize);
    while let Some((code, behind)) = rest.split_first_chunk() {
        let code = u32::from_le_bytes(*code);
        if code == 0 {
            faces = faces.checked_sub(1)?;
            rest = behind;
            continue;
        }
        let (head, behind) = rest.split_first_chunk::<HEAD>()?;
        let (width, height) = (usize::from(head[7]), usize::from(head[8]));
        let (coverage, behind) = behind.split_at_checked(width * height)?;
        if faces == 0 && code == u32::from(wanted) {
            let [left, top] = [head[5], head[6]].map(|byte| i32::from(i8::from_le_bytes([byte])));
            return Some(Letter { advance: head[4].into(), corner: (left, top), width, coverage });
        }
        rest = behind;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_faces_have_every_letter_that_pictures_use() {
        for face in [Face::Text, Face::Title] {
            for letter in (' '..='~').chain("µ°±×²äΔσ–…≤≥".chars()) {
                let found = find(face, letter).unwrap_or_else(|| panic!("{face:?} {letter:?}"));
                assert!((2..=20).contains(&found.advance), "{letter:?} {found:?}");
                let is_blank = found.coverage.iter().all(|covered| *covered == 0);
                assert_eq!(is_blank, letter == ' ', "{letter:?}");
            }
            assert!(find(face, '漢').is_none());
            assert_eq!(letters(face, "漢字").count(), 2);
        }
        let width = |face| letters(face, "MHz").map(|letter| letter.advance).sum::<i32>();
        assert!(width(Face::Text) < width(Face::Title));
    }
}
