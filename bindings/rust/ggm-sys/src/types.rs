// Made by bindings/rust/generate.py from include/ggm/ggm.h; not to be edited.
use std::os::raw::{c_char, c_void};

/// A part of the version that these declarations are from.
pub const GGM_VERSION_MAJOR: i32 = 0;
/// A part of the version that these declarations are from.
pub const GGM_VERSION_MINOR: i32 = 1;
/// A part of the version that these declarations are from.
pub const GGM_VERSION_PATCH: i32 = 0;
/// The version that these declarations are from: 10000 * major + 100 * minor + patch.
pub const GGM_VERSION: i32 = 100;

/// Result of every call. Grouped by thousands: 1 state, 2 argument, 3 unsupported, 4 internal, 5 CUDA. Values never
/// change; new ones may appear, so treat an unknown non-zero value as an error of its thousand.
pub type ggm_status_t = i32;
pub const GGM_STATUS_SUCCESS: i32 = 0;
/// the handle is NULL or not one of ggm_create
pub const GGM_STATUS_INVALID_HANDLE: i32 = 1001;
/// the current CUDA device is not the handle's
pub const GGM_STATUS_WRONG_DEVICE: i32 = 1002;
/// a required pointer is NULL
pub const GGM_STATUS_NULL_POINTER: i32 = 2001;
/// a size, stride or number is outside its range
pub const GGM_STATUS_INVALID_VALUE: i32 = 2002;
/// sizes multiply to more than 64 bits hold
pub const GGM_STATUS_OVERFLOW: i32 = 2003;
/// an enum-typed field has an unknown value
pub const GGM_STATUS_INVALID_ENUM: i32 = 2004;
/// a flag or mask bit that this operation does not know
pub const GGM_STATUS_INVALID_FLAGS: i32 = 2005;
/// struct_size is below the smallest known, or unknown bytes are not zero
pub const GGM_STATUS_INVALID_STRUCT_SIZE: i32 = 2006;
/// workspace_bytes is below what the query says
pub const GGM_STATUS_WORKSPACE_TOO_SMALL: i32 = 2007;
/// a pointer is not aligned to its element, or the workspace to 256 bytes
pub const GGM_STATUS_MISALIGNED: i32 = 2008;
/// an output or the workspace overlaps memory that it must not
pub const GGM_STATUS_ALIASING: i32 = 2009;
/// a pointer is given whose type field is 0, or a type whose pointer is NULL
pub const GGM_STATUS_TYPE_MISMATCH: i32 = 2010;
/// a stream was given to the host backend
pub const GGM_STATUS_INVALID_STREAM: i32 = 2011;
/// a reserved field, or a field that this mode does not use, is not zero
pub const GGM_STATUS_RESERVED_NOT_ZERO: i32 = 2012;
/// a valid combination that no kernel of this library serves; the text says why
pub const GGM_STATUS_UNSUPPORTED: i32 = 3001;
/// no driver, no such GPU, a capability below 8.0, or no code for it in this build
pub const GGM_STATUS_UNSUPPORTED_DEVICE: i32 = 3002;
/// this build has no such backend
pub const GGM_STATUS_BACKEND_UNAVAILABLE: i32 = 3003;
/// tokens*top_k, rows, experts, groups or top_k above the library's limits
pub const GGM_STATUS_LIMIT_EXCEEDED: i32 = 3004;
/// a fault of the library; please report it with the text
pub const GGM_STATUS_INTERNAL_ERROR: i32 = 4001;
/// host memory, in ggm_create only
pub const GGM_STATUS_OUT_OF_MEMORY: i32 = 4002;
/// a CUDA call or launch failed; the text has its name
pub const GGM_STATUS_CUDA_ERROR: i32 = 5001;
/// Limits of this version; above them a call is refused with GGM_STATUS_LIMIT_EXCEEDED and writes nothing.
///
/// tokens*top_k, m of a contiguous and k of a variable-K problem: below 2^31
pub const GGM_MAX_ROWS: i64 = 2147483647;
/// local experts of routing and of the MoE operations; groups given by row_group
pub const GGM_MAX_EXPERTS: i64 = 65536;
/// groups of the grouped products
pub const GGM_MAX_GROUPS: i64 = 1048576;
/// slots of a token
pub const GGM_MAX_TOP_K: i64 = 4096;
/// bytes
pub const GGM_WORKSPACE_ALIGNMENT: usize = 256;
/// Element types. 0 in an optional input means "absent", in an output "as the field says". 16-bit inputs are added up in
/// float32. float64 serves gradient checks: one plain kernel on CUDA.
pub const GGM_TYPE_DEFAULT: i32 = 0;
pub const GGM_TYPE_FLOAT32: i32 = 1;
pub const GGM_TYPE_BFLOAT16: i32 = 2;
pub const GGM_TYPE_FLOAT16: i32 = 3;
pub const GGM_TYPE_FLOAT64: i32 = 4;
/// Integer types of ids, group sizes and offsets.
pub const GGM_INDEX_DEFAULT: i32 = 0;
pub const GGM_INDEX_INT32: i32 = 1;
pub const GGM_INDEX_INT64: i32 = 2;
/// Storage order of a weight matrix, and of op(A) and op(B) in ggm_grouped_gemm_array. For weights it must be named: a
/// wrong guess would go unseen when K = N.   NK = [E,N,K], K contiguous.   KN = [E,K,N], N contiguous.
/// For A:  MK = [M,K], K contiguous.   KM = [K,M], M contiguous.
pub const GGM_ORDER_NK: i32 = 1;
pub const GGM_ORDER_KN: i32 = 2;
pub const GGM_ORDER_MK: i32 = 1;
pub const GGM_ORDER_KM: i32 = 2;
/// Arithmetic. EXACT (the default): float32 products are float32 multiply-adds (fused on CUDA alone), 16-bit ones exact products
/// with a float32 sum. The two TF32 modes are known by name and refused with GGM_STATUS_UNSUPPORTED in this version.
pub const GGM_COMPUTE_EXACT: i32 = 0;
pub const GGM_COMPUTE_TF32: i32 = 1;
pub const GGM_COMPUTE_TF32X3: i32 = 2;
/// Layout of ggm_grouped_gemm; shapes there.
pub const GGM_LAYOUT_CONTIGUOUS: i32 = 0;
pub const GGM_LAYOUT_MASKED: i32 = 1;
pub const GGM_LAYOUT_VARIABLE_K: i32 = 2;
/// How the groups of ggm_grouped_gemm are given; arrays there.
///
/// group_sizes [groups]; groups follow each other from row 0
pub const GGM_GROUPS_SIZES: i32 = 0;
/// group_offsets [groups+1]: first row of each group, then the end of the last
pub const GGM_GROUPS_OFFSETS: i32 = 1;
/// group_offsets [groups]: end of each group; the first starts at row 0
pub const GGM_GROUPS_ENDS: i32 = 2;
/// group_offsets [groups] first rows, group_sizes [groups]; gaps allowed, any order
pub const GGM_GROUPS_STARTS_SIZES: i32 = 3;
/// row_group [rows]: the group of each row, in any order; -1: the row belongs to none
pub const GGM_GROUPS_ROW_GROUP: i32 = 4;
/// How the rows of one token are summed by the MoE operations. Both give the same bits. TWO_STEP stores the products of all
/// rows, [rows,N], in the workspace and sums them. ORDERED needs no such tensor: each row is added into y as it is stored or,
/// where y is 16-bit, into a float32 sum of it in the workspace, [tokens,N]; instead of that sum its bytes may hold the rows of
/// some columns at a time, which are then summed. AUTO lets the library choose (TWO_STEP in this version).
pub const GGM_COMBINE_AUTO: i32 = 0;
pub const GGM_COMBINE_ORDERED: i32 = 1;
pub const GGM_COMBINE_TWO_STEP: i32 = 2;
/// Whether rows are addressed by token or are already in sorted (grouped) order.
pub const GGM_ROWS_TOKENS: i32 = 0;
pub const GGM_ROWS_GROUPED: i32 = 1;
/// Gradients that ggm_moe_backward computes: bits of the field `gradients`.
pub const GGM_GRADIENT_X: i32 = 1;
pub const GGM_GRADIENT_WEIGHT: i32 = 2;
pub const GGM_GRADIENT_ROUTING_WEIGHTS: i32 = 4;
pub const GGM_GRADIENT_BIAS: i32 = 8;
/// Bits of the field `flags`; each operation lists those that it takes.
///
/// leave unused output rows untouched; without it they become +0.0, also when adding
pub const GGM_FLAG_KEEP_UNUSED_ROWS: i32 = 1;
/// use the field alpha; without it alpha is 1
pub const GGM_FLAG_ALPHA: i32 = 2;
/// y (or the output of unpermute) += instead of =
pub const GGM_FLAG_ADD_TO_Y: i32 = 4;
/// dx +=
pub const GGM_FLAG_ADD_TO_DX: i32 = 8;
/// d_weight +=
pub const GGM_FLAG_ADD_TO_DWEIGHT: i32 = 16;
/// d_bias +=
pub const GGM_FLAG_ADD_TO_DBIAS: i32 = 32;
/// A real stride of 0 (0 itself means packed): every group reads the same matrix. Inputs only.
pub const GGM_STRIDE_SHARED: i64 = -1;
/// Words of the optional device array `faults` [GGM_FAULT_WORDS] of uint32. Sticky and saturating: the library only adds, the
/// caller clears. Words that are not named stay as they are.
///
/// ids below -1 or >= experts_total, map entries outside -1..experts-1, bad row_group entries
pub const GGM_FAULT_BAD_ID: i32 = 0;
/// group sizes or num_tokens that were negative or too large
pub const GGM_FAULT_SIZE_CLAMPED: i32 = 1;
/// rows beyond max_rows
pub const GGM_FAULT_ROWS_DROPPED: i32 = 2;
/// offsets that were not monotone or in range; rows whose two maps disagree
pub const GGM_FAULT_BAD_ROUTING: i32 = 3;
/// groups of ggm_grouped_gemm_array that break min_alignment; such groups are skipped
pub const GGM_FAULT_MISALIGNED_GROUP: i32 = 4;
pub const GGM_FAULT_WORDS: i32 = 8;

