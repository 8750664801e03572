/* libggm: grouped GEMM for Mixture-of-Experts layers, with the token permutation fused into the products.
 *
 * A Mixture-of-Experts layer sends each of T tokens to top_k of E experts. One product of such a layer is
 *
 *     y[t] = sum_j  w[t,j] * ( x[t] @ W[id[t,j]]^T + bias[id[t,j]] )       x [T,K]   W [E,N,K]   id, w [T,top_k]   y [T,N]
 *
 * This header is the whole C interface: routing, permutation, grouped products, the fused forward and its backward.
 * It needs no other header of CUDA and compiles alone as C99 and as C++11.
 *
 * CONTENTS
 *    1. Rules that hold for every function         5. ggm_permute, ggm_unpermute, ggm_unpermute_backward
 *    2. Status, errors, version                    6. ggm_grouped_gemm
 *    3. Types and flags                            7. ggm_grouped_gemm_array
 *    4. Handle;  ggm_route                         8. ggm_moe_forward, ggm_moe_backward
 *
 * 1. RULES THAT HOLD FOR EVERY FUNCTION
 *
 * Calling.  Each operation X is two functions:
 *
 *     ggm_X_workspace_size(handle, problem, &bytes)                      pure: looks at problem and device only
 *     ggm_X(handle, problem, tensors, workspace, workspace_bytes, stream)
 *
 * The *problem* holds sizes, types, orders and flags; the *tensors* hold pointers. The size query validates the whole
 * problem, so it is the support check as well: what it accepts the call accepts.
 *
 * Memory.  The caller owns every byte. Pointers marked GGM_DEV point to device memory on a CUDA handle and to ordinary
 * host memory on a host handle; pointers without it are host memory always. `workspace` is GGM_DEV memory, aligned to
 * GGM_WORKSPACE_ALIGNMENT, at least as large as the query says; NULL is right when the query says 0. Its content is
 * garbage before and after a call: nothing is kept there between calls, and one workspace may serve many calls in
 * stream order. The query is monotone in tokens, rows and max_rows: an arena sized for the largest batch serves all smaller
 * ones.
 *
 * Alignment.  Data pointers need the alignment of their element only; 16-byte aligned bases, leading dimensions and
 * strides are faster. Alignment, stream and a larger workspace never change a bit of any result.
 *
 * Streams.  Work is put on `stream` (a cudaStream_t / CUstream; NULL is the default stream). No call synchronises,
 * allocates device memory or reads device memory back, so every call, the very first included, may be captured in a
 * CUDA graph and replayed with other device data. A kernel that is launched behind a call as its programmatic dependent
 * may start before the call has ended, and must wait for it itself (griddepcontrol.wait); every other waits as always.
 * The host backend takes NULL only and returns when the work is done.
 *
 * Threads.  A handle is immutable after ggm_create: any number of threads may call with one handle at the same time, if
 * their workspaces and outputs differ and, on CUDA, the handle's device is current in each of them. Only `faults` may be
 * one array for many calls: it is counted atomically.
 *
 * Determinism.  The same inputs give the same bits on the same kind of device with the same library version: run after
 * run, on any stream, whatever the batch around a token. No product splits its inner dimension; every element is one
 * float32 (float64 for float64 inputs) sum in ascending order of the inner index. Sign and payload of a NaN are not fixed.
 *
 * Structs.  Start from the GGM_..._INIT macro (zeros and the struct's size), then set fields. Zero means the default
 * everywhere, so a field that a later version appends keeps its old meaning. A struct of an older, smaller size is
 * accepted; a larger one is accepted when the bytes this library does not know are zero.
 *
 * Sizes and strides count elements, workspace counts bytes. A leading dimension or stride of 0 means packed;
 * GGM_STRIDE_SHARED means a real stride of 0: all groups share one matrix (inputs only). Any other value is at least the
 * length of a row. Output strides must not make rows or groups overlap: the result of overlapping outputs is undefined.
 *
 * Errors.  Every function returns a ggm_status_t. When it is not GGM_STATUS_SUCCESS nothing was launched or written
 * (except GGM_STATUS_CUDA_ERROR and GGM_STATUS_INTERNAL_ERROR, which may come late), and ggm_last_error() of the same
 * thread names the argument, its value and the limit. Zero sizes are legal everywhere: with no tokens, rows or groups the
 * data pointers may be NULL and the outputs that exist still get their value.
 *
 * Untrusted device data.  Ids, sizes, offsets, counts and routing arrays are read on the device and are never trusted: a bad
 * value is skipped or clamped, never a fault or a hang, and counted in `faults` where the caller gives that array.
 * The one exception: the pointers and leading dimensions inside the arrays of ggm_grouped_gemm_array.
 *
 * Each function below lists the statuses that are special to it. Every call can also return those of its handle
 * (GGM_STATUS_INVALID_HANDLE, GGM_STATUS_WRONG_DEVICE), of its structs (GGM_STATUS_NULL_POINTER,
 * GGM_STATUS_INVALID_STRUCT_SIZE, GGM_STATUS_RESERVED_NOT_ZERO), of any field (GGM_STATUS_INVALID_VALUE,
 * GGM_STATUS_INVALID_ENUM, GGM_STATUS_INVALID_FLAGS, GGM_STATUS_OVERFLOW, GGM_STATUS_LIMIT_EXCEEDED, GGM_STATUS_UNSUPPORTED),
 * of its pointers (GGM_STATUS_NULL_POINTER, GGM_STATUS_TYPE_MISMATCH, GGM_STATUS_MISALIGNED, GGM_STATUS_ALIASING), of the
 * workspace (GGM_STATUS_WORKSPACE_TOO_SMALL) and of the stream (GGM_STATUS_INVALID_STREAM, GGM_STATUS_CUDA_ERROR).
 */
#ifndef GGM_GGM_H
#define GGM_GGM_H

#include <stddef.h>
#include <stdint.h>

#include "ggm/version.h"

#if defined(GGM_STATIC)
#define GGM_API
#elif defined(__GNUC__)
#define GGM_API __attribute__((visibility("default")))
#else
#define GGM_API
#endif

/* Marks a pointer to device memory (host memory on a host handle). It means nothing to a compiler; binding generators
 * that define GGM_BINDGEN see it as an annotation. */
#if defined(GGM_BINDGEN) && defined(__clang__)
#define GGM_DEV __attribute__((annotate("ggm_dev")))
#else
#define GGM_DEV
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ================================================================================================================
 * 2. STATUS, ERRORS, VERSION
 * ============================================================================================================== */

/* Result of every call. Grouped by thousands: 1 state, 2 argument, 3 unsupported, 4 internal, 5 CUDA. Values never
 * change; new ones may appear, so treat an unknown non-zero value as an error of its thousand. */
typedef int32_t ggm_status_t;
enum {
  GGM_STATUS_SUCCESS = 0,

  GGM_STATUS_INVALID_HANDLE = 1001, /* the handle is NULL or not one of ggm_create */
  GGM_STATUS_WRONG_DEVICE = 1002,   /* the current CUDA device is not the handle's */

