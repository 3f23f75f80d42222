//! The flowgraph runtime: blocks, ports, partitions, plans.
