//! The layout of a scan, the values that a device measured at one moment (Linux,
//! Documentation/driver-api/iio/buffers.rst; Documentation/ABI/testing/sysfs-bus-iio).
//!
//! ```text
//!   scan_elements/in_accel_x_type   le:s12/16>>4    12 bits with a sign in 16, 4 to the right
//!   scan_elements/in_accel_x_index  0               its position in the scan
//! ```

use super::IioError;

/// The bits of one value and their position.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ScanFormat {
    /// Whether the least significant byte comes first.
    little_endian: bool,
    signed: bool,
    bits: u32,
    /// The size in memory, bytes: 1, 2, 4 or 8.
    bytes: usize,
    /// The number of such values in a row.
    repeat: usize,
    shift: u32,
}

impl ScanFormat {
    /// Reads `le:s12/16>>4` or `be:u8/8X3>>0`; `None` for a text that is not a packing.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (order, rest) = text.trim().split_once(':')?;
        let (value, rest) = rest.split_once('/')?;
        let (storage, shift) = rest.split_once(">>").unwrap_or((rest, "0"));
        let (storage, repeat) = storage.split_once('X').unwrap_or((storage, "1"));
        let little_endian = match order {
            "le" => true,
            "be" => false,
            _ => return None,
        };
        let signed = match value.get(..1)? {
            "s" => true,
            "u" => false,
            _ => return None,
        };
        let [bits, shift] = [value.get(1..)?, shift].map(|number| number.parse::<u32>().ok());
        let [storage, repeat] = [storage, repeat].map(|number| number.parse::<usize>().ok());
        let packing = Self {
            little_endian,
            signed,
            bits: bits?,
            bytes: storage? / 8,
            repeat: repeat?,
            shift: shift?,
        };
        let fits = packing.bits.checked_add(packing.shift)? as usize <= packing.bytes * 8;
        let is_sound = fits
            && packing.bits > 0
            && matches!(storage?, 8 | 16 | 32 | 64)
            && (1..=64).contains(&packing.repeat);
        is_sound.then_some(packing)
    }

    /// Returns the first value, from its bytes.
    fn value(&self, bytes: &[u8]) -> i64 {
        let mut word = [0; 8];
        for (place, byte) in word.iter_mut().zip(&bytes[..self.bytes]) {
            *place = *byte;
        }
        if !self.little_endian {
            word[..self.bytes].reverse();
        }
        let word = u64::from_le_bytes(word) >> self.shift;
        let unused = 64 - self.bits;
        match self.signed {
            true => (word << unused) as i64 >> unused,
            false => (word << unused >> unused) as i64,
        }
    }

    fn size(&self) -> usize {
        self.bytes * self.repeat
    }
}

/// One value of a scan.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Element {
    /// The name, `in_accel_x`.
    pub name: String,
    /// The position among the others.
    pub index: u32,
    /// The packing of its bits.
    pub packing: ScanFormat,
}

/// The elements of a scan and their offsets.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ScanLayout {
    elements: Vec<(usize, Element)>,
    /// The bytes of a scan.
    pub size: usize,
}

/// The name of the element with the time.
pub const TIMESTAMP: &str = "in_timestamp";

impl ScanLayout {
    /// Computes the layout like the kernel: in the order of the indices, each element at a multiple
    /// of its own size, and the whole a multiple of the largest.
    ///
    /// # Errors
    /// [`IioError::NoTimestamp`] when no element holds the time.
    pub fn new(device: &str, mut elements: Vec<Element>) -> Result<Self, IioError> {
        elements.sort_by_key(|element| element.index);
        let (mut end, mut largest, mut placed) = (0usize, 1, Vec::new());
        for element in elements {
            let size = element.packing.size();
            let at = end.next_multiple_of(size);
            (end, largest) = (at + size, largest.max(size));
            placed.push((at, element));
        }
        let has_time = placed.iter().any(|(_, element)| is_time(element));
        if !has_time {
            return Err(IioError::NoTimestamp { device: device.to_owned() });
        }
        Ok(Self { elements: placed, size: end.next_multiple_of(largest) })
    }

