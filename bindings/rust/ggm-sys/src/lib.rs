//! The C interface of libggm as Rust declarations: every function, struct and constant of `ggm.h`, under its own name.
//!
//! The declarations are made from the header, whose comments are the documentation here; the rules that hold for every
//! function are in its first section. Enum-typed fields are `i32`, as in C, so that a value this crate does not know is never
//! undefined behaviour. `INIT` of each struct (its `Default` too) is zeros and the struct's size, from which one starts.
//!
//! The crate `ggm` is the safe layer over this one.
//!
//! With the feature `load` nothing is linked: `load` opens the library when the program runs, and the functions have the same
//! names and signatures.
#![allow(non_camel_case_types)]
// The header writes shapes as [tokens, K] and inner products as <q,x>.
#![allow(rustdoc::broken_intra_doc_links, rustdoc::invalid_html_tags)]

use std::os::raw::{c_char, c_void};

#[rustfmt::skip]
mod types;
pub use types::*;

#[cfg(not(feature = "load"))]
mod linked {
    use super::*;

    macro_rules! functions {
        ($($(#[$meta:meta])* fn $name:ident($($argument:ident: $type:ty),* $(,)?) -> $result:ty;)*) => {
            // build.rs names the library.
            extern "C" { $($(#[$meta])* pub fn $name($($argument: $type),*) -> $result;)* }
        };
    }
    include!("functions.rs");

    /// Whether the functions may be called: always, the library is linked.
    pub const fn is_loaded() -> bool {
        true
    }
}
#[cfg(not(feature = "load"))]
pub use linked::*;

#[cfg(feature = "load")]
mod loaded;
#[cfg(feature = "load")]
pub use loaded::*;
