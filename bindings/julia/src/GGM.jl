"""
libggm: grouped GEMM for Mixture-of-Experts layers, with the token permutation fused into the products.

    handle = GGM.Handle(:host)
    GGM.moe_forward!(handle, y, x, weight; weight_order = :KN, ids = ids, routing_weights = routing_weights)

# Shapes

Julia stores arrays by columns, the library by rows, so that the axes of a Julia array are those of ggm.h in reverse order: the
library's `x [T,K]` is a Julia array of size `(K, T)`, its weight `[E,N,K]` one of size `(K, N, E)`. Nothing is transposed or copied.
The docstrings give sizes as `size(array)` has them.

# Values

Expert ids, rows, offsets and assignments count from 0, and -1 means none, as everywhere in the library: they are read and written
on the device, where nobody could convert them.

# What all operations share

`handle` is a [`Handle`](@ref). Arrays lie in its memory: `Array` on the host backend, and views, `reshape` and `reinterpret` of
one; on CUDA `CuArray`, and other arrays that say where they lie (see [`place`](@ref)). Columns may lie apart (a view), but the
elements of a column follow each other. Common keywords:

    num_tokens  Int32 array of one element, in the handle's memory: the real tokens, when fewer than the arrays hold
    faults      UInt32 array of 8, to which counts of bad device data are added (see `fault_counts`)
    sm_limit    multiprocessors (host: threads) the call may use, 0: all
    workspace   nothing: made for the call; or an array of at least so many bytes, aligned to 256; or a function from bytes to one
    stream      CUDA: a `CuStream` or an address; nothing: the one that the arrays tell (`current_stream`). Host: nothing.

On CUDA a call returns when the work is on the stream. What the library refuses throws [`Error`](@ref) with its text; arrays that
do not fit each other throw `DimensionMismatch` or `ArgumentError`. Then nothing was written.

[`Raw`](@ref) is the C interface itself. Nothing is exported: `permute!` and others would hide names of Base.
"""
module GGM

include("raw/Raw.jl")
using .Raw: GGM_FAULT_WORDS, GGM_STRIDE_SHARED, GGM_WORKSPACE_ALIGNMENT

include("errors.jl")
include("bfloat16.jl")
include("choices.jl")
include("handle.jl")
include("places.jl")
# What follows runs once a call, on every combination of array types; compiling it anew for each would cost far more.
@nospecialize
include("problems.jl")
include("workspace.jl")
include("routing_arrays.jl")
include("call.jl")
include("routing.jl")
include("products.jl")
include("layer.jl")
@specialize

const load = Raw.load

"Version of the loaded library, as a `VersionNumber`."
version() = Raw.version_of(Raw.ggm_version())

"One line about the loaded library: version, commit, CUDA version and architectures, host kernels."
build_info() = unsafe_string(Raw.ggm_build_info())

"The name of a status number, \"unknown status\" for others."
status_string(status::Integer) = unsafe_string(Raw.ggm_status_string(status))

"""
The text of the last failed call of this thread, "" when none failed. An [`Error`](@ref) carries it already; a task may have moved
to another thread since.
"""
last_error() = unsafe_string(Raw.ggm_last_error())

end
