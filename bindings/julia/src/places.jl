# Where arrays lie. The library sees addresses alone; what it has to know of an array type is said by the functions below, so that
# no array package is needed here.

"""
    GGM.Place(memory, address, device = nothing)

Where an array lies: `memory` is `:host` or `:cuda`, `address` a `UInt` or pointer of its first element, `device` the CUDA ordinal
where it is known.
"""
struct Place
    memory::Symbol
    address::UInt
    device::Union{Nothing,Int}

    function Place(memory::Symbol, address, device::Union{Nothing,Integer}=nothing)
        memory in (:host, :cuda) || throw(ArgumentError("memory = :$memory; it must be :host or :cuda"))
        return new(memory, UInt(address), device)
    end
end

"""
    GGM.place(array) -> GGM.Place

Where `array` lies; nothing for an array type of which this package does not know it. A method makes an array type known:

    GGM.place(a::MyDeviceArray) = GGM.Place(:cuda, UInt(pointer(a)), device_ordinal(a))

Its `eltype`, `size` and `strides` have to be those of its memory. Only name a type whose memory really lies there: a
wrong one crashes. Views, `reshape` and `reinterpret` of a known array are known.
"""
place(::Any) = nothing
place(a::Array) = Place(:host, pointer(a))
place(a::Union{Base.ReshapedArray,Base.ReinterpretArray}) = place(parent(a))
function place(a::SubArray)
    p, indices = parent(a), parentindices(a)
    whole = place(p)
    (whole === nothing || !applicable(strides, p)) && return nothing
    offset = 0
    for (axis, (index, step)) in enumerate(zip(indices, strides(p)))
        index isa Union{Integer,AbstractRange} || return nothing
        isempty(index) || (offset += (first(index) - first(axes(p, axis))) * step)
    end
    return Place(whole.memory, whole.address + offset * sizeof(eltype(a)), whole.device)
end

"""
    GGM.current_stream(array) -> stream or nothing

The stream that the work on `array` goes to when a call names none; nothing: the array does not tell, and the default stream is
taken. For an array type with a method the package also makes workspaces, by `similar(array, UInt8, bytes)`: name it only where memory
is freed in the order of that stream.
"""
current_stream(::Any) = nothing

"""
    GGM.stream_address(stream) -> Ptr{Cvoid}

The `cudaStream_t` of a stream: of a pointer, a number, or an object of a type with a method; NULL for nothing.
"""
stream_address(::Nothing) = C_NULL
stream_address(stream::Ptr) = Ptr{Cvoid}(stream)
stream_address(stream::Integer) = Ptr{Cvoid}(UInt(stream))
stream_address(stream) = throw(ArgumentError("stream is a $(typeof(stream)), of which GGM.stream_address is not known"))

"The array that owns the memory of `a`."
owner(a) = a
owner(a::Union{Base.ReshapedArray,Base.ReinterpretArray,SubArray}) = owner(parent(a))

"""
    GGM.shared(array, count)

`array` as if there were `count` of it, along a new last axis: one matrix for all groups, given where the operation takes a weight, a
bias or another input with groups. It is read only.
"""
shared(array::AbstractArray{T,N}, count::Integer) where {T,N} = Shared{T,N + 1,typeof(array)}(array, count)

struct Shared{T,N,A<:AbstractArray{T}} <: AbstractArray{T,N}
    array::A
    count::Int
end

Base.size(a::Shared) = (size(a.array)..., a.count)
Base.strides(a::Shared) = (strides(a.array)..., 0)
Base.parent(a::Shared) = a.array
Base.getindex(a::Shared{T,N}, i::Vararg{Int,N}) where {T,N} = (@boundscheck checkbounds(a, i...); a.array[Base.front(i)...])
place(a::Shared) = place(a.array)
owner(a::Shared) = owner(a.array)

"A described argument: what the library and the checks need of an array. It keeps the array."
struct Described
    array::Any
    place::Place
    eltype::Type
    size::Tuple{Vararg{Int}}
    strides::Tuple{Vararg{Int}}
end

function describe(name::Symbol, array)
    array isa AbstractArray || throw(ArgumentError("$name is a $(typeof(array)), which is no array"))
    location = place(array)
    location === nothing && throw(ArgumentError(
        "$name is a $(typeof(array)); GGM does not know where such an array lies (see GGM.place), so copy it or define that"))
    applicable(strides, array) || throw(ArgumentError("$name is a $(typeof(array)), which has no strides; copy it"))
    return Described(array, location, eltype(array), size(array), strides(array))
end

packed_strides(size::Tuple) = ntuple(axis -> reduce(*, size[1:axis-1]; init=1), length(size))

"Whether the elements follow each other. An axis of length 1 has no stride that matters."
function ispacked(a::Described)
    any(iszero, a.size) && return true
    return all(length == 1 || stride == step for (length, stride, step) in zip(a.size, a.strides, packed_strides(a.size)))
end
