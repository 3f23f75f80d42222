//! The host side of a networked radio.
