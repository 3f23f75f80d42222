//! The partitioner held against brute force, against itself, and on recorded machines.

mod brute_force;
mod large;
mod random;
