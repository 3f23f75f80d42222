//! Failing cases: found among many, made smaller, and told.

use std::any::Any;
use std::cell::Cell;
use std::fmt::{Debug, Display};
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

/// The most runs for making a case smaller.
const RUNS_MAX: usize = 400;

/// The most failing cases that are made smaller.
const TOLD_MAX: usize = 3;

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// A case that may fail.
pub trait Shrink: Clone + Debug {
    /// Returns cases of less, those with the most removed first.
    fn smaller(&self) -> Vec<Self>;
}

/// The smaller variants of a case, as they are collected.
pub struct Variants<'c, C> {
    case: &'c C,
    all: Vec<C>,
}

impl<'c, C: Clone> Variants<'c, C> {
    pub fn of(case: &'c C) -> Self {
        Self { case, all: Vec::new() }
    }

    /// Adds the case with a change.
    pub fn put(&mut self, change: impl FnOnce(&mut C)) {
        let mut less = self.case.clone();
        change(&mut less);
        self.all.push(less);
    }

    /// Adds the case without each element of a list in turn.
    pub fn without_each<T>(&mut self, list: fn(&mut C) -> &mut Vec<T>) {
        for index in 0..list(&mut self.case.clone()).len() {
            self.put(|case| drop(list(case).remove(index)));
        }
    }

    /// Adds the case with half of a length, and with one less.
    pub fn shorter(&mut self, length: fn(&mut C) -> &mut Option<u64>) {
        if let Some(samples) = length(&mut self.case.clone()).filter(|samples| *samples > 1) {
            self.put(|case| *length(case) = Some(samples / 2));
            self.put(|case| *length(case) = Some(samples - 1));
        }
    }

    /// Adds the case with half of a number.
    pub fn half(&mut self, number: fn(&mut C) -> &mut u64) {
        if *number(&mut self.case.clone()) > 1 {
            self.put(|case| *number(case) /= 2);
        }
    }

    pub fn into_vec(self) -> Vec<C> {
        self.all
    }
}

/// Prints `text`, unless this thread runs one of many cases.
pub fn tell(text: impl Display) {
    if !QUIET.get() {
        println!("{text}");
    }
}

/// Returns the message with which `run` fails. Nothing is printed meanwhile.
fn failure(run: impl FnOnce()) -> Option<String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !QUIET.get() {
                before(info);
            }
        }));
    });
    QUIET.set(true);
    let outcome = panic::catch_unwind(AssertUnwindSafe(run));
    QUIET.set(false);
    outcome.err().map(|cause| message(&*cause))
}

fn message(cause: &(dyn Any + Send)) -> String {
    let text = cause.downcast_ref::<String>().map(String::as_str);
    text.or(cause.downcast_ref::<&str>().copied()).unwrap_or("a failure without text").to_owned()
}

/// Returns a small case that fails too, and with which message.
pub fn smallest<C: Shrink>(case: &C, run: impl Fn(&C)) -> (C, String) {
    let mut found = (case.clone(), failure(|| run(case)).unwrap_or_default());
    let mut runs = 0;
    loop {
        let smaller = found.0.smaller().into_iter().find_map(|smaller| {
            runs += 1;
            let failure = (runs <= RUNS_MAX).then(|| failure(|| run(&smaller))).flatten()?;
            Some((smaller, failure))
        });
        match smaller {
            Some(smaller) => found = smaller,
            None => return found,
        }
    }
}

/// Runs the case of each seed; a failing one is made smaller and printed with its seed.
///
/// # Panics
/// When a case fails.
pub fn check_all<C: Shrink>(
    seeds: impl Iterator<Item = u64>,
    case: impl Fn(u64) -> C,
    run: impl Fn(&C),
) {
    let mut failed = Vec::new();
    for seed in seeds {
        let drawn = case(seed);
        if failure(|| run(&drawn)).is_none() {
            continue;
        }
        failed.push(seed);
        if failed.len() <= TOLD_MAX {
            let (small, why) = smallest(&drawn, &run);
            println!("seed {seed} fails: {why}\n  {small:?}");
            if failed.len() == 1 {
                let small = small.clone();
                // Once more, with all that it prints.
                let _ = panic::catch_unwind(AssertUnwindSafe(|| run(&small)));
            }
        }
    }
    assert_eq!(failed, [0; 0], "the seeds of the cases that failed");
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Shrink for Vec<u32> {
        fn smaller(&self) -> Vec<Self> {
            let without = |index| {
                let mut less = self.clone();
                less.remove(index);
                less
            };
            (0..self.len()).map(without).collect()
        }
    }

    #[test]
    fn a_failing_case_loses_all_that_it_does_not_need() {
        let run = |case: &Vec<u32>| assert!(!case.contains(&7), "seven");
        assert_eq!(smallest(&vec![1, 7, 2, 9], run), (vec![7], "seven".to_owned()));
        let seeds = failure(|| check_all([3, 4].into_iter(), |seed| vec![seed as u32, 7], run));
        assert!(seeds.unwrap().contains("[3, 4]"));
        check_all([3, 4].into_iter(), |seed| vec![seed as u32], run);
    }
}
