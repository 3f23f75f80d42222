//! The `millstream` command, run as a user would.
//!
//! One program holds all of these tests, because linking dominates the build time.

mod atsc_live;
mod batch;
mod bench_buffer;
mod bench_packets;
mod bench_rate;
mod bench_soak;
mod bench_wait;
mod cases;
mod common;
mod dashboard;
mod demo;
mod doctor;
mod documents;
mod fault;
mod find;
mod generate;
mod inspect;
mod kills;
mod lab;
mod latency;
mod latency_launch;
mod latency_port;
mod names;
mod net;
mod options;
mod out_of_range;
mod outputs;
mod outside;
mod plan;
mod radio;
mod run;
mod run_plans;
mod rx;
mod rx_dest;
mod shield;
mod streams;
mod threads;
mod tune;
mod tx;
mod usage;