  GGM_STATUS_NULL_POINTER = 2001,        /* a required pointer is NULL */
  GGM_STATUS_INVALID_VALUE = 2002,       /* a size, stride or number is outside its range */
  GGM_STATUS_OVERFLOW = 2003,            /* sizes multiply to more than 64 bits hold */
  GGM_STATUS_INVALID_ENUM = 2004,        /* an enum-typed field has an unknown value */
  GGM_STATUS_INVALID_FLAGS = 2005,       /* a flag or mask bit that this operation does not know */
  GGM_STATUS_INVALID_STRUCT_SIZE = 2006, /* struct_size is below the smallest known, or unknown bytes are not zero */
  GGM_STATUS_WORKSPACE_TOO_SMALL = 2007, /* workspace_bytes is below what the query says */
  GGM_STATUS_MISALIGNED = 2008,          /* a pointer is not aligned to its element, or the workspace to 256 bytes */
  GGM_STATUS_ALIASING = 2009,            /* an output or the workspace overlaps memory that it must not */
  GGM_STATUS_TYPE_MISMATCH = 2010,       /* a pointer is given whose type field is 0, or a type whose pointer is NULL */
  GGM_STATUS_INVALID_STREAM = 2011,      /* a stream was given to the host backend */
  GGM_STATUS_RESERVED_NOT_ZERO = 2012,   /* a reserved field, or a field that this mode does not use, is not zero */

  GGM_STATUS_UNSUPPORTED = 3001,         /* a valid combination that no kernel of this library serves; the text says why */
  GGM_STATUS_UNSUPPORTED_DEVICE = 3002,  /* no driver, no such GPU, a capability below 8.0, or no code for it in this build */
  GGM_STATUS_BACKEND_UNAVAILABLE = 3003, /* this build has no such backend */
  GGM_STATUS_LIMIT_EXCEEDED = 3004,      /* tokens*top_k, rows, experts, groups or top_k above the library's limits */

  GGM_STATUS_INTERNAL_ERROR = 4001, /* a fault of the library; please report it with the text */
  GGM_STATUS_OUT_OF_MEMORY = 4002,  /* host memory, in ggm_create only */

  GGM_STATUS_CUDA_ERROR = 5001 /* a CUDA call or launch failed; the text has its name */
};

/* Limits of this version; above them a call is refused with GGM_STATUS_LIMIT_EXCEEDED and writes nothing. */
#define GGM_MAX_ROWS 2147483647     /* tokens*top_k, m of a contiguous and k of a variable-K problem: below 2^31 */
#define GGM_MAX_EXPERTS 65536       /* local experts of routing and of the MoE operations; groups given by row_group */
#define GGM_MAX_GROUPS 1048576      /* groups of the grouped products */
#define GGM_MAX_TOP_K 4096          /* slots of a token */
#define GGM_WORKSPACE_ALIGNMENT 256 /* bytes */

/* The version of the loaded library, as GGM_VERSION. Thread-safe; since 0.1. */
GGM_API int32_t ggm_version(void);

/* One line about the build: version, commit, CUDA version and architectures, host kernels. Static storage, never NULL.
 * Thread-safe; since 0.1. */
GGM_API const char* ggm_build_info(void);

/* The name of a status, such as "GGM_STATUS_NULL_POINTER"; "unknown status" for any other number. Static storage, never
 * NULL. Thread-safe; since 0.1. */
GGM_API const char* ggm_status_string(ggm_status_t status);

/* The text of the last failed call of this thread: argument, value, limit. "" when none failed yet; a success leaves it.
 * The pointer belongs to the thread and its content lasts until the thread's next failing call. Since 0.1. */
GGM_API const char* ggm_last_error(void);

/* Copies that text, cut to fit and always terminated, into `buffer` [capacity bytes, host]; returns the length of the whole
 * text without its terminator. buffer may be NULL when capacity is 0. Since 0.1. */
GGM_API size_t ggm_copy_last_error(char* buffer, size_t capacity);

/* ================================================================================================================
 * 3. TYPES AND FLAGS     (fields that hold these are int32_t; a value not listed is GGM_STATUS_INVALID_ENUM)
 * ============================================================================================================== */

/* Element types. 0 in an optional input means "absent", in an output "as the field says". 16-bit inputs are added up in
 * float32. float64 serves gradient checks: one plain kernel on CUDA. */
enum { GGM_TYPE_DEFAULT = 0, GGM_TYPE_FLOAT32 = 1, GGM_TYPE_BFLOAT16 = 2, GGM_TYPE_FLOAT16 = 3, GGM_TYPE_FLOAT64 = 4 };

/* Integer types of ids, group sizes and offsets. */
enum { GGM_INDEX_DEFAULT = 0, GGM_INDEX_INT32 = 1, GGM_INDEX_INT64 = 2 };

/* Storage order of a weight matrix, and of op(A) and op(B) in ggm_grouped_gemm_array. For weights it must be named: a
 * wrong guess would go unseen when K = N.   NK = [E,N,K], K contiguous.   KN = [E,K,N], N contiguous.
 * For A:  MK = [M,K], K contiguous.   KM = [K,M], M contiguous. */
enum { GGM_ORDER_NK = 1, GGM_ORDER_KN = 2, GGM_ORDER_MK = 1, GGM_ORDER_KM = 2 };

/* Arithmetic. EXACT (the default): float32 products are float32 multiply-adds (fused on CUDA alone), 16-bit ones exact products
 * with a float32 sum. The two TF32 modes are known by name and refused with GGM_STATUS_UNSUPPORTED in this version. */
enum { GGM_COMPUTE_EXACT = 0, GGM_COMPUTE_TF32 = 1, GGM_COMPUTE_TF32X3 = 2 };

/* Layout of ggm_grouped_gemm; shapes there. */
enum { GGM_LAYOUT_CONTIGUOUS = 0, GGM_LAYOUT_MASKED = 1, GGM_LAYOUT_VARIABLE_K = 2 };

/* How the groups of ggm_grouped_gemm are given; arrays there. */
enum {
  GGM_GROUPS_SIZES = 0,        /* group_sizes [groups]; groups follow each other from row 0 */
  GGM_GROUPS_OFFSETS = 1,      /* group_offsets [groups+1]: first row of each group, then the end of the last */
  GGM_GROUPS_ENDS = 2,         /* group_offsets [groups]: end of each group; the first starts at row 0 */
  GGM_GROUPS_STARTS_SIZES = 3, /* group_offsets [groups] first rows, group_sizes [groups]; gaps allowed, any order */
  GGM_GROUPS_ROW_GROUP = 4     /* row_group [rows]: the group of each row, in any order; -1: the row belongs to none */
};

/* How the rows of one token are summed by the MoE operations. Both give the same bits. TWO_STEP stores the products of all
 * rows, [rows,N], in the workspace and sums them. ORDERED needs no such tensor: each row is added into y as it is stored or,
 * where y is 16-bit, into a float32 sum of it in the workspace, [tokens,N]; instead of that sum its bytes may hold the rows of
 * some columns at a time, which are then summed. AUTO lets the library choose (TWO_STEP in this version). */
enum { GGM_COMBINE_AUTO = 0, GGM_COMBINE_ORDERED = 1, GGM_COMBINE_TWO_STEP = 2 };

