//! A networked radio in software.
