# What the tests share: exact small numbers in every element type, references of routing, and an array type that lies on a device.

const TYPES = (Float32, GGM.BFloat16, Float16, Float64)
const POISON = -77.0  # no result of a test is this

"Integers of -2 .. 2, so that every sum in these tests is exact in every type."
small(seed, size...) = reshape([Float64(mod(seed + i * i * 7 + i * 13, 5) - 2) for i in 0:prod(size)-1], size)

"Float64 values as an array of the type; refuses what would be rounded."
function encode(T, values)
    made = T.(values)
    Float64.(made) == values || error("the test's own numbers are not exact in $T")
    return made
end

poisoned(T, size...) = encode(T, fill(POISON, size...))

"Every element the same number; shows the case when not."
function same(case, got, want)
    equal = size(got) == size(want) && all(Float64.(got) .== Float64.(want))
    equal || println("in the case ", case, ":\n got ", Float64.(got), "\nwant ", Float64.(want))
    return equal
end

"What `body` throws, as text; its type in front."
function thrown(body)
    try
        body()
    catch error
        return string(typeof(error), ": ", sprint(showerror, error))
    end
    return "nothing was thrown"
end

"Whether `body` throws a `kind` whose text holds `text`; shows the text when not."
function throws(kind, text, body)
    got = thrown(body)
    good = startswith(got, string(kind)) && occursin(text, got)
    good || println("expected ", kind, " with ", repr(text), "; got ", got)
    return good
end

function new_routing(tokens, top_k, experts; max_rows=tokens * top_k)
    return GGM.Routing(fill(Int32(-77), experts + 1), fill(Int32(-77), max_rows), fill(Int32(-77), top_k, tokens))
end

"[(expert, token, slot)], all from 0, in the order of rows: the reference of routing."
function sorted_rows(ids, experts; first_expert=0, tokens=size(ids, 2))
    return sort([(Int(ids[j, t]) - first_expert, t - 1, j - 1)
                 for t in 1:tokens for j in 1:size(ids, 1) if 0 <= ids[j, t] - first_expert < experts])
end

# ---- a device array without a device -----------------------------------------------------------------------------------------

"An array that says of itself that it lies on a CUDA device. Its memory is the host's; `similar` makes more of it."
struct DeviceArray{T,N} <: AbstractArray{T,N}
    array::Array{T,N}
    device::Int
    stream::Any
end
DeviceArray(array; device=0, stream=nothing) = DeviceArray(array, device, stream)

const MADE = Any[]  # what similar has made

Base.size(a::DeviceArray) = size(a.array)
Base.strides(a::DeviceArray) = strides(a.array)
Base.getindex(a::DeviceArray, i::Int...) = error("an element of a device array was read")
function Base.similar(a::DeviceArray, ::Type{T}, dims::Dims) where {T}
    # Aligned as memory of a device is.
    memory = Ref{Ptr{T}}(C_NULL)
    @assert 0 == ccall(:posix_memalign, Cint, (Ptr{Ptr{T}}, Csize_t, Csize_t), memory, 256, max(sizeof(T) * prod(dims), 1))
    made = DeviceArray(unsafe_wrap(Array, memory[], dims; own=true); device=a.device, stream=a.stream)
    push!(MADE, made)
    return made
end
GGM.place(a::DeviceArray) = GGM.Place(:cuda, pointer(a.array), a.device)
GGM.current_stream(a::DeviceArray) = a.stream

"A handle of the host backend that takes itself for one on CUDA: its calls run, on device arrays."
function device_handle()
    handle = GGM.Handle(:host; host_threads=2)
    handle.info = merge(handle.info, (backend=:cuda,))
    return handle
end