/// Opaque: only pointers to it exist.
#[repr(C)]
#[derive(Debug)]
pub struct CUstream_st {
    _private: [u8; 0],
}
/// A CUDA stream: cudaStream_t and CUstream are this very type.
pub type ggm_stream_t = *mut CUstream_st;

/// Opaque: only pointers to it exist.
#[repr(C)]
#[derive(Debug)]
pub struct ggm_handle {
    _private: [u8; 0],
}
pub type ggm_handle_t = *mut ggm_handle;
/// Which implementation a handle uses. AUTO: CUDA when this build has it and the GPU asked for is there and usable; the host
/// without a driver or any GPU, for a capability below 8.0, and for a GPU that this build has no code for. A `device` that does
/// not exist although other GPUs do, and a driver or GPU that fails, are errors with AUTO too. ggm_get_info tells what was
/// taken.
pub const GGM_BACKEND_AUTO: i32 = 0;
pub const GGM_BACKEND_CUDA: i32 = 1;
pub const GGM_BACKEND_HOST: i32 = 2;
/// Kernel families. AUTO picks the fastest for the device. The others pin one, for tests and for finding faults; every family
/// of one backend gives the same bits. ggm_create refuses a family that the device cannot run with GGM_STATUS_UNSUPPORTED, one
/// of the other backend than the one asked for with GGM_STATUS_INVALID_VALUE, and a CUDA family in a build without CUDA with
/// GGM_STATUS_BACKEND_UNAVAILABLE.
pub const GGM_KERNELS_AUTO: i32 = 0;
/// CUDA: float32 FFMA and mma.sync kernels, capability 8.0 to 12.x
pub const GGM_KERNELS_CUDA_PORTABLE: i32 = 1;
/// CUDA: wgmma kernels where they serve, the portable ones elsewhere; capability 9.0. 16-bit
/// products of few rows run on the same kernels in both CUDA families
pub const GGM_KERNELS_CUDA_HOPPER: i32 = 2;
/// host: plain C++
pub const GGM_KERNELS_HOST_PLAIN: i32 = 16;
/// host: AVX2
pub const GGM_KERNELS_HOST_AVX2: i32 = 17;
/// host: AVX-512 F, BW, DQ, VL
pub const GGM_KERNELS_HOST_AVX512: i32 = 18;
/// What is logged, through the callback or, without one, to stderr. Each level has those below it. ERROR: failed calls. PLAN:
/// what each call was and what was chosen for it. TRACE: on how many multiprocessors it runs.
pub const GGM_LOG_OFF: i32 = 0;
pub const GGM_LOG_ERROR: i32 = 1;
pub const GGM_LOG_PLAN: i32 = 2;
pub const GGM_LOG_TRACE: i32 = 3;
/// flags of ggm_create_params_t
///
/// take the thread's current CUDA device; `device` must be 0; the host ignores it
pub const GGM_CREATE_CURRENT_DEVICE: i32 = 1;

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ggm_create_params_t {
    /// sizeof(ggm_create_params_t)
    pub struct_size: u32,
    /// GGM_CREATE_CURRENT_DEVICE or 0
    pub flags: u32,
    /// GGM_BACKEND_*
    pub backend: i32,
    /// CUDA ordinal, default 0; must be 0 on the host backend; not looked at when AUTO finds no GPU
    pub device: i32,
    /// GGM_KERNELS_*; the environment variable GGM_FORCE_KERNEL overrides 0 (debugging)
    pub kernel_family: i32,
    /// GGM_LOG_*; the environment variable GGM_LOG (off, error, plan, trace) overrides 0
    pub log_level: i32,
    /// host backend: worker threads, 0 = one a core; at most 1024
    pub host_threads: i32,
    /// 0
    pub reserved: i32,
    /// Called with one complete line, no newline, from the thread that makes the call, so by several at once when several call.
    /// No lock is held. What it throws goes no further. NULL: stderr.
    pub log: Option<unsafe extern "C" fn(user: *mut c_void, level: i32, message: *const c_char)>,
    pub log_user: *mut c_void,
    /// Host allocator, used by ggm_create and ggm_destroy alone; both NULL: malloc and free. alignment is a power of two.
    pub allocate: Option<unsafe extern "C" fn(user: *mut c_void, bytes: usize, alignment: usize) -> *mut c_void>,
    pub deallocate: Option<unsafe extern "C" fn(user: *mut c_void, pointer: *mut c_void, bytes: usize)>,
    pub allocator_user: *mut c_void,
}

