//! Slices as arrays of a fixed size: the standard library's `as_chunks`, which Rust 1.85 lacks.

/// Whole arrays of `N` items, and the items that are left over.
pub trait Chunks<T> {
    /// Returns the arrays from the first item on, and the rest behind them.
    fn in_chunks<const N: usize>(&self) -> (&[[T; N]], &[T]);

    /// Returns the arrays from the first item on, and the rest behind them.
    fn in_chunks_mut<const N: usize>(&mut self) -> (&mut [[T; N]], &mut [T]);

    /// Returns the rest, and behind it the arrays up to the last item.
    fn in_rchunks<const N: usize>(&self) -> (&[T], &[[T; N]]);
}

/// Returns all items as arrays.
#[inline(always)]
fn arrays<T, const N: usize>(items: &[T]) -> &[[T; N]] {
    // SAFETY: so many arrays lie there; they have the layout of their items.
    unsafe { std::slice::from_raw_parts(items.as_ptr().cast(), items.len() / N) }
}

impl<T> Chunks<T> for [T] {
    #[inline(always)]
    fn in_chunks<const N: usize>(&self) -> (&[[T; N]], &[T]) {
        let (whole, rest) = self.split_at(self.len() / N * N);
        (arrays(whole), rest)
    }

    #[inline(always)]
    fn in_chunks_mut<const N: usize>(&mut self) -> (&mut [[T; N]], &mut [T]) {
        let (whole, rest) = self.split_at_mut(self.len() / N * N);
        let (first, count) = (whole.as_mut_ptr().cast(), whole.len() / N);
        // SAFETY: so many arrays lie there, borrowed; they have the layout of their items.
        (unsafe { std::slice::from_raw_parts_mut(first, count) }, rest)
    }

    #[inline(always)]
    fn in_rchunks<const N: usize>(&self) -> (&[T], &[[T; N]]) {
        let (rest, whole) = self.split_at(self.len() % N);
        (rest, arrays(whole))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_those_of_the_standard_library() {
        let mut items: Vec<u16> = (0..23).collect();
        for len in 0..items.len() {
            let items = &mut items[..len];
            assert_eq!(items.in_chunks::<4>(), items.as_chunks::<4>());
            assert_eq!(items.in_rchunks::<4>(), items.as_rchunks::<4>());
            let mut copy = items.to_vec();
            assert_eq!(copy.in_chunks_mut::<4>(), items.as_chunks_mut::<4>());
        }
    }
}
