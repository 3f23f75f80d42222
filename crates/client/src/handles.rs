//! Numbers for things that programs in C hold.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Things by their numbers, for interfaces to C.
///
/// A number has the place of its thing and the count of things that had that place before, so a
/// number that was given back never finds another thing. 0 is no number. A thing that was removed
/// lives until its last user is done.
#[derive(Debug)]
pub struct HandleTable<T> {
    slots: Mutex<Vec<HandleSlot<T>>>,
}

#[derive(Debug)]
struct HandleSlot<T> {
    generation: u32,
    thing: Option<Arc<T>>,
}

impl<T> Default for HandleTable<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> HandleTable<T> {
    /// Returns a table without things.
    pub const fn new() -> Self {
        Self { slots: Mutex::new(Vec::new()) }
    }

    /// Stores a thing and returns its number.
    pub fn insert(&self, thing: T) -> u64 {
        let mut slots = self.lock();
        let thing = Some(Arc::new(thing));
        let place = match slots.iter().position(|slot| slot.thing.is_none()) {
            Some(place) => {
                slots[place].generation += 1;
                slots[place].thing = thing;
                place
            }
            None => {
                slots.push(HandleSlot { generation: 1, thing });
                slots.len() - 1
            }
        };
        u64::from(slots[place].generation) << 32 | place as u64
    }

    /// Returns the thing of a number.
    pub fn get(&self, handle: u64) -> Option<Arc<T>> {
        self.lock().get(place(handle)).filter(|slot| slot.fits(handle))?.thing.clone()
    }

    /// Removes the thing of a number.
    pub fn remove(&self, handle: u64) -> Option<Arc<T>> {
        self.lock().get_mut(place(handle)).filter(|slot| slot.fits(handle))?.thing.take()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<HandleSlot<T>>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> HandleSlot<T> {
    fn fits(&self, handle: u64) -> bool {
        u64::from(self.generation) == handle >> 32
    }
}

fn place(handle: u64) -> usize {
    (handle & 0xFFFF_FFFF) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_never_finds_a_later_thing() {
        let table = HandleTable::new();
        let (first, second) = (table.insert("a"), table.insert("b"));
        assert_eq!(table.remove(first).as_deref(), Some(&"a"));
        let third = table.insert("c");
        assert_eq!(place(first), place(third));
        for gone in [first, 0, 1, u64::MAX, first + (5 << 32)] {
            assert!(table.get(gone).is_none() && table.remove(gone).is_none(), "{gone:#x}");
        }
        assert_eq!(table.get(second).as_deref(), Some(&"b"));
        assert_eq!(table.get(third).as_deref(), Some(&"c"));
    }

    #[test]
    fn a_removed_thing_lives_as_long_as_it_is_used() {
        let table = HandleTable::new();
        let handle = table.insert(String::from("read"));
        let used = table.get(handle).unwrap();
        table.remove(handle);
        assert_eq!(*used, "read");
    }
}
