//! Colours.

use crate::place::Distance;

/// Pale for idle, through amber, to red for full load.
const LOADS: [(f64, [f64; 3]); 4] = [
    (0.0, [236.0, 243.0, 250.0]),
    (0.25, [253.0, 234.0, 190.0]),
    (0.6, [252.0, 190.0, 116.0]),
    (1.0, [238.0, 112.0, 82.0]),
];

/// Returns the colour of a share of the load.
pub(super) fn load_colour(share: f64) -> String {
    let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 };
    let above = LOADS.iter().position(|(stop, _)| *stop >= share).unwrap_or(LOADS.len() - 1);
    let (from, to) = (LOADS[above.saturating_sub(1)], LOADS[above]);
    let part = if to.0 > from.0 { (share - from.0) / (to.0 - from.0) } else { 0.0 };
    let [red, green, blue] =
        std::array::from_fn(|i| (from.1[i] + (to.1[i] - from.1[i]) * part).round() as u8);
    format!("#{red:02x}{green:02x}{blue:02x}")
}

/// Returns the colour of a cut: warmer for a longer distance.
pub(super) fn distance_colour(distance: Distance) -> &'static str {
    match distance {
        Distance::SameCpu => "#6b7280",
        Distance::Sibling => "#4d9a4a",
        Distance::SharedL2 => "#1f9184",
        Distance::SharedL3 => "#2f74c0",
        Distance::SameNode => "#c07a12",
        Distance::OtherNode => "#c0392b",
    }
}

/// Returns fill and border of a frame at a depth.
pub(super) fn frame_colours(depth: usize) -> (&'static str, &'static str) {
    match depth {
        0 => ("#f1eff7", "#a79cc9"),
        1 => ("#e8f1f9", "#94b8d8"),
        2 => ("#e7f5ef", "#8cc5ab"),
        _ => ("#f7f3e6", "#cfbb80"),
    }
}
