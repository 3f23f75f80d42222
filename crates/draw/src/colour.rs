//! Colours.

/// A colour: its parts of red, green and blue, of 255 each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rgb([u8; 3]);

impl Rgb {
    /// Returns the colour of these parts.
    #[must_use]
    pub const fn new(red: u8, green: u8, blue: u8) -> Self {
        Self([red, green, blue])
    }

    /// Returns its parts.
    #[must_use]
    pub const fn parts(self) -> [u8; 3] {
        self.0
    }

    /// Returns the colour when `share` of 255 of it lies over another.
    #[must_use]
    pub fn over(self, ground: Self, share: u8) -> Self {
        let share = u32::from(share);
        let mix = |own: u8, other: u8| {
            ((u32::from(own) * share + u32::from(other) * (255 - share) + 127) / 255) as u8
        };
        Self(std::array::from_fn(|part| mix(self.0[part], ground.0[part])))
    }
}

/// Which end of a text lies at its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alignment {
    /// The left end.
    Left,
    /// The middle.
    Center,
    /// The right end.
    Right,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_a_colour_lies_over_another() {
        let (black, white) = (Rgb::new(0, 0, 0), Rgb::new(255, 255, 255));
        assert_eq!((black.over(white, 255), black.over(white, 0)), (black, white));
        assert_eq!(black.over(white, 128), Rgb::new(127, 127, 127));
    }
}
