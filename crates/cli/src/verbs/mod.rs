//! One file or folder a verb.

pub mod bench;
pub mod demo;
pub mod find;
pub mod graph;
pub mod host;
pub mod inspect;
pub mod lab;
pub mod latency;
pub mod probe;
pub mod run;
pub mod rx;
pub mod sim;
pub mod tx;
