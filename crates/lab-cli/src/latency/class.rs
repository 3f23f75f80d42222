//! The scheduling class of a measured thread.

use crate::output::note;
use millstream_cpu::sched::{Class, set_current_thread};

/// The default class if this user may have it.
const CLASS: Class = Class::Fifo(80);

/// Returns the requested class; otherwise the default, or with a note the ordinary one if this user
/// may not have it. Tries it on a thread of its own, because only that shows the rights.
pub fn chosen(asked: Option<Class>) -> Class {
    asked.unwrap_or_else(|| match std::thread::spawn(|| set_current_thread(CLASS)).join() {
        Ok(Err(refused)) => {
            note(format_args!("millstream: {refused}; measuring in the ordinary class"));
            Class::Other
        }
        _ => CLASS,
    })
}
