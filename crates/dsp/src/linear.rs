//! Symmetric positive definite systems.

use crate::chunks::Chunks;

/// Solves `a x = b` in place by Cholesky's method; `a` is `n` by `n`, row by row, of which the
/// lower triangle is read and overwritten. On success `b` holds `x`; returns false if `a` is not
/// positive definite (the contents of `a` and `b` are then undefined).
///
/// # Panics
/// If `a` does not hold `b.len()` squared values.
#[must_use]
pub fn solve_positive(a: &mut [f64], b: &mut [f64]) -> bool {
    let n = b.len();
    assert!(a.len() == n * n, "a system of {n} equations");
    for i in 0..n {
        let (above, row) = a.split_at_mut(i * n);
        for j in 0..i {
            let other = &above[j * n..j * n + j + 1];
            row[j] = (row[j] - dot(&row[..j], other)) / other[j];
        }
        let pivot = row[i] - dot(&row[..i], &row[..i]);
        if pivot.is_nan() || pivot <= 0.0 {
            return false;
        }
        row[i] = pivot.sqrt();
    }
    for i in 0..n {
        let row = &a[i * n..];
        b[i] = (b[i] - dot(&row[..i], b)) / row[i];
    }
    for i in (0..n).rev() {
        let below: f64 = (i + 1..n).map(|j| a[j * n + i] * b[j]).sum();
        b[i] = (b[i] - below) / a[i * n + i];
    }
    true
}

/// Returns the scalar product over the common length, in four partial sums.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let n = a.len().min(b.len());
    let (a4, a1) = a[..n].in_chunks::<4>();
    let (b4, b1) = b[..n].in_chunks::<4>();
    let mut sums = [0.0; 4];
    for (a, b) in a4.iter().zip(b4) {
        for lane in 0..4 {
            sums[lane] += a[lane] * b[lane];
        }
    }
    let rest: f64 = a1.iter().zip(b1).map(|(a, b)| a * b).sum();
    sums.iter().sum::<f64>() + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_solution_satisfies_the_system() {
        let n = 37;
        // Gram matrix of pseudo-random rows, plus a little on the diagonal.
        let value = |i: usize, j: usize| ((i * 7919 + j * 104_729) % 1009) as f64 / 1009.0 - 0.5;
        let mut a = vec![0.0; n * n];
        for i in 0..n {
            for j in 0..n {
                a[i * n + j] = (0..n).map(|k| value(i, k) * value(j, k)).sum();
            }
            a[i * n + i] += 0.1;
        }
        let b: Vec<f64> = (0..n).map(|i| value(i, 3)).collect();
        let (mut factor, mut x) = (a.clone(), b.clone());
        assert!(solve_positive(&mut factor, &mut x));
        for i in 0..n {
            let product: f64 = (0..n).map(|j| a[i * n + j] * x[j]).sum();
            assert!((product - b[i]).abs() < 1e-9, "row {i}");
        }
    }

    #[test]
    fn an_indefinite_system_is_refused() {
        assert!(!solve_positive(&mut [1.0, 2.0, 2.0, 1.0], &mut [1.0, 1.0]));
        assert!(!solve_positive(&mut [f64::NAN], &mut [1.0]));
    }
}
