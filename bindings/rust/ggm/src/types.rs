//! The choices of a problem. The first value of each is the default, which is 0 in C: "as the library says", or "not chosen"
//! where the library asks for a choice.
use crate::sys;

macro_rules! choices {
    ($($(#[$meta:meta])* $name:ident { $(#[$first_meta:meta])* $first:ident = $first_value:expr,
       $($(#[$value_meta:meta])* $variant:ident = $value:expr,)* })*) => {
        $(
            $(#[$meta])*
            #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
            #[repr(i32)]
            pub enum $name {
                $(#[$first_meta])* #[default] $first = $first_value,
                $($(#[$value_meta])* $variant = $value,)*
            }

            impl $name {
                /// The number that C has for it.
                pub const fn code(self) -> i32 {
                    self as i32
                }
            }
        )*
    };
}
choices! {
    /// Type of the elements of a tensor. 16-bit inputs are added up in float32.
    DataType {
        /// An optional input is absent; an output has the type that its field names; a required type was not chosen.
        Default = sys::GGM_TYPE_DEFAULT,
        /// `f32`
        Float32 = sys::GGM_TYPE_FLOAT32,
        /// [`Bf16`](crate::Bf16), or its bits as `u16`
        BFloat16 = sys::GGM_TYPE_BFLOAT16,
        /// [`F16`](crate::F16), or its bits as `u16`
        Float16 = sys::GGM_TYPE_FLOAT16,
        /// `f64`, for gradient checks
        Float64 = sys::GGM_TYPE_FLOAT64,
    }
    /// Type of ids, group sizes and offsets.
    IndexType {
        /// Grouped products: int32. Routing: not chosen. MoE: there are no ids, the routing arrays are given.
        Default = sys::GGM_INDEX_DEFAULT,
        /// `i32`
        Int32 = sys::GGM_INDEX_INT32,
        /// `i64`
        Int64 = sys::GGM_INDEX_INT64,
    }
    /// Storage order of a weight matrix, or of B. It must be chosen: a wrong guess would go unseen when K = N.
    Order {
        /// Not chosen.
        Unset = 0,
        /// `[E, N, K]`, K contiguous
        Nk = sys::GGM_ORDER_NK,
        /// `[E, K, N]`, N contiguous
        Kn = sys::GGM_ORDER_KN,
    }
    /// Storage order of A in [`GroupedGemmArrayProblem`](crate::GroupedGemmArrayProblem). It must be chosen.
    AOrder {
        /// Not chosen.
        Unset = 0,
        /// `[M, K]`, K contiguous
        Mk = sys::GGM_ORDER_MK,
        /// `[K, M]`, M contiguous
        Km = sys::GGM_ORDER_KM,
    }
    /// Arithmetic of the products.
    ComputeType {
        /// float32 products are float32 multiply-adds; 16-bit ones are exact, with a float32 sum.
        Exact = sys::GGM_COMPUTE_EXACT,
        /// Known by name, refused in this version.
        Tf32 = sys::GGM_COMPUTE_TF32,
        /// Known by name, refused in this version.
        Tf32x3 = sys::GGM_COMPUTE_TF32X3,
    }
    /// Layout of [`GroupedGemmProblem`](crate::GroupedGemmProblem); the shapes are there.
    Layout {
        /// Rows of a group follow each other, or `row_group` names the group of each.
        Contiguous = sys::GGM_LAYOUT_CONTIGUOUS,
        /// Each group has `m` rows, of which the first `group_sizes[e]` count.
        Masked = sys::GGM_LAYOUT_MASKED,
        /// The inner dimension is the one that is split into groups: weight gradients.
        VariableK = sys::GGM_LAYOUT_VARIABLE_K,
    }
    /// How the groups of a grouped product are given.
    GroupForm {
        /// `group_sizes [groups]`; groups follow each other from row 0
        Sizes = sys::GGM_GROUPS_SIZES,
        /// `group_offsets [groups+1]`: first row of each group, then the end of the last
        Offsets = sys::GGM_GROUPS_OFFSETS,
        /// `group_offsets [groups]`: end of each group; the first starts at row 0
        Ends = sys::GGM_GROUPS_ENDS,
        /// `group_offsets [groups]` first rows, `group_sizes [groups]`; gaps allowed, any order
        StartsSizes = sys::GGM_GROUPS_STARTS_SIZES,
        /// `row_group [rows]`: the group of each row, in any order; -1: the row belongs to none
        RowGroup = sys::GGM_GROUPS_ROW_GROUP,
    }
    /// How the rows of one token are summed. All give the same bits.
    Combine {
        /// The library chooses.
        Auto = sys::GGM_COMBINE_AUTO,
        /// Each row is added into y as it is stored: no `[rows, N]` tensor in the workspace.
        Ordered = sys::GGM_COMBINE_ORDERED,
        /// That tensor is stored and then summed.
        TwoStep = sys::GGM_COMBINE_TWO_STEP,
    }
    /// Whether rows are addressed by token or are already in sorted (grouped) order.
    Rows {
        /// `[tokens, ...]`
        Tokens = sys::GGM_ROWS_TOKENS,
        /// `[max_rows, ...]`
        Grouped = sys::GGM_ROWS_GROUPED,
    }
    /// Which implementation a handle uses.
    Backend {
        /// CUDA when the library has it and a usable GPU is there, else the host.
        Auto = sys::GGM_BACKEND_AUTO,
        /// NVIDIA GPUs of capability 8.0 and newer.
        Cuda = sys::GGM_BACKEND_CUDA,
        /// The processor; tensors are ordinary slices.
        Host = sys::GGM_BACKEND_HOST,
    }
    /// A family of kernels. Every family of one backend gives the same bits.
    KernelFamily {
        /// The fastest for the device.
        Auto = sys::GGM_KERNELS_AUTO,
        /// CUDA: portable kernels, capability 8.0 to 12.x
        CudaPortable = sys::GGM_KERNELS_CUDA_PORTABLE,
        /// CUDA: `wgmma` kernels where they serve, capability 9.0
        CudaHopper = sys::GGM_KERNELS_CUDA_HOPPER,
        /// Host: plain C++
        HostPlain = sys::GGM_KERNELS_HOST_PLAIN,
        /// Host: AVX2
        HostAvx2 = sys::GGM_KERNELS_HOST_AVX2,
        /// Host: AVX-512 F, BW, DQ, VL
        HostAvx512 = sys::GGM_KERNELS_HOST_AVX512,
    }
    /// What is logged. Each level has those before it.
    LogLevel {
        /// Nothing.
        Off = sys::GGM_LOG_OFF,
        /// Failed calls.
        Error = sys::GGM_LOG_ERROR,
        /// What each call was and what was chosen for it.
        Plan = sys::GGM_LOG_PLAN,
        /// On how many multiprocessors it runs.
        Trace = sys::GGM_LOG_TRACE,
    }
}

/// Elements between the matrices of two groups, for inputs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Stride {
    /// One matrix follows the other.
    #[default]
    Packed,
    /// This many elements, at least the length of a row; 0 is packed, too.
    Elements(usize),
    /// All groups read the same matrix.
    Shared,
}

/// The gradients that [`MoeBackward`](crate::MoeBackward) computes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Gradients {
    /// `dx`
    pub x: bool,
    /// `d_weight`
    pub weight: bool,
    /// `d_routing_weights`
    pub routing_weights: bool,
    /// `d_bias`
    pub bias: bool,
}

impl Gradients {
    pub(crate) fn bits(self) -> i32 {
        let bit = |wanted, bit| if wanted { bit } else { 0 };
        bit(self.x, sys::GGM_GRADIENT_X)
            | bit(self.weight, sys::GGM_GRADIENT_WEIGHT)
            | bit(self.routing_weights, sys::GGM_GRADIENT_ROUTING_WEIGHTS)
            | bit(self.bias, sys::GGM_GRADIENT_BIAS)
    }
}

pub(crate) fn flags(all: &[(bool, i32)]) -> u32 {
    all.iter().filter(|(set, _)| *set).fold(0, |bits, (_, flag)| bits | *flag as u32)
}
