//! What a node knows of endpoint ids.

use millstream_wire::Epid;

/// The entries of a table, as in the logic of radios.
const ENTRIES: usize = 64;

/// A value for each of 64 endpoint ids. A further id takes the place of the one that was inserted
/// first; one that is known gets its new value in its place.
#[derive(Debug)]
pub(crate) struct EpidTable<T> {
    entries: Vec<(Epid, T)>,
    /// The place of the next id in a full table.
    oldest: usize,
}

impl<T> EpidTable<T> {
    /// Returns a table without entries.
    pub fn new() -> Self {
        Self { entries: Vec::with_capacity(ENTRIES), oldest: 0 }
    }

    /// Sets the value of an id.
    pub fn insert(&mut self, epid: Epid, value: T) {
        if let Some(known) = self.entries.iter_mut().find(|entry| entry.0 == epid) {
            known.1 = value;
        } else if self.entries.len() < ENTRIES {
            self.entries.push((epid, value));
        } else {
            self.entries[self.oldest] = (epid, value);
            self.oldest = (self.oldest + 1) % ENTRIES;
        }
    }

    /// Returns the value of an id.
    pub fn get(&self, epid: Epid) -> Option<&T> {
        self.entries.iter().find(|entry| entry.0 == epid).map(|(_, value)| value)
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.entries.clear();
        self.oldest = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sixty_fifth_id_takes_the_place_of_the_first_and_a_known_one_keeps_its_own() {
        let mut table = EpidTable::new();
        (1..=64).for_each(|epid| table.insert(Epid(epid), epid));
        for value in 100..200 {
            table.insert(Epid(1), value);
        }
        assert_eq!((table.get(Epid(1)), table.get(Epid(64))), (Some(&199), Some(&64)));
        table.insert(Epid(65), 65);
        assert_eq!(table.get(Epid(1)), None, "it was inserted first, whenever it was set");
        table.insert(Epid(1), 1);
        let found = (1..=66).filter(|epid| table.get(Epid(*epid)).is_some());
        assert_eq!(found.collect::<Vec<_>>(), [1].into_iter().chain(3..=65).collect::<Vec<_>>());
        table.clear();
        assert_eq!(table.get(Epid(65)), None);
    }
}
