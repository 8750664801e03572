# Stands for CUDA.jl: of it only what ext/GGMCUDAExt.jl uses, over memory of the host.
module CUDA

primitive type CuPtr{T} 64 end

struct CuArray{T,N} <: AbstractArray{T,N}
    array::Array{T,N}
    device::Int
end
Base.size(a::CuArray) = size(a.array)
Base.strides(a::CuArray) = strides(a.array)
Base.pointer(a::CuArray{T}) where {T} = reinterpret(CuPtr{T}, UInt(pointer(a.array)))
function Base.similar(a::CuArray, ::Type{T}, dims::Dims) where {T}
    memory = Ref{Ptr{T}}(C_NULL)  # aligned as memory of a device is
    @assert 0 == ccall(:posix_memalign, Cint, (Ptr{Ptr{T}}, Csize_t, Csize_t), memory, 256, max(sizeof(T) * prod(dims), 1))
    return CuArray(unsafe_wrap(Array, memory[], dims; own=true), a.device)
end

struct CuDevice
    handle::Int32
end
device(a::CuArray) = CuDevice(a.device)
deviceid(device::CuDevice) = Int(device.handle)

struct CuStream
    handle::Ptr{UInt8}
end
const CURRENT = Ref(CuStream(Ptr{UInt8}(16)))
stream() = CURRENT[]

end