/* Whether rows are addressed by token or are already in sorted (grouped) order. */
enum { GGM_ROWS_TOKENS = 0, GGM_ROWS_GROUPED = 1 };

/* Gradients that ggm_moe_backward computes: bits of the field `gradients`. */
enum { GGM_GRADIENT_X = 1, GGM_GRADIENT_WEIGHT = 2, GGM_GRADIENT_ROUTING_WEIGHTS = 4, GGM_GRADIENT_BIAS = 8 };

/* Bits of the field `flags`; each operation lists those that it takes. */
enum {
  GGM_FLAG_KEEP_UNUSED_ROWS = 1, /* leave unused output rows untouched; without it they become +0.0, also when adding */
  GGM_FLAG_ALPHA = 2,            /* use the field alpha; without it alpha is 1 */
  GGM_FLAG_ADD_TO_Y = 4,         /* y (or the output of unpermute) += instead of = */
  GGM_FLAG_ADD_TO_DX = 8,        /* dx += */
  GGM_FLAG_ADD_TO_DWEIGHT = 16,  /* d_weight += */
  GGM_FLAG_ADD_TO_DBIAS = 32     /* d_bias += */
};

/* A real stride of 0 (0 itself means packed): every group reads the same matrix. Inputs only. */
#define GGM_STRIDE_SHARED ((int64_t)-1)

/* Words of the optional device array `faults` [GGM_FAULT_WORDS] of uint32. Sticky and saturating: the library only adds, the
 * caller clears. Words that are not named stay as they are. */
enum {
  GGM_FAULT_BAD_ID = 0,       /* ids below -1 or >= experts_total, map entries outside -1..experts-1, bad row_group entries */
  GGM_FAULT_SIZE_CLAMPED = 1, /* group sizes or num_tokens that were negative or too large */
  GGM_FAULT_ROWS_DROPPED = 2, /* rows beyond max_rows */
  GGM_FAULT_BAD_ROUTING = 3,  /* offsets that were not monotone or in range; rows whose two maps disagree */
  GGM_FAULT_MISALIGNED_GROUP = 4, /* groups of ggm_grouped_gemm_array that break min_alignment; such groups are skipped */
  GGM_FAULT_WORDS = 8
};

/* A CUDA stream: cudaStream_t and CUstream are this very type. */
typedef struct CUstream_st* ggm_stream_t;

/* ================================================================================================================
 * 4a. HANDLE
 * ============================================================================================================== */

typedef struct ggm_handle* ggm_handle_t;

/* Which implementation a handle uses. AUTO: CUDA when this build has it and the GPU asked for is there and usable; the host
 * without a driver or any GPU, for a capability below 8.0, and for a GPU that this build has no code for. A `device` that does
 * not exist although other GPUs do, and a driver or GPU that fails, are errors with AUTO too. ggm_get_info tells what was
 * taken.
 */
enum { GGM_BACKEND_AUTO = 0, GGM_BACKEND_CUDA = 1, GGM_BACKEND_HOST = 2 };

/* Kernel families. AUTO picks the fastest for the device. The others pin one, for tests and for finding faults; every family
 * of one backend gives the same bits. ggm_create refuses a family that the device cannot run with GGM_STATUS_UNSUPPORTED, one
 * of the other backend than the one asked for with GGM_STATUS_INVALID_VALUE, and a CUDA family in a build without CUDA with
 * GGM_STATUS_BACKEND_UNAVAILABLE. */
enum {
  GGM_KERNELS_AUTO = 0,
  GGM_KERNELS_CUDA_PORTABLE = 1, /* CUDA: float32 FFMA and mma.sync kernels, capability 8.0 to 12.x */
  GGM_KERNELS_CUDA_HOPPER = 2,   /* CUDA: wgmma kernels where they serve, the portable ones elsewhere; capability 9.0. 16-bit
                                  * products of few rows run on the same kernels in both CUDA families */
  GGM_KERNELS_HOST_PLAIN = 16,   /* host: plain C++ */
  GGM_KERNELS_HOST_AVX2 = 17,    /* host: AVX2 */
  GGM_KERNELS_HOST_AVX512 = 18   /* host: AVX-512 F, BW, DQ, VL */
};

/* What is logged, through the callback or, without one, to stderr. Each level has those below it. ERROR: failed calls. PLAN:
 * what each call was and what was chosen for it. TRACE: on how many multiprocessors it runs. */
enum { GGM_LOG_OFF = 0, GGM_LOG_ERROR = 1, GGM_LOG_PLAN = 2, GGM_LOG_TRACE = 3 };

/* flags of ggm_create_params_t */
enum { GGM_CREATE_CURRENT_DEVICE = 1 /* take the thread's current CUDA device; `device` must be 0; the host ignores it */ };

typedef struct ggm_create_params {
  uint32_t struct_size;  /* sizeof(ggm_create_params_t) */
  uint32_t flags;        /* GGM_CREATE_CURRENT_DEVICE or 0 */
  int32_t backend;       /* GGM_BACKEND_* */
  int32_t device;        /* CUDA ordinal, default 0; must be 0 on the host backend; not looked at when AUTO finds no GPU */
  int32_t kernel_family; /* GGM_KERNELS_*; the environment variable GGM_FORCE_KERNEL overrides 0 (debugging) */
  int32_t log_level;     /* GGM_LOG_*; the environment variable GGM_LOG (off, error, plan, trace) overrides 0 */
  int32_t host_threads;  /* host backend: worker threads, 0 = one a core; at most 1024 */
  int32_t reserved;      /* 0 */
  /* Called with one complete line, no newline, from the thread that makes the call, so by several at once when several call.
     No lock is held. What it throws goes no further. NULL: stderr. */
  void (*log)(void* user, int32_t level, const char* message);
  void* log_user;
  /* Host allocator, used by ggm_create and ggm_destroy alone; both NULL: malloc and free. alignment is a power of two. */
  void* (*allocate)(void* user, size_t bytes, size_t alignment);
  void (*deallocate)(void* user, void* pointer, size_t bytes);
  void* allocator_user;
} ggm_create_params_t;

#define GGM_CREATE_PARAMS_INIT \
  { (uint32_t)sizeof(ggm_create_params_t), 0, 0, 0, 0, 0, 0, 0, NULL, NULL, NULL, NULL, NULL }

typedef struct ggm_info {
  uint32_t struct_size;        /* in: sizeof(ggm_info_t) */
  int32_t backend;             /* GGM_BACKEND_CUDA or GGM_BACKEND_HOST */
  int32_t device;              /* CUDA ordinal; 0 on the host */
  int32_t kernel_family;       /* the family in use by default, GGM_KERNELS_*, never AUTO */
  int32_t compute_capability;  /* 10 * major + minor, 90 for an H200; 0 on the host */
  int32_t multiprocessors;     /* multiprocessors, or worker threads on the host */
  int32_t shared_memory_bytes; /* a block's largest dynamic shared memory; 0 on the host */
  int32_t workspace_alignment; /* GGM_WORKSPACE_ALIGNMENT */
} ggm_info_t;

#define GGM_INFO_INIT \
  { (uint32_t)sizeof(ggm_info_t), 0, 0, 0, 0, 0, 0, 0 }