impl ggm_create_params_t {
    /// Zeros and the size of the struct, as GGM_CREATE_PARAMS_INIT.
    pub const INIT: Self = Self {
        struct_size: core::mem::size_of::<Self>() as u32,
        flags: 0,
        backend: 0,
        device: 0,
        kernel_family: 0,
        log_level: 0,
        host_threads: 0,
        reserved: 0,
        log: None,
        log_user: core::ptr::null_mut(),
        allocate: None,
        deallocate: None,
        allocator_user: core::ptr::null_mut(),
    };
}

impl Default for ggm_create_params_t {
    fn default() -> Self {
        Self::INIT
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ggm_info_t {
    /// in: sizeof(ggm_info_t)
    pub struct_size: u32,
    /// GGM_BACKEND_CUDA or GGM_BACKEND_HOST
    pub backend: i32,
    /// CUDA ordinal; 0 on the host
    pub device: i32,
    /// the family in use by default, GGM_KERNELS_*, never AUTO
    pub kernel_family: i32,
    /// 10 * major + minor, 90 for an H200; 0 on the host
    pub compute_capability: i32,
    /// multiprocessors, or worker threads on the host
    pub multiprocessors: i32,
    /// a block's largest dynamic shared memory; 0 on the host
    pub shared_memory_bytes: i32,
    /// GGM_WORKSPACE_ALIGNMENT
    pub workspace_alignment: i32,
}

impl ggm_info_t {
    /// Zeros and the size of the struct, as GGM_INFO_INIT.
    pub const INIT: Self = Self {
        struct_size: core::mem::size_of::<Self>() as u32,
        backend: 0,
        device: 0,
        kernel_family: 0,
        compute_capability: 0,
        multiprocessors: 0,
        shared_memory_bytes: 0,
        workspace_alignment: 0,
    };
}

impl Default for ggm_info_t {
    fn default() -> Self {
        Self::INIT
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ggm_route_problem_t {
    /// sizeof(ggm_route_problem_t)
    pub struct_size: u32,
    /// 0
    pub flags: u32,
    /// T >= 0; T*top_k <= GGM_MAX_ROWS
    pub tokens: i64,
    /// slots of a token, 1 .. GGM_MAX_TOP_K; may exceed the number of experts
    pub top_k: i64,
    /// local experts, 1 .. GGM_MAX_EXPERTS
    pub experts: i64,
    /// global experts; 0: first_expert + experts. At most 2^31-1
    pub experts_total: i64,
    /// global id of local expert 0; first_expert + experts <= experts_total. 0 with an expert_map
    pub first_expert: i64,
    /// bound on the rows, 0: tokens*top_k; above that: as that
    pub max_rows: i64,
    /// elements between the ids of two tokens, 0: top_k
    pub ids_ld: i64,
    /// GGM_INDEX_INT32 or INT64; required
    pub id_type: i32,
    /// multiprocessors (host: threads) the call may use, 0: all; never changes bits
    pub sm_limit: i32,
}

impl ggm_route_problem_t {
    /// Zeros and the size of the struct, as GGM_ROUTE_PROBLEM_INIT.
    pub const INIT: Self = Self {
        struct_size: core::mem::size_of::<Self>() as u32,
        flags: 0,
        tokens: 0,
        top_k: 0,
        experts: 0,
        experts_total: 0,
        first_expert: 0,
        max_rows: 0,
        ids_ld: 0,
        id_type: 0,
        sm_limit: 0,
    };
}

impl Default for ggm_route_problem_t {
    fn default() -> Self {
        Self::INIT
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ggm_route_tensors_t {
    /// sizeof(ggm_route_tensors_t)
    pub struct_size: u32,
    /// 0
    pub reserved: u32,
    /// in  [tokens, top_k] of id_type, rows ids_ld apart
    pub ids: *const c_void,
    /// in  [experts_total] global -> local or -1; NULL: by first_expert
    pub expert_map: *const i32,
    /// in  [1] real tokens, clamped to 0..tokens (GGM_FAULT_SIZE_CLAMPED); NULL: tokens
    pub num_tokens: *const i32,
    /// in/out [GGM_FAULT_WORDS]; NULL: not counted
    pub faults: *mut u32,
    /// out [experts+1]
    pub group_offsets: *mut i32,
    /// out [max_rows] (tokens*top_k when max_rows is 0)
    pub row_assignment: *mut i32,
    /// out [tokens*top_k]
    pub assignment_row: *mut i32,
}

impl ggm_route_tensors_t {
    /// Zeros and the size of the struct, as GGM_ROUTE_TENSORS_INIT.
    pub const INIT: Self = Self {
        struct_size: core::mem::size_of::<Self>() as u32,
        reserved: 0,
        ids: core::ptr::null(),
        expert_map: core::ptr::null(),
        num_tokens: core::ptr::null(),
        faults: core::ptr::null_mut(),
        group_offsets: core::ptr::null_mut(),
        row_assignment: core::ptr::null_mut(),
        assignment_row: core::ptr::null_mut(),
    };
}

impl Default for ggm_route_tensors_t {
    fn default() -> Self {
        Self::INIT
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ggm_permute_problem_t {
    /// sizeof(ggm_permute_problem_t)
    pub struct_size: u32,
    /// GGM_FLAG_KEEP_UNUSED_ROWS; ggm_unpermute also GGM_FLAG_ADD_TO_Y
    pub flags: u32,
    /// T >= 0; T*top_k <= GGM_MAX_ROWS
    pub tokens: i64,
    /// 1 .. GGM_MAX_TOP_K
    pub top_k: i64,
    /// 1 .. GGM_MAX_EXPERTS: group_offsets has experts+1 entries
    pub experts: i64,
    /// as given to ggm_route; 0: tokens*top_k
    pub max_rows: i64,
    /// length of a row, 0 .. 2^31-1
    pub features: i64,
    /// elements between two token rows, 0: features
    pub token_ld: i64,
    /// elements between two sorted rows, 0: features
    pub row_ld: i64,
    /// elements between the weights of two tokens, 0: top_k
    pub routing_weights_ld: i64,
    /// GGM_TYPE_*, required: type of the [tokens,features] tensor
    pub token_type: i32,
    /// type of the [max_rows,features] tensor, 0: token_type. float64 goes with float64 alone
    pub row_type: i32,
    /// 0: no weights (permute takes 0 only); float64 with float64 tensors, else float32, bfloat16 or
    /// float16
    pub routing_weight_type: i32,
    /// multiprocessors the call may use, 0: all
    pub sm_limit: i32,
}

impl ggm_permute_problem_t {
    /// Zeros and the size of the struct, as GGM_PERMUTE_PROBLEM_INIT.
    pub const INIT: Self = Self {
        struct_size: core::mem::size_of::<Self>() as u32,
        flags: 0,
        tokens: 0,
        top_k: 0,
        experts: 0,
        max_rows: 0,
        features: 0,
        token_ld: 0,
        row_ld: 0,
        routing_weights_ld: 0,
        token_type: 0,
        row_type: 0,
        routing_weight_type: 0,
        sm_limit: 0,
    };
}

impl Default for ggm_permute_problem_t {
    fn default() -> Self {
        Self::INIT
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ggm_permute_tensors_t {
    /// sizeof(ggm_permute_tensors_t)
    pub struct_size: u32,
    /// 0
    pub reserved: u32,
    /// in [experts+1]
    pub group_offsets: *const i32,
    /// in [max_rows]
    pub row_assignment: *const i32,
    /// in [tokens*top_k]
    pub assignment_row: *const i32,
    /// in [tokens, top_k] of routing_weight_type; NULL exactly when that is 0
    pub routing_weights: *const c_void,
    /// in: permute [tokens,features] of token_type; unpermute [max_rows,features] of row_type
    pub input: *const c_void,
    /// out: permute [max_rows,features] of row_type; unpermute [tokens,features] of token_type
    pub output: *mut c_void,
    /// in [1]; NULL: tokens
    pub num_tokens: *const i32,
    /// in/out [GGM_FAULT_WORDS]; NULL: not counted
    pub faults: *mut u32,
}

impl ggm_permute_tensors_t {
    /// Zeros and the size of the struct, as GGM_PERMUTE_TENSORS_INIT.
    pub const INIT: Self = Self {
        struct_size: core::mem::size_of::<Self>() as u32,
        reserved: 0,
        group_offsets: core::ptr::null(),
        row_assignment: core::ptr::null(),
        assignment_row: core::ptr::null(),
        routing_weights: core::ptr::null(),
        input: core::ptr::null(),
        output: core::ptr::null_mut(),
        num_tokens: core::ptr::null(),
        faults: core::ptr::null_mut(),
    };
}

impl Default for ggm_permute_tensors_t {
    fn default() -> Self {
        Self::INIT
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ggm_unpermute_backward_tensors_t {
    /// sizeof(ggm_unpermute_backward_tensors_t)
    pub struct_size: u32,
    /// 0
    pub reserved: u32,
    /// in [experts+1]
    pub group_offsets: *const i32,
    /// in [max_rows]
    pub row_assignment: *const i32,
    /// in [tokens*top_k]
    pub assignment_row: *const i32,
    /// in [tokens, top_k]; NULL exactly when routing_weight_type is 0
    pub routing_weights: *const c_void,
    /// in [max_rows,features] of row_type: unpermute's input; NULL when d_routing_weights is
    pub rows: *const c_void,
    /// in [tokens,features] of token_type
    pub dy: *const c_void,
    /// out [max_rows,features] of row_type; NULL: not wanted
    pub d_rows: *mut c_void,
    /// out [tokens, top_k] packed; NULL: not wanted. Not both NULL
    pub d_routing_weights: *mut f32,
    /// in [1]; NULL: tokens
    pub num_tokens: *const i32,
    /// in/out [GGM_FAULT_WORDS]; NULL: not counted
    pub faults: *mut u32,
}

impl ggm_unpermute_backward_tensors_t {
    /// Zeros and the size of the struct, as GGM_UNPERMUTE_BACKWARD_TENSORS_INIT.
    pub const INIT: Self = Self {
        struct_size: core::mem::size_of::<Self>() as u32,
        reserved: 0,
        group_offsets: core::ptr::null(),
        row_assignment: core::ptr::null(),
        assignment_row: core::ptr::null(),
        routing_weights: core::ptr::null(),
        rows: core::ptr::null(),
        dy: core::ptr::null(),
        d_rows: core::ptr::null_mut(),
        d_routing_weights: core::ptr::null_mut(),
        num_tokens: core::ptr::null(),
        faults: core::ptr::null_mut(),
    };
}

impl Default for ggm_unpermute_backward_tensors_t {
    fn default() -> Self {
        Self::INIT
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ggm_grouped_gemm_problem_t {
    /// sizeof(ggm_grouped_gemm_problem_t)
    pub struct_size: u32,
    /// GGM_FLAG_KEEP_UNUSED_ROWS (not VARIABLE_K), GGM_FLAG_ALPHA
    pub flags: u32,
    /// 0 .. GGM_MAX_GROUPS (row_group: GGM_MAX_EXPERTS)
    pub groups: i64,
    /// >= 0; see the table. The one that is a bound on rows: <= GGM_MAX_ROWS; the others < 2^31
    pub m: i64,
    pub n: i64,
    pub k: i64,
    /// elements between rows of A, 0: packed
    pub lda: i64,
    /// elements between rows of B as stored, 0: packed
    pub ldb: i64,
    /// elements between rows of C and D, 0: packed
    pub ldc: i64,
    pub ldd: i64,
    /// MASKED: elements between groups of A, 0: m*lda, GGM_STRIDE_SHARED; other layouts: 0
    pub stride_a: i64,
    /// CONTIGUOUS, MASKED: elements between groups of B, 0: packed, GGM_STRIDE_SHARED; VARIABLE_K: 0
    pub stride_b: i64,
    /// MASKED, VARIABLE_K: elements between groups of C, 0: m*ldc, GGM_STRIDE_SHARED; CONTIGUOUS: 0
    pub stride_c: i64,
    /// MASKED, VARIABLE_K: elements between groups of D, 0: m*ldd; CONTIGUOUS: 0
    pub stride_d: i64,
    /// used with GGM_FLAG_ALPHA only, else must be 0; as float32 unless the types are float64
    pub alpha: f64,
    /// 0: C is not read
    pub beta: f64,
    /// GGM_LAYOUT_*
    pub layout: i32,
    /// GGM_GROUPS_*
    pub group_form: i32,
    /// GGM_INDEX_*, type of group_sizes, group_offsets, row_group; 0: int32
    pub index_type: i32,
    /// GGM_ORDER_NK or KN, required; VARIABLE_K: 0
    pub b_order: i32,
    /// GGM_TYPE_*, required
    pub a_type: i32,
    /// GGM_TYPE_*, required; equal to a_type in this version
    pub b_type: i32,
    /// 0: no C; required with beta != 0; any type that d_type may have
    pub c_type: i32,
    /// 0: a_type; a_type, or float32 with 16-bit inputs
    pub d_type: i32,
    /// GGM_COMPUTE_*
    pub compute_type: i32,
    /// multiprocessors the call may use, 0: all
    pub sm_limit: i32,
}

impl ggm_grouped_gemm_problem_t {
    /// Zeros and the size of the struct, as GGM_GROUPED_GEMM_PROBLEM_INIT.
    pub const INIT: Self = Self {
        struct_size: core::mem::size_of::<Self>() as u32,
        flags: 0,
        groups: 0,
        m: 0,
        n: 0,
        k: 0,
        lda: 0,
        ldb: 0,
        ldc: 0,
        ldd: 0,
        stride_a: 0,
        stride_b: 0,
        stride_c: 0,
        stride_d: 0,
        alpha: 0.0,
        beta: 0.0,
        layout: 0,
        group_form: 0,
        index_type: 0,
        b_order: 0,
        a_type: 0,
        b_type: 0,
        c_type: 0,
        d_type: 0,
        compute_type: 0,
        sm_limit: 0,
    };
}

impl Default for ggm_grouped_gemm_problem_t {
    fn default() -> Self {
        Self::INIT
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ggm_grouped_gemm_tensors_t {
    /// sizeof(ggm_grouped_gemm_tensors_t)
    pub struct_size: u32,
    /// 0
    pub reserved: u32,
    /// in of index_type; SIZES, STARTS_SIZES, MASKED: [groups]; else NULL
    pub group_sizes: *const c_void,
    /// in of index_type; OFFSETS: [groups+1]; ENDS, STARTS_SIZES: [groups]; else NULL
    pub group_offsets: *const c_void,
    /// in of index_type; ROW_GROUP: [rows]; else NULL
    pub row_group: *const c_void,
    /// in of a_type
    pub a: *const c_void,
    /// in of b_type
    pub b: *const c_void,
    /// in of c_type; may be d itself (same type, leading dimension and stride); NULL exactly when c_type is 0
    pub c: *const c_void,
    /// out of d_type; may not overlap a or b
    pub d: *mut c_void,
    /// in/out [GGM_FAULT_WORDS]; NULL: not counted
    pub faults: *mut u32,
}

impl ggm_grouped_gemm_tensors_t {
    /// Zeros and the size of the struct, as GGM_GROUPED_GEMM_TENSORS_INIT.
    pub const INIT: Self = Self {
        struct_size: core::mem::size_of::<Self>() as u32,
        reserved: 0,
        group_sizes: core::ptr::null(),
        group_offsets: core::ptr::null(),
        row_group: core::ptr::null(),
        a: core::ptr::null(),
        b: core::ptr::null(),
        c: core::ptr::null(),
        d: core::ptr::null_mut(),
        faults: core::ptr::null_mut(),
    };
}

impl Default for ggm_grouped_gemm_tensors_t {
    fn default() -> Self {
        Self::INIT
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ggm_grouped_gemm_array_problem_t {
    /// sizeof(ggm_grouped_gemm_array_problem_t)
    pub struct_size: u32,
    /// GGM_FLAG_ALPHA
    pub flags: u32,
    /// 0 .. GGM_MAX_GROUPS
    pub groups: i64,
    /// bounds of the device sizes, 0 .. 2^31-1
    pub max_m: i64,
    pub max_n: i64,
    pub max_k: i64,
    /// used with GGM_FLAG_ALPHA only, else must be 0
    pub alpha: f64,
    /// 0: C is not read
    pub beta: f64,
    /// GGM_INDEX_*, type of m, n, k and the leading dimensions; 0: int32
    pub index_type: i32,
    /// GGM_ORDER_MK or KM, required
    pub a_order: i32,
    /// GGM_ORDER_NK or KN, required
    pub b_order: i32,
    /// GGM_TYPE_*, required, equal in this version
    pub a_type: i32,
    pub b_type: i32,
    /// 0: no C; required with beta != 0
    pub c_type: i32,
    /// 0: a_type; a_type, or float32 with 16-bit inputs
    pub d_type: i32,
    /// GGM_COMPUTE_*
    pub compute_type: i32,
    /// bytes that all pointers and leading dimensions keep: 0 (of the element) or a power of two up to 256.
    /// A group that does not keep it, or whose pointer is not aligned to its element, is skipped and
    /// counted (GGM_FAULT_MISALIGNED_GROUP): its D stays as it was
    pub min_alignment: i32,
    /// multiprocessors the call may use, 0: all
    pub sm_limit: i32,
}

impl ggm_grouped_gemm_array_problem_t {
    /// Zeros and the size of the struct, as GGM_GROUPED_GEMM_ARRAY_PROBLEM_INIT.
    pub const INIT: Self = Self {
        struct_size: core::mem::size_of::<Self>() as u32,
        flags: 0,
        groups: 0,
        max_m: 0,
        max_n: 0,
        max_k: 0,
        alpha: 0.0,
        beta: 0.0,
        index_type: 0,
        a_order: 0,
        b_order: 0,
        a_type: 0,
        b_type: 0,
        c_type: 0,
        d_type: 0,
        compute_type: 0,
        min_alignment: 0,
        sm_limit: 0,
    };
}

impl Default for ggm_grouped_gemm_array_problem_t {
    fn default() -> Self {
        Self::INIT
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ggm_grouped_gemm_array_tensors_t {
    /// sizeof(ggm_grouped_gemm_array_tensors_t)
    pub struct_size: u32,
    /// 0
    pub reserved: u32,
    /// in [groups] of index_type; NULL: max_m for every group
    pub m: *const c_void,
    /// in [groups]; NULL: max_n
    pub n: *const c_void,
    /// in [groups]; NULL: max_k
    pub k: *const c_void,
    /// in [groups], taken as they are, 0 too; NULL: packed by the group's own sizes; likewise below
    pub lda: *const c_void,
    pub ldb: *const c_void,
    pub ldc: *const c_void,
    pub ldd: *const c_void,
    /// in [groups] device pointers, of a_type
    pub a: *const *const c_void,
    /// in [groups], of b_type
    pub b: *const *const c_void,
    /// in [groups], of c_type; NULL exactly when c_type is 0; c[i] may be d[i]
    pub c: *const *const c_void,
    /// in [groups] device pointers to outputs of d_type
    pub d: *const *mut c_void,
    /// in/out [GGM_FAULT_WORDS]; NULL: not counted
    pub faults: *mut u32,
}

impl ggm_grouped_gemm_array_tensors_t {
    /// Zeros and the size of the struct, as GGM_GROUPED_GEMM_ARRAY_TENSORS_INIT.
    pub const INIT: Self = Self {
        struct_size: core::mem::size_of::<Self>() as u32,
        reserved: 0,
        m: core::ptr::null(),
        n: core::ptr::null(),
        k: core::ptr::null(),
        lda: core::ptr::null(),
        ldb: core::ptr::null(),
        ldc: core::ptr::null(),
        ldd: core::ptr::null(),
        a: core::ptr::null(),
        b: core::ptr::null(),
        c: core::ptr::null(),
        d: core::ptr::null(),
        faults: core::ptr::null_mut(),
    };
}

impl Default for ggm_grouped_gemm_array_tensors_t {
    fn default() -> Self {
        Self::INIT
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ggm_moe_problem_t {
    /// sizeof(ggm_moe_problem_t)
    pub struct_size: u32,
    /// GGM_FLAG_KEEP_UNUSED_ROWS, GGM_FLAG_ADD_TO_Y, _DX, _DWEIGHT, _DBIAS
    pub flags: u32,
    /// T >= 0; T*top_k <= GGM_MAX_ROWS
    pub tokens: i64,
    /// 1 .. GGM_MAX_TOP_K
    pub top_k: i64,
    /// local experts, 1 .. GGM_MAX_EXPERTS
    pub experts: i64,
    /// as in ggm_route_problem_t; 0 when the arrays are given
    pub experts_total: i64,
    /// as in ggm_route_problem_t; 0 when the arrays are given
    pub first_expert: i64,
    /// as in ggm_route_problem_t
    pub max_rows: i64,
    /// 0: top_k; must be 0 when the arrays are given
    pub ids_ld: i64,
    /// 0: top_k
    pub routing_weights_ld: i64,
    /// K, 0 .. 2^31-1
    pub in_features: i64,
    /// N, 0 .. 2^31-1
    pub out_features: i64,
    /// 0: in_features
    pub x_ld: i64,
    /// 0: out_features
    pub y_ld: i64,
    /// 0: packed (in_features for NK, out_features for KN)
    pub weight_ld: i64,
    /// 0: packed; GGM_STRIDE_SHARED
    pub weight_stride: i64,
    /// 0: out_features; GGM_STRIDE_SHARED
    pub bias_stride: i64,
    /// 0: out_features
    pub dy_ld: i64,
    /// 0: in_features
    pub dx_ld: i64,
    /// 0: packed
    pub d_weight_ld: i64,
    /// 0: packed
    pub d_weight_stride: i64,
    /// 0: out_features
    pub d_bias_stride: i64,
    /// GGM_INDEX_*; 0: the routing arrays are given
    pub id_type: i32,
    /// 0: no factor; float64 with float64 tensors, else float32, bfloat16 or float16
    pub routing_weight_type: i32,
    /// GGM_TYPE_*, required
    pub x_type: i32,
    /// GGM_TYPE_*, required; equal to x_type in this version
    pub weight_type: i32,
    /// 0: no bias; float32 or x_type
    pub bias_type: i32,
    /// 0: x_type; x_type, or float32 with 16-bit x
    pub y_type: i32,
    /// 0: the type of the combined result; or float32 (float64 with float64)
    pub product_type: i32,
    /// GGM_COMPUTE_*
    pub compute_type: i32,
    /// GGM_ORDER_NK [E,N,K] or KN [E,K,N], required
    pub weight_order: i32,
    /// GGM_ROWS_*: x and dx are [tokens,K] or [max_rows,K]
    pub input_rows: i32,
    /// GGM_ROWS_*: y and dy are [tokens,N] or [max_rows,N]
    pub output_rows: i32,
    /// GGM_COMBINE_*
    pub combine: i32,
    /// multiprocessors the call may use, 0: all
    pub sm_limit: i32,
    /// GGM_GRADIENT_* bits; at least one for the backward; the forward computes none of them
    pub gradients: i32,
    /// 0: y_type; in this version it must be x_type: float32 dy of 16-bit x is refused
    pub dy_type: i32,
    /// 0: x_type; x_type, or float32 with 16-bit x
    pub dx_type: i32,
    /// 0: weight_type; weight_type, or float32 with 16-bit weights
    pub d_weight_type: i32,
    /// 0: bias_type; x_type or float32
    pub d_bias_type: i32,
}

impl ggm_moe_problem_t {
    /// Zeros and the size of the struct, as GGM_MOE_PROBLEM_INIT.
    pub const INIT: Self = Self {
        struct_size: core::mem::size_of::<Self>() as u32,
        flags: 0,
        tokens: 0,
        top_k: 0,
        experts: 0,
        experts_total: 0,
        first_expert: 0,
        max_rows: 0,
        ids_ld: 0,
        routing_weights_ld: 0,
        in_features: 0,
        out_features: 0,
        x_ld: 0,
        y_ld: 0,
        weight_ld: 0,
        weight_stride: 0,
        bias_stride: 0,
        dy_ld: 0,
        dx_ld: 0,
        d_weight_ld: 0,
        d_weight_stride: 0,
        d_bias_stride: 0,
        id_type: 0,
        routing_weight_type: 0,
        x_type: 0,
        weight_type: 0,
        bias_type: 0,
        y_type: 0,
        product_type: 0,
        compute_type: 0,
        weight_order: 0,
        input_rows: 0,
        output_rows: 0,
        combine: 0,
        sm_limit: 0,
        gradients: 0,
        dy_type: 0,
        dx_type: 0,
        d_weight_type: 0,
        d_bias_type: 0,
    };
}

impl Default for ggm_moe_problem_t {
    fn default() -> Self {
        Self::INIT
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ggm_moe_forward_tensors_t {
    /// sizeof(ggm_moe_forward_tensors_t)
    pub struct_size: u32,
    /// 0
    pub reserved: u32,
    /// in [tokens, top_k] of id_type; NULL exactly when that is 0
    pub ids: *const c_void,
    /// in [experts_total]; NULL: by first_expert
    pub expert_map: *const i32,
    /// in [experts+1]; NULL exactly when ids are given
    pub group_offsets: *const i32,
    /// in [max_rows]
    pub row_assignment: *const i32,
    /// in [tokens*top_k]
    pub assignment_row: *const i32,
    /// in [tokens, top_k]; NULL exactly when routing_weight_type is 0
    pub routing_weights: *const c_void,
    /// in [tokens, K] or [max_rows, K]
    pub x: *const c_void,
    /// in [experts, N, K] or [experts, K, N]
    pub weight: *const c_void,
    /// in [experts, N]; NULL exactly when bias_type is 0
    pub bias: *const c_void,
    /// out [tokens, N] or [max_rows, N]
    pub y: *mut c_void,
    /// in [1]; NULL: tokens
    pub num_tokens: *const i32,
    /// in/out [GGM_FAULT_WORDS]; NULL: not counted
    pub faults: *mut u32,
}

impl ggm_moe_forward_tensors_t {
    /// Zeros and the size of the struct, as GGM_MOE_FORWARD_TENSORS_INIT.
    pub const INIT: Self = Self {
        struct_size: core::mem::size_of::<Self>() as u32,
        reserved: 0,
        ids: core::ptr::null(),
        expert_map: core::ptr::null(),
        group_offsets: core::ptr::null(),
        row_assignment: core::ptr::null(),
        assignment_row: core::ptr::null(),
        routing_weights: core::ptr::null(),
        x: core::ptr::null(),
        weight: core::ptr::null(),
        bias: core::ptr::null(),
        y: core::ptr::null_mut(),
        num_tokens: core::ptr::null(),
        faults: core::ptr::null_mut(),
    };
}

impl Default for ggm_moe_forward_tensors_t {
    fn default() -> Self {
        Self::INIT
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ggm_moe_backward_tensors_t {
    /// sizeof(ggm_moe_backward_tensors_t)
    pub struct_size: u32,
    /// 0
    pub reserved: u32,
    /// in, as in the forward
    pub ids: *const c_void,
    /// in
    pub expert_map: *const i32,
    /// in
    pub group_offsets: *const i32,
    /// in
    pub row_assignment: *const i32,
    /// in
    pub assignment_row: *const i32,
    /// in
    pub routing_weights: *const c_void,
    /// in [tokens, K] or [max_rows, K]; needed by d_weight and d_routing_weights, else may be NULL
    pub x: *const c_void,
    /// in; needed by dx and d_routing_weights, else may be NULL
    pub weight: *const c_void,
    /// in [experts, N]; needed by d_routing_weights when bias_type is set, else may be NULL
    pub bias: *const c_void,
    /// in [tokens, N] or [max_rows, N] of dy_type
    pub dy: *const c_void,
    /// out [tokens, K] or [max_rows, K]; given exactly with GGM_GRADIENT_X
    pub dx: *mut c_void,
    /// out, shaped as weight; given exactly with GGM_GRADIENT_WEIGHT
    pub d_weight: *mut c_void,
    /// out [experts, N]; given exactly with GGM_GRADIENT_BIAS
    pub d_bias: *mut c_void,
    /// out [tokens, top_k] packed; given exactly with GGM_GRADIENT_ROUTING_WEIGHTS
    pub d_routing_weights: *mut f32,
    /// in [1]; NULL: tokens
    pub num_tokens: *const i32,
    /// in/out [GGM_FAULT_WORDS]; NULL: not counted
    pub faults: *mut u32,
}

impl ggm_moe_backward_tensors_t {
    /// Zeros and the size of the struct, as GGM_MOE_BACKWARD_TENSORS_INIT.
    pub const INIT: Self = Self {
        struct_size: core::mem::size_of::<Self>() as u32,
        reserved: 0,
        ids: core::ptr::null(),
        expert_map: core::ptr::null(),
        group_offsets: core::ptr::null(),
        row_assignment: core::ptr::null(),
        assignment_row: core::ptr::null(),
        routing_weights: core::ptr::null(),
        x: core::ptr::null(),
        weight: core::ptr::null(),
        bias: core::ptr::null(),
        dy: core::ptr::null(),
        dx: core::ptr::null_mut(),
        d_weight: core::ptr::null_mut(),
        d_bias: core::ptr::null_mut(),
        d_routing_weights: core::ptr::null_mut(),
        num_tokens: core::ptr::null(),
        faults: core::ptr::null_mut(),
    };
}

impl Default for ggm_moe_backward_tensors_t {
    fn default() -> Self {
        Self::INIT
    }
}

/// Calls `$structs!` with every struct and its fields, and `$constants!` with every constant. For tests.
#[doc(hidden)]
#[macro_export]
macro_rules! every_declaration {
    ($structs:ident, $constants:ident) => {
        $structs!(ggm_create_params_t: struct_size, flags, backend, device, kernel_family, log_level, host_threads, reserved, log, log_user, allocate, deallocate, allocator_user);
        $structs!(ggm_info_t: struct_size, backend, device, kernel_family, compute_capability, multiprocessors, shared_memory_bytes, workspace_alignment);
        $structs!(ggm_route_problem_t: struct_size, flags, tokens, top_k, experts, experts_total, first_expert, max_rows, ids_ld, id_type, sm_limit);
        $structs!(ggm_route_tensors_t: struct_size, reserved, ids, expert_map, num_tokens, faults, group_offsets, row_assignment, assignment_row);
        $structs!(ggm_permute_problem_t: struct_size, flags, tokens, top_k, experts, max_rows, features, token_ld, row_ld, routing_weights_ld, token_type, row_type, routing_weight_type, sm_limit);
        $structs!(ggm_permute_tensors_t: struct_size, reserved, group_offsets, row_assignment, assignment_row, routing_weights, input, output, num_tokens, faults);
        $structs!(ggm_unpermute_backward_tensors_t: struct_size, reserved, group_offsets, row_assignment, assignment_row, routing_weights, rows, dy, d_rows, d_routing_weights, num_tokens, faults);
        $structs!(ggm_grouped_gemm_problem_t: struct_size, flags, groups, m, n, k, lda, ldb, ldc, ldd, stride_a, stride_b, stride_c, stride_d, alpha, beta, layout, group_form, index_type, b_order, a_type, b_type, c_type, d_type, compute_type, sm_limit);
        $structs!(ggm_grouped_gemm_tensors_t: struct_size, reserved, group_sizes, group_offsets, row_group, a, b, c, d, faults);
        $structs!(ggm_grouped_gemm_array_problem_t: struct_size, flags, groups, max_m, max_n, max_k, alpha, beta, index_type, a_order, b_order, a_type, b_type, c_type, d_type, compute_type, min_alignment, sm_limit);
        $structs!(ggm_grouped_gemm_array_tensors_t: struct_size, reserved, m, n, k, lda, ldb, ldc, ldd, a, b, c, d, faults);
        $structs!(ggm_moe_problem_t: struct_size, flags, tokens, top_k, experts, experts_total, first_expert, max_rows, ids_ld, routing_weights_ld, in_features, out_features, x_ld, y_ld, weight_ld, weight_stride, bias_stride, dy_ld, dx_ld, d_weight_ld, d_weight_stride, d_bias_stride, id_type, routing_weight_type, x_type, weight_type, bias_type, y_type, product_type, compute_type, weight_order, input_rows, output_rows, combine, sm_limit, gradients, dy_type, dx_type, d_weight_type, d_bias_type);
        $structs!(ggm_moe_forward_tensors_t: struct_size, reserved, ids, expert_map, group_offsets, row_assignment, assignment_row, routing_weights, x, weight, bias, y, num_tokens, faults);
        $structs!(ggm_moe_backward_tensors_t: struct_size, reserved, ids, expert_map, group_offsets, row_assignment, assignment_row, routing_weights, x, weight, bias, dy, dx, d_weight, d_bias, d_routing_weights, num_tokens, faults);
        $constants!(GGM_STATUS_SUCCESS);
        $constants!(GGM_STATUS_INVALID_HANDLE);
        $constants!(GGM_STATUS_WRONG_DEVICE);
        $constants!(GGM_STATUS_NULL_POINTER);
        $constants!(GGM_STATUS_INVALID_VALUE);
        $constants!(GGM_STATUS_OVERFLOW);
        $constants!(GGM_STATUS_INVALID_ENUM);
        $constants!(GGM_STATUS_INVALID_FLAGS);
        $constants!(GGM_STATUS_INVALID_STRUCT_SIZE);
        $constants!(GGM_STATUS_WORKSPACE_TOO_SMALL);
        $constants!(GGM_STATUS_MISALIGNED);
        $constants!(GGM_STATUS_ALIASING);
        $constants!(GGM_STATUS_TYPE_MISMATCH);
        $constants!(GGM_STATUS_INVALID_STREAM);
        $constants!(GGM_STATUS_RESERVED_NOT_ZERO);
        $constants!(GGM_STATUS_UNSUPPORTED);
        $constants!(GGM_STATUS_UNSUPPORTED_DEVICE);
        $constants!(GGM_STATUS_BACKEND_UNAVAILABLE);
        $constants!(GGM_STATUS_LIMIT_EXCEEDED);
        $constants!(GGM_STATUS_INTERNAL_ERROR);
        $constants!(GGM_STATUS_OUT_OF_MEMORY);
        $constants!(GGM_STATUS_CUDA_ERROR);
        $constants!(GGM_MAX_ROWS);
        $constants!(GGM_MAX_EXPERTS);
        $constants!(GGM_MAX_GROUPS);
        $constants!(GGM_MAX_TOP_K);
        $constants!(GGM_WORKSPACE_ALIGNMENT);
        $constants!(GGM_TYPE_DEFAULT);
        $constants!(GGM_TYPE_FLOAT32);
        $constants!(GGM_TYPE_BFLOAT16);
        $constants!(GGM_TYPE_FLOAT16);
        $constants!(GGM_TYPE_FLOAT64);
        $constants!(GGM_INDEX_DEFAULT);
        $constants!(GGM_INDEX_INT32);
        $constants!(GGM_INDEX_INT64);
        $constants!(GGM_ORDER_NK);
        $constants!(GGM_ORDER_KN);
        $constants!(GGM_ORDER_MK);
        $constants!(GGM_ORDER_KM);
        $constants!(GGM_COMPUTE_EXACT);
        $constants!(GGM_COMPUTE_TF32);
        $constants!(GGM_COMPUTE_TF32X3);
        $constants!(GGM_LAYOUT_CONTIGUOUS);
        $constants!(GGM_LAYOUT_MASKED);
        $constants!(GGM_LAYOUT_VARIABLE_K);
        $constants!(GGM_GROUPS_SIZES);
        $constants!(GGM_GROUPS_OFFSETS);
        $constants!(GGM_GROUPS_ENDS);
        $constants!(GGM_GROUPS_STARTS_SIZES);
        $constants!(GGM_GROUPS_ROW_GROUP);
        $constants!(GGM_COMBINE_AUTO);
        $constants!(GGM_COMBINE_ORDERED);
        $constants!(GGM_COMBINE_TWO_STEP);
        $constants!(GGM_ROWS_TOKENS);
        $constants!(GGM_ROWS_GROUPED);
        $constants!(GGM_GRADIENT_X);
        $constants!(GGM_GRADIENT_WEIGHT);
        $constants!(GGM_GRADIENT_ROUTING_WEIGHTS);
        $constants!(GGM_GRADIENT_BIAS);
        $constants!(GGM_FLAG_KEEP_UNUSED_ROWS);
        $constants!(GGM_FLAG_ALPHA);
        $constants!(GGM_FLAG_ADD_TO_Y);
        $constants!(GGM_FLAG_ADD_TO_DX);
        $constants!(GGM_FLAG_ADD_TO_DWEIGHT);
        $constants!(GGM_FLAG_ADD_TO_DBIAS);
        $constants!(GGM_STRIDE_SHARED);
        $constants!(GGM_FAULT_BAD_ID);
        $constants!(GGM_FAULT_SIZE_CLAMPED);
        $constants!(GGM_FAULT_ROWS_DROPPED);
        $constants!(GGM_FAULT_BAD_ROUTING);
        $constants!(GGM_FAULT_MISALIGNED_GROUP);
        $constants!(GGM_FAULT_WORDS);
        $constants!(GGM_BACKEND_AUTO);
        $constants!(GGM_BACKEND_CUDA);
        $constants!(GGM_BACKEND_HOST);
        $constants!(GGM_KERNELS_AUTO);
        $constants!(GGM_KERNELS_CUDA_PORTABLE);
        $constants!(GGM_KERNELS_CUDA_HOPPER);
        $constants!(GGM_KERNELS_HOST_PLAIN);
        $constants!(GGM_KERNELS_HOST_AVX2);
        $constants!(GGM_KERNELS_HOST_AVX512);
        $constants!(GGM_LOG_OFF);
        $constants!(GGM_LOG_ERROR);
        $constants!(GGM_LOG_PLAN);
        $constants!(GGM_LOG_TRACE);
        $constants!(GGM_CREATE_CURRENT_DEVICE);
    };
}
