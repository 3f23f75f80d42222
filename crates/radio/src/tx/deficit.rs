//! From packets and bytes that did not arrive to the samples in them.

use super::window::Totals;

/// Kinds of packets told apart between two audits: full ones, the last ones of bursts, commands.
const KINDS: usize = 8;

/// Combinations that are tried before the answer is given as a range.
const STEPS_MAX: u32 = 100_000;

#[derive(Debug, Clone, Copy, Default)]
struct Kind {
    flow_bytes: u64,
    samples: u64,
    packets: u64,
}

/// What was sent between two audits, by kind of packet.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Mix {
    kinds: [Kind; KINDS],
    /// Packets that found no place.
    others: Totals,
    others_samples: u64,
}

/// Samples in packets that did not arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lost {
    pub samples_min: u64,
    pub samples_max: u64,
}

impl Mix {
    /// Packets leave.
    pub fn push(&mut self, packets: u64, flow_bytes: u64, samples: u64) {
        for kind in &mut self.kinds {
            if kind.packets == 0 || (kind.flow_bytes, kind.samples) == (flow_bytes, samples) {
                *kind = Kind { flow_bytes, samples, packets: kind.packets + packets };
                return;
            }
        }
        self.others = self.others.plus(packets, flow_bytes);
        self.others_samples += packets * samples;
    }

    /// Adds what was sent in another span.
    pub fn merge(&mut self, other: &Self) {
        for kind in other.kinds.iter().filter(|kind| kind.packets > 0) {
            self.push(kind.packets, kind.flow_bytes, kind.samples);
        }
        self.others.packets += other.others.packets;
        self.others.bytes += other.others.bytes;
        self.others_samples += other.others_samples;
    }

    /// Whether nothing was sent.
    pub fn is_empty(&self) -> bool {
        // The first place is taken first.
        self.kinds[0].packets == 0
    }

    fn samples(&self) -> u64 {
        let known: u64 = self.kinds.iter().map(|kind| kind.packets * kind.samples).sum();
        known + self.others_samples
    }

    /// The samples in `missing`, which is a part of what was sent. One number where only one
    /// combination of packets gives those bytes, as it is wherever packets are of one size.
    pub fn lost(&self, missing: Totals) -> Lost {
        if missing == Totals::default() {
            return Lost { samples_min: 0, samples_max: 0 };
        }
        let mut search = Search { kinds: self.kinds, found: None, steps: 0 };
        search.kinds.sort_by_key(|kind| std::cmp::Reverse(kind.packets));
        if self.others == Totals::default() {
            search.from(0, missing.packets, missing.bytes, 0);
        }
        match search.found {
            Some(lost) if search.steps < STEPS_MAX => lost,
            // A count that no combination gives: packets that came twice, or too many kinds.
            _ => {
                let most = self.samples().min(missing.bytes.min(1 << 60) / 4);
                Lost { samples_min: 0, samples_max: most }
            }
        }
    }
}

struct Search {
    kinds: [Kind; KINDS],
    found: Option<Lost>,
    steps: u32,
}

impl Search {
    fn from(&mut self, index: usize, packets: u64, bytes: u64, samples: u64) {
        self.steps += 1;
        if packets == 0 && bytes == 0 {
            let lost =
                self.found.get_or_insert(Lost { samples_min: samples, samples_max: samples });
            lost.samples_min = lost.samples_min.min(samples);
            lost.samples_max = lost.samples_max.max(samples);
            return;
        }
        let Some(kind) = self.kinds.get(index).copied() else { return };
        if kind.packets == 0 || packets == 0 || self.steps >= STEPS_MAX {
            return;
        }
        let most = kind.packets.min(packets).min(bytes / kind.flow_bytes);
        for count in (0..=most).rev() {
            let left = bytes - count * kind.flow_bytes;
            self.from(index + 1, packets - count, left, samples + count * kind.samples);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost(mix: &Mix, packets: u64, bytes: u64) -> (u64, u64) {
        let lost = mix.lost(Totals { packets, bytes });
        (lost.samples_min, lost.samples_max)
    }

    #[test]
    fn packets_of_one_size_give_one_answer() {
        let mut mix = Mix::default();
        mix.push(200, 8016, 2000);
        mix.push(3, 24, 0);
        mix.push(1, 216, 50);
        assert_eq!(lost(&mix, 0, 0), (0, 0));
        assert_eq!(lost(&mix, 7, 7 * 8016), (14_000, 14_000));
        assert_eq!(lost(&mix, 3, 8016 + 216 + 24), (2050, 2050));
        assert_eq!(lost(&mix, 2, 48), (0, 0), "commands hold none");
    }

    #[test]
    fn what_cannot_be_told_apart_is_a_range() {
        let mut mix = Mix::default();
        // 9 and 10 samples fill as many words; and a command is as long as two samples with time.
        mix.push(10, 56, 9);
        mix.push(1, 56, 10);
        assert_eq!(lost(&mix, 2, 112), (18, 19));
        assert_eq!(lost(&mix, 1, 57), (0, 14), "no such packet");
        let mut many = Mix::default();
        for size in 1..20 {
            many.push(1, 16 + 8 * size, size);
        }
        assert_eq!(lost(&many, 1, 24), (0, 6));
    }

    #[test]
    fn spans_add_up() {
        let (mut mix, mut other) = (Mix::default(), Mix::default());
        mix.push(5, 416, 100);
        other.push(5, 416, 100);
        other.push(1, 216, 50);
        mix.merge(&other);
        assert_eq!(lost(&mix, 8, 7 * 416 + 216), (750, 750));
        assert_eq!(mix.samples(), 1050);
    }
}
