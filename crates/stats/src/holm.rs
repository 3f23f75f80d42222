//! One error rate for a whole table of tests.

/// Adjusts the p of each test for the number of tests: a test with a p of at most α is a finding,
/// and the probability of any false finding is at most α, under any dependence (Holm, *Scandinavian
/// Journal of Statistics* 6, 1979).
#[must_use]
pub fn adjusted(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|a, b| p[*a].total_cmp(&p[*b]));
    let mut all = vec![1.0; p.len()];
    let mut largest = 0.0f64;
    for (rank, index) in order.into_iter().enumerate() {
        largest = largest.max(p[index] * (p.len() - rank) as f64).min(1.0);
        all[index] = largest;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R 4.2: `p.adjust(c(0.01, 0.04, 0.03, 0.005, 0.6), "holm")`.
    #[test]
    fn it_agrees_with_r() {
        let found = adjusted(&[0.01, 0.04, 0.03, 0.005, 0.6]);
        for (found, expected) in found.iter().zip([0.04, 0.09, 0.09, 0.025, 0.6]) {
            assert!((found - expected).abs() < 1e-12, "{found} {expected}");
        }
        assert_eq!(adjusted(&[]), [0.0; 0]);
        assert_eq!(adjusted(&[0.3, 0.9]), [0.6, 0.9]);
    }
}
