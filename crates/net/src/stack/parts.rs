//! A frame that may lie in several parts.

/// The parts of one frame, in order. Its headers have to lie in the first.
#[derive(Debug, Clone, Copy)]
pub(super) struct FrameParts<'a>(pub(super) &'a [&'a [u8]]);

impl<'a> FrameParts<'a> {
    /// Returns the part with the headers.
    #[inline]
    pub(super) fn first(&self) -> &'a [u8] {
        self.0.first().copied().unwrap_or_default()
    }

    /// Returns the bytes of the frame.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.0.iter().map(|part| part.len()).sum()
    }

    /// Returns the bytes from `start` to `end`, as far as they exist.
    #[inline]
    pub(super) fn range(&self, start: usize, end: usize) -> impl Iterator<Item = &'a [u8]> {
        let mut before = 0;
        self.0.iter().map(move |part| {
            let at = |position: usize| position.saturating_sub(before).min(part.len());
            let piece = &part[at(start)..at(end.max(start))];
            before += part.len();
            piece
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_found_across_parts() {
        let whole: Vec<u8> = (0..20).collect();
        let parts = [&whole[..7], &whole[7..7], &whole[7..12], &whole[12..]];
        let parts = FrameParts(&parts);
        assert_eq!(parts.len(), 20);
        for start in 0..22 {
            for end in start..22 {
                let got: Vec<u8> = parts.range(start, end).flatten().copied().collect();
                assert_eq!(got, whole[start.min(20)..end.min(20)]);
            }
        }
        assert!(FrameParts(&[]).first().is_empty());
    }
}
