//! The shape of a configuration file, for editors and other programs.

/// A JSON schema (draft 2020-12) of the configuration file.
pub const SCHEMA: &str = include_str!("schema.json");
