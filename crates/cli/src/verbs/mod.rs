//! One file a verb.

pub mod atsc;
pub mod bench;
pub mod blocks;
pub mod demo;
pub mod doctor;
pub mod fault;
pub mod find;
pub mod generate;
pub mod grant;
pub mod guest;
pub mod lab;
pub mod latency;
pub mod net;
pub mod plan;
pub mod radio;
pub mod run;
pub mod rx;
pub mod shield;
pub mod tune;
pub mod tx;
