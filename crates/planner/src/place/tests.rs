//! The partitioner compared with brute force and with itself, and on recorded machines.

mod brute_force;
mod drawn;
mod hints;
mod large;
mod machines;