/* Makes a handle. On CUDA this loads every kernel, so that even the first call may be captured.
 *   params   in, host; NULL means all defaults.
 *   handle   out, host; receives the handle, NULL on failure.
 * May allocate and synchronise (create is not a call path); must not run inside a stream capture of the same thread.
 * Thread-safe. Errors: GGM_STATUS_BACKEND_UNAVAILABLE (CUDA asked of a host-only build), GGM_STATUS_UNSUPPORTED_DEVICE (no
 * driver, no such device, capability below 8.0, no code for it), GGM_STATUS_UNSUPPORTED (the family cannot run there),
 * GGM_STATUS_OUT_OF_MEMORY, GGM_STATUS_CUDA_ERROR (driver or GPU failed). Since 0.1. */
GGM_API ggm_status_t ggm_create(const ggm_create_params_t* params, ggm_handle_t* handle);

/* Frees a handle. NULL does nothing. Makes no CUDA call and does not wait: work already on a stream completes. The order of
 * destruction never matters. No other thread may be inside a call with this handle. In a child of fork() a handle of the host
 * backend can be used, without its worker threads, and freed; CUDA cannot be used there. Since 0.1. */
GGM_API ggm_status_t ggm_destroy(ggm_handle_t handle);

/* Describes a handle. info: in/out, host; struct_size set by the caller. Thread-safe; since 0.1. */
GGM_API ggm_status_t ggm_get_info(ggm_handle_t handle, ggm_info_t* info);

/* ================================================================================================================
 * 4b. ROUTE: expert ids to sorted rows
 *
 * Slot (t,j) of a token is *assignment* a = t*top_k + j. A slot with a local expert becomes a *row*; rows are sorted by
 * (local expert, token, slot), so the order is stable and the same on every device. The result is three int32 arrays:
 *
 *     group_offsets [experts+1]        rows of local expert e are group_offsets[e] .. group_offsets[e+1]-1
 *     row_assignment [max_rows]        the assignment of each row; -1 in rows from group_offsets[experts] on
 *     assignment_row [tokens*top_k]    the row of each assignment; -1 where the slot has none
 *
 * Which expert a slot has.  id = -1: none, silently. id < -1 or id >= experts_total: none, GGM_FAULT_BAD_ID. Else with an
 * expert_map, map[id] (-1: not local; other values outside 0..experts-1: none, GGM_FAULT_BAD_ID); without one,
 * id - first_expert when that is in 0..experts-1, else not local. The same expert twice in a token makes two rows.
 * Rows sorted beyond max_rows are dropped and counted (GGM_FAULT_ROWS_DROPPED); their assignment_row is -1.
 * Tokens from num_tokens on have no slots and their ids are not read.
 * ============================================================================================================== */

typedef struct ggm_route_problem {
  uint32_t struct_size;  /* sizeof(ggm_route_problem_t) */
  uint32_t flags;        /* 0 */
  int64_t tokens;        /* T >= 0; T*top_k <= GGM_MAX_ROWS */
  int64_t top_k;         /* slots of a token, 1 .. GGM_MAX_TOP_K; may exceed the number of experts */
  int64_t experts;       /* local experts, 1 .. GGM_MAX_EXPERTS */
  int64_t experts_total; /* global experts; 0: first_expert + experts. At most 2^31-1 */
  int64_t first_expert;  /* global id of local expert 0; first_expert + experts <= experts_total. 0 with an expert_map */
  int64_t max_rows;      /* bound on the rows, 0: tokens*top_k; above that: as that */
  int64_t ids_ld;        /* elements between the ids of two tokens, 0: top_k */
  int32_t id_type;       /* GGM_INDEX_INT32 or INT64; required */
  int32_t sm_limit;      /* multiprocessors (host: threads) the call may use, 0: all; never changes bits */
} ggm_route_problem_t;

