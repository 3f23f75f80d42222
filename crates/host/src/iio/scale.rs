//! The unit of values (Linux, Documentation/ABI/testing/sysfs-bus-iio, `…_scale` and `…_offset`).

use super::IioDevice;
use std::fs;

/// The conversion of a raw value: plus `offset`, times `factor`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ValueScale {
    /// Added to the raw value.
    pub offset: f64,
    /// Multiplied with the sum.
    pub factor: f64,
}

impl ValueScale {
    /// Returns a raw value in the unit.
    #[must_use]
    pub fn apply(self, raw: i64) -> f32 {
        ((raw as f64 + self.offset) * self.factor) as f32
    }
}

impl IioDevice {
    /// Returns the conversion of an element (`in_voltage0`, `in_accel_x`) into the unit of its
    /// type. A device that tells none has raw values.
    #[must_use]
    pub fn scale(&self, element: &str) -> ValueScale {
        // The element's own file; that of its channel without the modifier (`in_voltage0` of
        // `in_voltage0_i`); and those without numbers, for all of its type (`in_accel_x`,
        // `in_voltage-voltage`).
        let channel = |name: &str| match name.match_indices('_').nth(1) {
            Some((end, _)) => name[..end].to_owned(),
            None => name.to_owned(),
        };
        let plain: String = element.chars().filter(|c| !c.is_ascii_digit()).collect();
        let names = [element.to_owned(), channel(element), plain.clone(), channel(&plain)];
        let read = |what: &str| {
            names.iter().find_map(|name| {
                let text = fs::read_to_string(self.folder.join(format!("{name}_{what}"))).ok()?;
                text.trim().parse::<f64>().ok().filter(|value| value.is_finite())
            })
        };
        ValueScale { offset: read("offset").unwrap_or(0.0), factor: read("scale").unwrap_or(1.0) }
    }
}
