//! Every operation on the host backend, on small integers, bit for bit. References are plain float64 loops, which are exact
//! here.
#![deny(unsafe_op_in_unsafe_fn)]

mod complete;
mod elements;
mod errors;
mod extents;
mod gemm;
mod gemm_array;
mod handle;
mod moe;
mod permute;
mod route;
mod support;