    /// Returns the time of a scan, nanoseconds, from its `size` bytes.
    #[must_use]
    pub fn time_ns(&self, scan: &[u8]) -> i64 {
        let time = self.elements.iter().find(|(_, element)| is_time(element));
        time.map_or(0, |(at, element)| element.packing.value(&scan[*at..]))
    }

    /// Returns the names of the values of a scan without its time, in their order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let all = self.elements.iter().filter(|(_, element)| !is_time(element));
        all.map(|(_, element)| element.name.as_str())
    }

    /// Returns the values of a scan without its time, with their names; of repeated ones the first.
    pub fn values<'a>(&'a self, scan: &'a [u8]) -> impl Iterator<Item = (&'a str, i64)> {
        let all = self.elements.iter().filter(|(_, element)| !is_time(element));
        all.map(|(at, element)| (element.name.as_str(), element.packing.value(&scan[*at..])))
    }
}

fn is_time(element: &Element) -> bool {
    // Signed 64 bits, like the kernel's own times.
    element.name == TIMESTAMP && element.packing.bytes == 8
}

#[cfg(test)]
mod tests {
    use super::*;

    fn element(name: &str, index: u32, packing: &str) -> Element {
        let packing = ScanFormat::parse(packing).unwrap();
        Element { name: name.to_owned(), index, packing }
    }

    #[test]
    fn values_are_found_by_their_packing() {
        let value = |packing: &str, bytes: &[u8]| ScanFormat::parse(packing).unwrap().value(bytes);
        assert_eq!(value("le:s12/16>>4\n", &[0xf5, 0xff]), -1);
        assert_eq!(value("le:u12/16>>4", &[0xf5, 0xff]), 4095);
        assert_eq!(value("be:s16/16>>0", &[0x80, 0x01]), -32767);
        assert_eq!(value("be:u24/32>>8", &[1, 2, 3, 4]), 0x01_0203);
        assert_eq!(value("le:s64/64>>0", &[0xff; 8]), -1);
        assert_eq!(value("le:s16/16X3>>0", &[2, 0, 9, 9, 9, 9]), 2);
        assert_eq!(value("be:u8/8", &[0xfe]), 254);
    }

    #[test]
    fn what_is_no_packing_is_none() {
        let wrong = ["", "le:s12/16>>5", "xe:s8/8>>0", "le:f32/32>>0", "le:s8", "le:s8/24>>0"];
        for text in wrong.into_iter().chain(["le:s0/8", "le:s/8", "le:s8/8X0", "le:s8/8>>-1"]) {
            assert_eq!(ScanFormat::parse(text), None, "{text}");
        }
        assert_eq!(ScanFormat::parse("le:s4294967295/8>>4294967295"), None);
    }

    #[test]
    fn a_scan_is_laid_out_as_the_kernel_does_it() {
        let elements = vec![
            element(TIMESTAMP, 3, "le:s64/64>>0"),
            element("in_accel_x", 0, "le:s12/16>>4"),
            element("in_temp", 1, "be:u24/32>>8"),
        ];
        let layout = ScanLayout::new("d", elements).unwrap();
        assert_eq!(layout.size, 16);
        let mut scan = [0u8; 16];
        scan[..2].copy_from_slice(&[0x30, 0x00]);
        scan[4..8].copy_from_slice(&[0, 1, 0, 9]);
        scan[8..].copy_from_slice(&1_234_567_890_123i64.to_le_bytes());
        assert_eq!(layout.time_ns(&scan), 1_234_567_890_123);
        let values: Vec<_> = layout.values(&scan).collect();
        assert_eq!(values, [("in_accel_x", 3), ("in_temp", 256)]);
        // The kernel's example: an element alone needs no space before the time.
        let alone = vec![element(TIMESTAMP, 0, "le:s64/64>>0")];
        assert_eq!(ScanLayout::new("d", alone).unwrap().size, 8);
        let none = ScanLayout::new("d", vec![element("in_accel_x", 0, "le:s8/8>>0")]);
        assert!(none.unwrap_err().to_string().contains("timestamp"));
    }
}
