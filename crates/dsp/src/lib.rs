//! Signal-processing kernels.
