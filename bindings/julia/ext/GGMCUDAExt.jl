# What GGM has to know of CUDA.jl: where a CuArray lies, and which stream the current task works on. Julia 1.9 and newer load it
# when both packages are there.
module GGMCUDAExt

using CUDA: CUDA, CuArray, CuStream
using GGM

# pointer orders the array behind the task's stream, and makes its device current on this thread.
GGM.place(a::CuArray) = GGM.Place(:cuda, reinterpret(UInt, pointer(a)), CUDA.deviceid(CUDA.device(a)))
GGM.current_stream(::CuArray) = CUDA.stream()
GGM.stream_address(stream::CuStream) = Ptr{Cvoid}(stream.handle)

end
