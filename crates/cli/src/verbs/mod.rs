//! One file a verb.

pub mod bench;
pub mod demo;
pub mod fault;
pub mod find;
pub mod radio;
pub mod run;
pub mod rx;
