//! The partitioner held against brute force, against itself, and on recorded machines.

mod brute_force;
mod drawn;
mod hints;
mod large;
mod machines;
