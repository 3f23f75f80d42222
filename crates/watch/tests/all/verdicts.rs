//! One loss of each kind, and what is said of it.