#define GGM_ROUTE_PROBLEM_INIT \
  { (uint32_t)sizeof(ggm_route_problem_t), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

typedef struct ggm_route_tensors {
  uint32_t struct_size;              /* sizeof(ggm_route_tensors_t) */
  uint32_t reserved;                 /* 0 */
  GGM_DEV const void* ids;           /* in  [tokens, top_k] of id_type, rows ids_ld apart */
  GGM_DEV const int32_t* expert_map; /* in  [experts_total] global -> local or -1; NULL: by first_expert */
  GGM_DEV const int32_t* num_tokens; /* in  [1] real tokens, clamped to 0..tokens (GGM_FAULT_SIZE_CLAMPED); NULL: tokens */
  GGM_DEV uint32_t* faults;          /* in/out [GGM_FAULT_WORDS]; NULL: not counted */
  GGM_DEV int32_t* group_offsets;    /* out [experts+1] */
  GGM_DEV int32_t* row_assignment;   /* out [max_rows] (tokens*top_k when max_rows is 0) */
  GGM_DEV int32_t* assignment_row;   /* out [tokens*top_k] */
} ggm_route_tensors_t;

#define GGM_ROUTE_TENSORS_INIT \
  { (uint32_t)sizeof(ggm_route_tensors_t), 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL }

/* Sorts expert ids into rows. Outputs may not overlap inputs, each other or the workspace. Method: stable radix sort of
 * (expert, assignment); on CUDA by counts of the experts' digits, ranks from votes of a warp (Ashkiani, Davidson, Meyer and
 * Owens, "GPU Multisplit", 2016) and scans of CUB's block primitives. Since 0.1. */
GGM_API ggm_status_t ggm_route_workspace_size(ggm_handle_t handle, const ggm_route_problem_t* problem, size_t* bytes);
GGM_API ggm_status_t ggm_route(ggm_handle_t handle, const ggm_route_problem_t* problem, const ggm_route_tensors_t* tensors,
                               GGM_DEV void* workspace, size_t workspace_bytes, ggm_stream_t stream);

/* ================================================================================================================
 * 5. PERMUTE, UNPERMUTE, UNPERMUTE_BACKWARD: the gather and the weighted scatter as operations of their own
 *
 * They take the three arrays of ggm_route, untrusted: group_offsets are clamped to 0..max_rows and made monotone, and a row
 * r in group_offsets[0] .. group_offsets[experts]-1 counts only if its assignment a = row_assignment[r] belongs to a token
 * below num_tokens and assignment_row[a] == r; every other row in that range is counted in GGM_FAULT_BAD_ROUTING (one a row,
 * one an offset changed) and treated as unused.
 *
 *   permute              output[r] = input[token of r], converted
 *                        input [tokens,features] -> output [max_rows,features]
 *   unpermute            output[t] = sum of w[t,j] * input[r] over the rows r of t, ascending
 *                        input [max_rows,features] -> output [tokens,features]
 *   unpermute_backward   d_rows[r] = round(w[t,j] * dy[t]), to float32 and then to row_type
 *                        d_routing_weights[t,j] = <dy[t], rows[r]>, 0 at slots without a row
 *
 * The sum is ggm_moe_forward's: each w*p rounded to float32, then added in float32, one final rounding; the first term starts
 * the sum. Without routing weights there is no multiplication. The backward of permute is unpermute without weights. <dy, rows>
 * is added as described at ggm_moe_backward. float64 tensors are processed in float64. Unused rows of the output: rows without
 * a valid assignment (permute, unpermute_backward), tokens from num_tokens on (unpermute). A token below num_tokens without any
 * row gets +0.0 always (its old value with GGM_FLAG_ADD_TO_Y).
 * ============================================================================================================== */

typedef struct ggm_permute_problem {
  uint32_t struct_size;        /* sizeof(ggm_permute_problem_t) */
  uint32_t flags;              /* GGM_FLAG_KEEP_UNUSED_ROWS; ggm_unpermute also GGM_FLAG_ADD_TO_Y */
  int64_t tokens;              /* T >= 0; T*top_k <= GGM_MAX_ROWS */
  int64_t top_k;               /* 1 .. GGM_MAX_TOP_K */
  int64_t experts;             /* 1 .. GGM_MAX_EXPERTS: group_offsets has experts+1 entries */
  int64_t max_rows;            /* as given to ggm_route; 0: tokens*top_k */
  int64_t features;            /* length of a row, 0 .. 2^31-1 */
  int64_t token_ld;            /* elements between two token rows, 0: features */
  int64_t row_ld;              /* elements between two sorted rows, 0: features */
  int64_t routing_weights_ld;  /* elements between the weights of two tokens, 0: top_k */
  int32_t token_type;          /* GGM_TYPE_*, required: type of the [tokens,features] tensor */
  int32_t row_type;            /* type of the [max_rows,features] tensor, 0: token_type. float64 goes with float64 alone */
  int32_t routing_weight_type; /* 0: no weights (permute takes 0 only); float64 with float64 tensors, else float32, bfloat16 or
                                  float16 */
  int32_t sm_limit;            /* multiprocessors the call may use, 0: all */
} ggm_permute_problem_t;

#define GGM_PERMUTE_PROBLEM_INIT \
  { (uint32_t)sizeof(ggm_permute_problem_t), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

typedef struct ggm_permute_tensors {
  uint32_t struct_size;                  /* sizeof(ggm_permute_tensors_t) */
  uint32_t reserved;                     /* 0 */
  GGM_DEV const int32_t* group_offsets;  /* in [experts+1] */
  GGM_DEV const int32_t* row_assignment; /* in [max_rows] */
  GGM_DEV const int32_t* assignment_row; /* in [tokens*top_k] */
  GGM_DEV const void* routing_weights;   /* in [tokens, top_k] of routing_weight_type; NULL exactly when that is 0 */
  GGM_DEV const void* input; /* in: permute [tokens,features] of token_type; unpermute [max_rows,features] of row_type */
  GGM_DEV void* output;      /* out: permute [max_rows,features] of row_type; unpermute [tokens,features] of token_type */
  GGM_DEV const int32_t* num_tokens; /* in [1]; NULL: tokens */
  GGM_DEV uint32_t* faults;          /* in/out [GGM_FAULT_WORDS]; NULL: not counted */
} ggm_permute_tensors_t;

#define GGM_PERMUTE_TENSORS_INIT \
  { (uint32_t)sizeof(ggm_permute_tensors_t), 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL }

typedef struct ggm_unpermute_backward_tensors {
  uint32_t struct_size;                  /* sizeof(ggm_unpermute_backward_tensors_t) */
  uint32_t reserved;                     /* 0 */
  GGM_DEV const int32_t* group_offsets;  /* in [experts+1] */
  GGM_DEV const int32_t* row_assignment; /* in [max_rows] */
  GGM_DEV const int32_t* assignment_row; /* in [tokens*top_k] */
  GGM_DEV const void* routing_weights;   /* in [tokens, top_k]; NULL exactly when routing_weight_type is 0 */
  GGM_DEV const void* rows;          /* in [max_rows,features] of row_type: unpermute's input; NULL when d_routing_weights is */
  GGM_DEV const void* dy;            /* in [tokens,features] of token_type */
  GGM_DEV void* d_rows;              /* out [max_rows,features] of row_type; NULL: not wanted */
  GGM_DEV float* d_routing_weights;  /* out [tokens, top_k] packed; NULL: not wanted. Not both NULL */
  GGM_DEV const int32_t* num_tokens; /* in [1]; NULL: tokens */
  GGM_DEV uint32_t* faults;          /* in/out [GGM_FAULT_WORDS]; NULL: not counted */
} ggm_unpermute_backward_tensors_t;

#define GGM_UNPERMUTE_BACKWARD_TENSORS_INIT \
  { (uint32_t)sizeof(ggm_unpermute_backward_tensors_t), 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL }

/* Outputs may not overlap inputs, each other or the workspace. Since 0.1. */
GGM_API ggm_status_t ggm_permute_workspace_size(ggm_handle_t handle, const ggm_permute_problem_t* problem, size_t* bytes);
GGM_API ggm_status_t ggm_permute(ggm_handle_t handle, const ggm_permute_problem_t* problem,
                                 const ggm_permute_tensors_t* tensors, GGM_DEV void* workspace, size_t workspace_bytes,
                                 ggm_stream_t stream);
GGM_API ggm_status_t ggm_unpermute_workspace_size(ggm_handle_t handle, const ggm_permute_problem_t* problem, size_t* bytes);
GGM_API ggm_status_t ggm_unpermute(ggm_handle_t handle, const ggm_permute_problem_t* problem,
                                   const ggm_permute_tensors_t* tensors, GGM_DEV void* workspace, size_t workspace_bytes,
                                   ggm_stream_t stream);
GGM_API ggm_status_t ggm_unpermute_backward_workspace_size(ggm_handle_t handle, const ggm_permute_problem_t* problem,
                                                           size_t* bytes);
GGM_API ggm_status_t ggm_unpermute_backward(ggm_handle_t handle, const ggm_permute_problem_t* problem,
                                            const ggm_unpermute_backward_tensors_t* tensors, GGM_DEV void* workspace,
                                            size_t workspace_bytes, ggm_stream_t stream);

/* ================================================================================================================
 * 6. GROUPED_GEMM: the products of all groups in one call
 *
 *     D_e = alpha * A_e @ B_e + beta * C_e
 *
 * alpha*sum, beta*C and their sum are each rounded to float32, and that once more to d_type.
 *
 *   layout       A                B                                    C, D
 *   CONTIGUOUS   [m, k]           [groups, n, k] or [groups, k, n]     [m, n]
 *                rows of a group follow each other, or row_group names the group of each row
 *   MASKED       [groups, m, k]   [groups, n, k] or [groups, k, n]     [groups, m, n]
 *                the first group_sizes[e] rows of each group count
 *   VARIABLE_K   [k, m]           [k, n]                               [groups, m, n]
 *                D_e = A_e^T @ B_e over the rows of group e
 *
 * m of CONTIGUOUS, m of MASKED and k of VARIABLE_K are the bounds known to the host; sizes live on the device. B is read as
 * [n,k] (b_order NK) or [k,n] (b_order KN). Groups are given by group_form. MASKED takes SIZES only.
 * Sizes that are negative or reach beyond the rows are clamped (GGM_FAULT_SIZE_CLAMPED, one a group); OFFSETS and ENDS are made
 * monotone (GGM_FAULT_BAD_ROUTING, one an entry changed); row_group entries outside -1..groups-1 are treated as -1
 * (GGM_FAULT_BAD_ID). Starts of STARTS_SIZES are clamped as sizes are; groups that overlap give undefined values there.
 * Unused rows of D (of no group; beyond a masked group's size) become +0.0, or stay with GGM_FLAG_KEEP_UNUSED_ROWS or beta !=
 * 0. The sum of a group with k = 0 is +0.0 whatever alpha is, so D = 0 + beta*C. With beta = 0 neither C nor D is read. With
 * VARIABLE_K rows of one group are added ascending.
 * ============================================================================================================== */

typedef struct ggm_grouped_gemm_problem {
  uint32_t struct_size; /* sizeof(ggm_grouped_gemm_problem_t) */
  uint32_t flags;       /* GGM_FLAG_KEEP_UNUSED_ROWS (not VARIABLE_K), GGM_FLAG_ALPHA */
  int64_t groups;       /* 0 .. GGM_MAX_GROUPS (row_group: GGM_MAX_EXPERTS) */
  int64_t m, n, k;      /* >= 0; see the table. The one that is a bound on rows: <= GGM_MAX_ROWS; the others < 2^31 */
  int64_t lda;          /* elements between rows of A, 0: packed */
  int64_t ldb;          /* elements between rows of B as stored, 0: packed */
  int64_t ldc, ldd;     /* elements between rows of C and D, 0: packed */
  int64_t stride_a;     /* MASKED: elements between groups of A, 0: m*lda, GGM_STRIDE_SHARED; other layouts: 0 */
  int64_t stride_b;     /* CONTIGUOUS, MASKED: elements between groups of B, 0: packed, GGM_STRIDE_SHARED; VARIABLE_K: 0 */
  int64_t stride_c;     /* MASKED, VARIABLE_K: elements between groups of C, 0: m*ldc, GGM_STRIDE_SHARED; CONTIGUOUS: 0 */
  int64_t stride_d;     /* MASKED, VARIABLE_K: elements between groups of D, 0: m*ldd; CONTIGUOUS: 0 */
  double alpha;         /* used with GGM_FLAG_ALPHA only, else must be 0; as float32 unless the types are float64 */
  double beta;          /* 0: C is not read */
  int32_t layout;       /* GGM_LAYOUT_* */
  int32_t group_form;   /* GGM_GROUPS_* */
  int32_t index_type;   /* GGM_INDEX_*, type of group_sizes, group_offsets, row_group; 0: int32 */
  int32_t b_order;      /* GGM_ORDER_NK or KN, required; VARIABLE_K: 0 */
  int32_t a_type;       /* GGM_TYPE_*, required */
  int32_t b_type;       /* GGM_TYPE_*, required; equal to a_type in this version */
  int32_t c_type;       /* 0: no C; required with beta != 0; any type that d_type may have */
  int32_t d_type;       /* 0: a_type; a_type, or float32 with 16-bit inputs */
  int32_t compute_type; /* GGM_COMPUTE_* */
  int32_t sm_limit;     /* multiprocessors the call may use, 0: all */
} ggm_grouped_gemm_problem_t;

#define GGM_GROUPED_GEMM_PROBLEM_INIT                                                                                         \
  {                                                                                                                           \
    (uint32_t)sizeof(ggm_grouped_gemm_problem_t), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0.0, 0.0, 0, 0, 0, 0, 0, 0, 0, 0, 0, \
        0                                                                                                                     \
  }

typedef struct ggm_grouped_gemm_tensors {
  uint32_t struct_size;              /* sizeof(ggm_grouped_gemm_tensors_t) */
  uint32_t reserved;                 /* 0 */
  GGM_DEV const void* group_sizes;   /* in of index_type; SIZES, STARTS_SIZES, MASKED: [groups]; else NULL */
  GGM_DEV const void* group_offsets; /* in of index_type; OFFSETS: [groups+1]; ENDS, STARTS_SIZES: [groups]; else NULL */
  GGM_DEV const void* row_group;     /* in of index_type; ROW_GROUP: [rows]; else NULL */
  GGM_DEV const void* a;             /* in of a_type */
  GGM_DEV const void* b;             /* in of b_type */
  GGM_DEV const void*
      c;           /* in of c_type; may be d itself (same type, leading dimension and stride); NULL exactly when c_type is 0 */
  GGM_DEV void* d; /* out of d_type; may not overlap a or b */
  GGM_DEV uint32_t* faults; /* in/out [GGM_FAULT_WORDS]; NULL: not counted */
} ggm_grouped_gemm_tensors_t;

#define GGM_GROUPED_GEMM_TENSORS_INIT \
  { (uint32_t)sizeof(ggm_grouped_gemm_tensors_t), 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL }

/* Since 0.1. */
GGM_API ggm_status_t ggm_grouped_gemm_workspace_size(ggm_handle_t handle, const ggm_grouped_gemm_problem_t* problem,
                                                     size_t* bytes);
GGM_API ggm_status_t ggm_grouped_gemm(ggm_handle_t handle, const ggm_grouped_gemm_problem_t* problem,
                                      const ggm_grouped_gemm_tensors_t* tensors, GGM_DEV void* workspace,
                                      size_t workspace_bytes, ggm_stream_t stream);

/* ================================================================================================================
 * 7. GROUPED_GEMM_ARRAY: fully general groups
 *
 *     D_i = alpha * op(A_i) @ op(B_i) + beta * C_i
 *
 * A_i is [M,K] (a_order MK) or [K,M] (KM), B_i [N,K] (b_order NK) or [K,N] (KN), C_i and D_i are [M,N].
 *
 * Sizes, leading dimensions and pointers are device arrays, so nothing of a group is known to the host but the bounds. A size
 * that is negative or above its bound is clamped (GGM_FAULT_SIZE_CLAMPED, one a group). A group with M = 0 or N = 0 is
 * empty: its pointers are not looked at. With K = 0 A and B are not looked at, with beta = 0 C is not. Leading dimensions and
 * pointers inside the arrays are the caller's word. Groups may share inputs; overlapping outputs are undefined.
 * ============================================================================================================== */

typedef struct ggm_grouped_gemm_array_problem {
  uint32_t struct_size;        /* sizeof(ggm_grouped_gemm_array_problem_t) */
  uint32_t flags;              /* GGM_FLAG_ALPHA */
  int64_t groups;              /* 0 .. GGM_MAX_GROUPS */
  int64_t max_m, max_n, max_k; /* bounds of the device sizes, 0 .. 2^31-1 */
  double alpha;                /* used with GGM_FLAG_ALPHA only, else must be 0 */
  double beta;                 /* 0: C is not read */
  int32_t index_type;          /* GGM_INDEX_*, type of m, n, k and the leading dimensions; 0: int32 */
  int32_t a_order;             /* GGM_ORDER_MK or KM, required */
  int32_t b_order;             /* GGM_ORDER_NK or KN, required */
  int32_t a_type, b_type;      /* GGM_TYPE_*, required, equal in this version */
  int32_t c_type;              /* 0: no C; required with beta != 0 */
  int32_t d_type;              /* 0: a_type; a_type, or float32 with 16-bit inputs */
  int32_t compute_type;        /* GGM_COMPUTE_* */
  int32_t min_alignment; /* bytes that all pointers and leading dimensions keep: 0 (of the element) or a power of two up to 256.
                            A group that does not keep it, or whose pointer is not aligned to its element, is skipped and
                            counted (GGM_FAULT_MISALIGNED_GROUP): its D stays as it was */
  int32_t sm_limit;      /* multiprocessors the call may use, 0: all */
} ggm_grouped_gemm_array_problem_t;

#define GGM_GROUPED_GEMM_ARRAY_PROBLEM_INIT \
  { (uint32_t)sizeof(ggm_grouped_gemm_array_problem_t), 0, 0, 0, 0, 0, 0.0, 0.0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

typedef struct ggm_grouped_gemm_array_tensors {
  uint32_t struct_size;    /* sizeof(ggm_grouped_gemm_array_tensors_t) */
  uint32_t reserved;       /* 0 */
  GGM_DEV const void* m;   /* in [groups] of index_type; NULL: max_m for every group */
  GGM_DEV const void* n;   /* in [groups]; NULL: max_n */
  GGM_DEV const void* k;   /* in [groups]; NULL: max_k */
  GGM_DEV const void* lda; /* in [groups], taken as they are, 0 too; NULL: packed by the group's own sizes; likewise below */
  GGM_DEV const void* ldb;
  GGM_DEV const void* ldc;
  GGM_DEV const void* ldd;
  GGM_DEV const void* const* a; /* in [groups] device pointers, of a_type */
  GGM_DEV const void* const* b; /* in [groups], of b_type */
  GGM_DEV const void* const* c; /* in [groups], of c_type; NULL exactly when c_type is 0; c[i] may be d[i] */
  GGM_DEV void* const* d;       /* in [groups] device pointers to outputs of d_type */
  GGM_DEV uint32_t* faults;     /* in/out [GGM_FAULT_WORDS]; NULL: not counted */
} ggm_grouped_gemm_array_tensors_t;

#define GGM_GROUPED_GEMM_ARRAY_TENSORS_INIT                                                                                  \
  {                                                                                                                          \
    (uint32_t)sizeof(ggm_grouped_gemm_array_tensors_t), 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, \
        NULL                                                                                                                 \
  }

/* Since 0.1. */
GGM_API ggm_status_t ggm_grouped_gemm_array_workspace_size(ggm_handle_t handle, const ggm_grouped_gemm_array_problem_t* problem,
                                                           size_t* bytes);
GGM_API ggm_status_t ggm_grouped_gemm_array(ggm_handle_t handle, const ggm_grouped_gemm_array_problem_t* problem,
                                            const ggm_grouped_gemm_array_tensors_t* tensors, GGM_DEV void* workspace,
                                            size_t workspace_bytes, ggm_stream_t stream);

/* ================================================================================================================
 * 8. MOE_FORWARD, MOE_BACKWARD: the whole formula, routing included
 *
 * Forward.  For the row r of slot (t,j) with local expert e:
 *
 *     p[r] = round_to(product_type, x[t] @ W_e^T + bias_e)
 *     y[t] = sum_r  w[t,j] * p[r]
 *
 * The inner sum runs over in_features ascending in float32, and the bias is added in float32. Each w*p is rounded to float32;
 * they are added in float32 in ascending order of rows (experts, then slots), with one final rounding to y_type.
 *
 * The sum starts at the first product, or at the old y with GGM_FLAG_ADD_TO_Y. Without routing weights nothing is multiplied.
 * w = 0 is a real factor (0 * NaN is NaN, its gradient is true); -1 is the way to drop a slot. A token below num_tokens without
 * a row gets +0.0. output_rows GROUPED stores y[r] = round_to(y_type, w*p[r]) in sorted order instead; input_rows GROUPED reads
 * x[r]. So an activation of the caller's own fits between two calls: tokens -> grouped without weights, then grouped -> tokens
 * with them.
 *
 * Backward, from dy (shaped as y), each part if its bit of `gradients` is set:
 *
 *     q[r] = dy[r] @ W_e                                         dy[r] is dy[t], or row r of a grouped dy
 *     dx[t] = sum_r  w[t,j] * round_to(product_type, q[r])       row by row, dx[r], when x is grouped
 *     d_weight_e = sum_r  round_to(x_type, w[t,j] * dy[r]) (x) x[r]
 *     d_bias_e = sum_r  round_to(x_type, w[t,j] * dy[r])
 *     d_routing_weights[t,j] = <q[r], x[r]> + <dy[r], bias_e>    q as it is summed, not rounded; 0 at slots without a row
 *
 * q sums over out_features ascending in float32, dx as the forward sums y. d_weight (shaped and ordered as weight) and d_bias
 * add their rows ascending in float32 and round once; w*dy is rounded to float32, then to x_type. d_routing_weights is float32.
 *
 * product_type 0 is y_type in the forward and dx_type in the backward; float32 asks for unrounded products in both.
 * Inner products <u,v> over n columns: each block of 64 columns from c has 32 float32 sums s_i, from 0 by fused multiply-add,
 * of the terms u*v of columns c + 16 (i / 8) + i % 8 and then c + 16 (i / 8) + i % 8 + 8, where they exist; neighbours are
 * added five times over, s0 + s1, s2 + s3 and so on, until one is left. Blocks are added in ascending order, <q,x> first, then
 * <dy,bias> added as one number. float64 problems do all of this in float64 and round d_routing_weights last. d_weight and
 * d_bias of an expert without rows are +0.0, or untouched when accumulating; accumulating adds the old value to the finished
 * float32 sum in float32, and rounds that. The gradients may be asked for in one call or several, with the same bits. Nothing
 * is saved by the forward: ggm_route rebuilds the routing arrays bit for bit from the ids.
 *
 * Routing.  With id_type the call routes by itself (ids; expert_map) and group_offsets, row_assignment, assignment_row are
 * NULL. With id_type 0 the caller gives those three arrays, untrusted as in section 5; ids and expert_map are NULL then.
 * ============================================================================================================== */

typedef struct ggm_moe_problem {
  uint32_t struct_size;        /* sizeof(ggm_moe_problem_t) */
  uint32_t flags;              /* GGM_FLAG_KEEP_UNUSED_ROWS, GGM_FLAG_ADD_TO_Y, _DX, _DWEIGHT, _DBIAS */
  int64_t tokens;              /* T >= 0; T*top_k <= GGM_MAX_ROWS */
  int64_t top_k;               /* 1 .. GGM_MAX_TOP_K */
  int64_t experts;             /* local experts, 1 .. GGM_MAX_EXPERTS */
  int64_t experts_total;       /* as in ggm_route_problem_t; 0 when the arrays are given */
  int64_t first_expert;        /* as in ggm_route_problem_t; 0 when the arrays are given */
  int64_t max_rows;            /* as in ggm_route_problem_t */
  int64_t ids_ld;              /* 0: top_k; must be 0 when the arrays are given */
  int64_t routing_weights_ld;  /* 0: top_k */
  int64_t in_features;         /* K, 0 .. 2^31-1 */
  int64_t out_features;        /* N, 0 .. 2^31-1 */
  int64_t x_ld;                /* 0: in_features */
  int64_t y_ld;                /* 0: out_features */
  int64_t weight_ld;           /* 0: packed (in_features for NK, out_features for KN) */
  int64_t weight_stride;       /* 0: packed; GGM_STRIDE_SHARED */
  int64_t bias_stride;         /* 0: out_features; GGM_STRIDE_SHARED */
  int64_t dy_ld;               /* 0: out_features */
  int64_t dx_ld;               /* 0: in_features */
  int64_t d_weight_ld;         /* 0: packed */
  int64_t d_weight_stride;     /* 0: packed */
  int64_t d_bias_stride;       /* 0: out_features */
  int32_t id_type;             /* GGM_INDEX_*; 0: the routing arrays are given */
  int32_t routing_weight_type; /* 0: no factor; float64 with float64 tensors, else float32, bfloat16 or float16 */
  int32_t x_type;              /* GGM_TYPE_*, required */
  int32_t weight_type;         /* GGM_TYPE_*, required; equal to x_type in this version */
  int32_t bias_type;           /* 0: no bias; float32 or x_type */
  int32_t y_type;              /* 0: x_type; x_type, or float32 with 16-bit x */
  int32_t product_type;        /* 0: the type of the combined result; or float32 (float64 with float64) */
  int32_t compute_type;        /* GGM_COMPUTE_* */
  int32_t weight_order;        /* GGM_ORDER_NK [E,N,K] or KN [E,K,N], required */
  int32_t input_rows;          /* GGM_ROWS_*: x and dx are [tokens,K] or [max_rows,K] */
  int32_t output_rows;         /* GGM_ROWS_*: y and dy are [tokens,N] or [max_rows,N] */
  int32_t combine;             /* GGM_COMBINE_* */
  int32_t sm_limit;            /* multiprocessors the call may use, 0: all */
  int32_t gradients;           /* GGM_GRADIENT_* bits; at least one for the backward; the forward computes none of them */
  int32_t dy_type;             /* 0: y_type; in this version it must be x_type: float32 dy of 16-bit x is refused */
  int32_t dx_type;             /* 0: x_type; x_type, or float32 with 16-bit x */
  int32_t d_weight_type;       /* 0: weight_type; weight_type, or float32 with 16-bit weights */
  int32_t d_bias_type;         /* 0: bias_type; x_type or float32 */
} ggm_moe_problem_t;

#define GGM_MOE_PROBLEM_INIT                                                                                                 \
  {                                                                                                                          \
    (uint32_t)sizeof(ggm_moe_problem_t), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, \
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0                                                                                      \
  }

typedef struct ggm_moe_forward_tensors {
  uint32_t struct_size;                  /* sizeof(ggm_moe_forward_tensors_t) */
  uint32_t reserved;                     /* 0 */
  GGM_DEV const void* ids;               /* in [tokens, top_k] of id_type; NULL exactly when that is 0 */
  GGM_DEV const int32_t* expert_map;     /* in [experts_total]; NULL: by first_expert */
  GGM_DEV const int32_t* group_offsets;  /* in [experts+1]; NULL exactly when ids are given */
  GGM_DEV const int32_t* row_assignment; /* in [max_rows] */
  GGM_DEV const int32_t* assignment_row; /* in [tokens*top_k] */
  GGM_DEV const void* routing_weights;   /* in [tokens, top_k]; NULL exactly when routing_weight_type is 0 */
  GGM_DEV const void* x;                 /* in [tokens, K] or [max_rows, K] */
  GGM_DEV const void* weight;            /* in [experts, N, K] or [experts, K, N] */
  GGM_DEV const void* bias;              /* in [experts, N]; NULL exactly when bias_type is 0 */
  GGM_DEV void* y;                       /* out [tokens, N] or [max_rows, N] */
  GGM_DEV const int32_t* num_tokens;     /* in [1]; NULL: tokens */
  GGM_DEV uint32_t* faults;              /* in/out [GGM_FAULT_WORDS]; NULL: not counted */
} ggm_moe_forward_tensors_t;

#define GGM_MOE_FORWARD_TENSORS_INIT \
  { (uint32_t)sizeof(ggm_moe_forward_tensors_t), 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL }

typedef struct ggm_moe_backward_tensors {
  uint32_t struct_size;                  /* sizeof(ggm_moe_backward_tensors_t) */
  uint32_t reserved;                     /* 0 */
  GGM_DEV const void* ids;               /* in, as in the forward */
  GGM_DEV const int32_t* expert_map;     /* in */
  GGM_DEV const int32_t* group_offsets;  /* in */
  GGM_DEV const int32_t* row_assignment; /* in */
  GGM_DEV const int32_t* assignment_row; /* in */
  GGM_DEV const void* routing_weights;   /* in */
  GGM_DEV const void* x;      /* in [tokens, K] or [max_rows, K]; needed by d_weight and d_routing_weights, else may be NULL */
  GGM_DEV const void* weight; /* in; needed by dx and d_routing_weights, else may be NULL */
  GGM_DEV const void* bias;   /* in [experts, N]; needed by d_routing_weights when bias_type is set, else may be NULL */
  GGM_DEV const void* dy;     /* in [tokens, N] or [max_rows, N] of dy_type */
  GGM_DEV void* dx;           /* out [tokens, K] or [max_rows, K]; given exactly with GGM_GRADIENT_X */
  GGM_DEV void* d_weight;     /* out, shaped as weight; given exactly with GGM_GRADIENT_WEIGHT */
  GGM_DEV void* d_bias;       /* out [experts, N]; given exactly with GGM_GRADIENT_BIAS */
  GGM_DEV float* d_routing_weights;  /* out [tokens, top_k] packed; given exactly with GGM_GRADIENT_ROUTING_WEIGHTS */
  GGM_DEV const int32_t* num_tokens; /* in [1]; NULL: tokens */
  GGM_DEV uint32_t* faults;          /* in/out [GGM_FAULT_WORDS]; NULL: not counted */
} ggm_moe_backward_tensors_t;

#define GGM_MOE_BACKWARD_TENSORS_INIT                                                                                        \
  {                                                                                                                          \
    (uint32_t)sizeof(ggm_moe_backward_tensors_t), 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, \
        NULL, NULL, NULL, NULL                                                                                               \
  }

/* One problem struct serves both: fill it once. Outputs may not overlap inputs, each other or the workspace. Since 0.1. */
GGM_API ggm_status_t ggm_moe_forward_workspace_size(ggm_handle_t handle, const ggm_moe_problem_t* problem, size_t* bytes);
GGM_API ggm_status_t ggm_moe_forward(ggm_handle_t handle, const ggm_moe_problem_t* problem,
                                     const ggm_moe_forward_tensors_t* tensors, GGM_DEV void* workspace, size_t workspace_bytes,
                                     ggm_stream_t stream);
GGM_API ggm_status_t ggm_moe_backward_workspace_size(ggm_handle_t handle, const ggm_moe_problem_t* problem, size_t* bytes);
GGM_API ggm_status_t ggm_moe_backward(ggm_handle_t handle, const ggm_moe_problem_t* problem,
                                      const ggm_moe_backward_tensors_t* tensors, GGM_DEV void* workspace,
                                      size_t workspace_bytes, ggm_stream_t stream);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* GGM_GGM_H */
