//! What a node knows of endpoint ids.

use millstream_wire::Epid;

/// The entries of a table, as in the logic of radios.
const ENTRIES: usize = 64;

const NONE: u8 = 0xff;

/// A value for each of 64 endpoint ids. A further id takes the place of the one that was inserted
/// first; one that is known gets its new value in its place.
#[derive(Debug)]
pub(crate) struct EpidTable<T> {
    /// The place of each id.
    places: Box<[u8]>,
    entries: Vec<(Epid, T)>,
    /// The place of the next id in a full table.
    oldest: usize,
}

impl<T> EpidTable<T> {
    /// Returns a table without entries.
    pub fn new() -> Self {
        let places = vec![NONE; 1 << 16].into_boxed_slice();
        Self { places, entries: Vec::with_capacity(ENTRIES), oldest: 0 }
    }

    /// Sets the value of an id.
    pub fn insert(&mut self, epid: Epid, value: T) {
        let place = usize::from(self.places[usize::from(epid.0)]);
        if let Some(known) = self.entries.get_mut(place) {
            known.1 = value;
            return;
        }
        let place = if self.entries.len() < ENTRIES {
            self.entries.push((epid, value));
            self.entries.len() - 1
        } else {
            let place = self.oldest;
            let (forgotten, _) = std::mem::replace(&mut self.entries[place], (epid, value));
            self.places[usize::from(forgotten.0)] = NONE;
            self.oldest = (place + 1) % ENTRIES;
            place
        };
        self.places[usize::from(epid.0)] = place as u8;
    }

    /// Returns the value of an id.
    pub fn get(&self, epid: Epid) -> Option<&T> {
        let place = usize::from(self.places[usize::from(epid.0)]);
        self.entries.get(place).map(|(_, value)| value)
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.places.fill(NONE);
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
