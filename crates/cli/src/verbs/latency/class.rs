//! The scheduling class of what is measured.

use crate::output::note;
use millstream_cpu::sched::{Class, set_current_thread};

/// The class that is taken where none is asked for and the right is there.
const CLASS: Class = Class::Fifo(80);

/// What was asked for; otherwise the default, or with a note the ordinary one where this user may
/// not have it. It is tried on a thread of its own: the rights show only then.
pub fn chosen(asked: Option<Class>) -> Class {
    asked.unwrap_or_else(|| match std::thread::spawn(|| set_current_thread(CLASS)).join() {
        Ok(Err(refused)) => {
            note(format_args!("millstream: {refused}; measuring in the ordinary class"));
            Class::Other
        }
        _ => CLASS,
    })
}
