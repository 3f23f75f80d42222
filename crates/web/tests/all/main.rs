//! The server as clients see it, over plain sockets.

mod attacks;
mod bench;
mod lines;
mod slow;
