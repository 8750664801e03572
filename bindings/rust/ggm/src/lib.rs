//! Grouped GEMM for Mixture-of-Experts layers, with the token permutation fused into the products: the safe layer over libggm.
//!
//! A [`Handle`] stands for a backend: the host, or an NVIDIA GPU. A problem is a plain struct of sizes, types and orders,
//! started from its `Default`; the handle validates it and returns an operation, which is run as often as one likes on
//! tensors:
//!
//! ```
//! use ggm::*;
//!
//! # fn main() -> Result<()> {
//! // Two groups of rows, each times a weight matrix of its own: [3,2] rows, [2,2,2] weights.
//! let handle = Handle::on(Backend::Host)?;
//! let product = handle.grouped_gemm(&GroupedGemmProblem {
//!     groups: 2, m: 3, n: 2, k: 2,
//!     a_type: DataType::Float32, b_type: DataType::Float32, b_order: Order::Nk,
//!     ..Default::default()
//! })?;
//! let mut workspace = product.workspace()?;
//! let mut d = [0.0f32; 6];
//! product.run(
//!     GroupedGemmTensors {
//!         group_sizes: (&[1, 2]).into(),
//!         a: (&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0]).into(),
//!         b: (&[1.0f32, 0.0, 0.0, 1.0, 0.0, 1.0, 1.0, 0.0]).into(), // the identity; a swap
//!         d: (&mut d).into(),
//!         ..Default::default()
//!     },
//!     &mut workspace,
//!     Stream::DEFAULT,
//! )?;
//! assert_eq!(d, [1.0, 2.0, 4.0, 3.0, 6.0, 5.0]);
//! # Ok(())
//! # }
//! ```
//!
//! # Rules
//!
//! **Errors** carry the library's text: argument, value, limit. When a call fails, nothing was written, except after CUDA and
//! internal errors, which may come late.
//!
//! **Memory.** The caller owns all of it. On the host backend tensors are slices, and each is held against the length and
//! type that the problem says. On CUDA they are [`DeviceSlice`]s, whose creation is `unsafe`: the caller promises that the
//! memory is there until the stream is done with it. This crate allocates no device memory and copies none. A call allocates
//! nothing, but for
//! [`GroupedGemmArray::run_groups`] and for the text of an error.
//!
//! **Threads.** [`Handle`] and the operations are `Send` and `Sync`. Calls may run at the same time when their workspaces and
//! outputs differ, as the borrow checker has it anyway; [`Faults`] may be shared.
//!
//! **Streams.** Work is put on the given [`Stream`]; no call waits for it. The host backend takes [`Stream::DEFAULT`] only
//! and returns when the work is done.
//!
//! What each operation means to the last bit (rounding, order of sums, untrusted data) is in `ggm.h`, whose comments are the
//! documentation of
//! [`sys`].
#![warn(missing_docs)]
#![deny(unsafe_op_in_unsafe_fn)]

/// The C interface, for what this crate does not wrap.
pub use ggm_sys as sys;

#[macro_use]
mod operation;
mod element;
mod error;
#[cfg(test)]
mod field_tests;
mod gemm;
mod gemm_array;
mod handle;
mod memory;
mod moe;
mod route;
mod tensor_check;
mod types;
mod workspace;

pub use element::{Bf16, Element, ElementType, F16};
pub use error::{check, copy_last_error, last_error, Error, Result, Status, StatusClass};
pub use gemm::{GroupedGemm, GroupedGemmProblem, GroupedGemmTensors};
pub use gemm_array::{GemmGroup, GroupedGemmArray, GroupedGemmArrayProblem, GroupedGemmArrayTensors, Pointers};
#[cfg(feature = "load")]
pub use handle::load;
pub use handle::{CreateParams, Device, Handle, HostAllocator, Info, LogFunction};
pub use memory::{Addend, DeviceSlice, Fault, Faults, FaultsRef, Input, Output, Stream, FAULT_WORDS};
pub use moe::{MoeBackward, MoeBackwardTensors, MoeForward, MoeForwardTensors, MoeProblem};
pub use route::{
    Permute, PermuteProblem, PermuteTensors, Route, RouteProblem, RouteTensors, Unpermute, UnpermuteBackward,
    UnpermuteBackwardTensors,
};
pub use types::{
    AOrder, Backend, Combine, ComputeType, DataType, Gradients, GroupForm, IndexType, KernelFamily, Layout, LogLevel, Order,
    Rows, Stride,
};
pub use workspace::{Workspace, WorkspaceRef, WORKSPACE_ALIGNMENT};

/// The version of the loaded library: 10000 * major + 100 * minor + patch. With the feature `load` it is 0 before a library
/// is loaded.
pub fn version() -> i32 {
    if !sys::is_loaded() {
        return 0;
    }
    // SAFETY: no precondition.
    unsafe { sys::ggm_version() }
}

/// One line about the library's build: version, commit, CUDA version and architectures, host kernels. With the feature `load`
/// it is empty before a library is loaded.
pub fn build_info() -> &'static str {
    if !sys::is_loaded() {
        return "";
    }
    // SAFETY: a static text, never NULL.
    unsafe { error::static_text(sys::ggm_build_info()) }
}

/// Runs the programs of the README as documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
pub struct ReadmePrograms;
