"""
ggm.h as it is: every constant, struct and function under the name that it has there, and nothing more.

    handle = Ref{Ptr{Cvoid}}()
    params = Ref(Raw.ggm_create_params_t(backend = Raw.GGM_BACKEND_HOST))
    status = Raw.ggm_create(params, handle)

Functions return a status and never throw for one. A struct is given as a `Ref`. The library is opened at the first use of a function
(see [`load`](@ref)); constants and structs need none. Pointers are addresses: the caller keeps memory and callbacks alive.
"""
module Raw

import Libdl

include("constants.jl")
include("structs.jl")
include("functions.jl")
include("library.jl")

end
