# The prototypes of ggm.h. A test compares every one with the header.

const ggm_status_t = Int32
const ggm_handle_t = Ptr{Cvoid}
const ggm_stream_t = Ptr{Cvoid}

# {function => (type of the result, [types of the parameters])}
const PROTOTYPES = Dict{Symbol,Tuple{DataType,Vector{DataType}}}()
# {function => its address in the loaded library}
const ADDRESSES = Dict{Symbol,Base.RefValue{Ptr{Cvoid}}}()

"""
    @prototype name(parameter::Type, ...)::Result

Declares a function of ggm.h: a Julia function of that name calls it in the loaded library, and loads one where there is none yet.
"""
macro prototype(signature)
    call, result = signature.args
    name, parameters = call.args[1], call.args[2:end]
    names, types = [p.args[1] for p in parameters], [p.args[2] for p in parameters]
    address = gensym(name)
    return esc(quote
        const $address = Ref{Ptr{Cvoid}}(C_NULL)
        ADDRESSES[$(QuoteNode(name))] = $address
        PROTOTYPES[$(QuoteNode(name))] = ($result, DataType[$(types...)])
        $name($(names...)) = ccall(loaded($address), $result, ($(types...),), $(names...))
    end)
end

@prototype ggm_version()::Int32
@prototype ggm_build_info()::Cstring
@prototype ggm_status_string(status::ggm_status_t)::Cstring
@prototype ggm_last_error()::Cstring
@prototype ggm_copy_last_error(buffer::Ptr{UInt8}, capacity::Csize_t)::Csize_t
@prototype ggm_create(params::Ptr{ggm_create_params_t}, handle::Ptr{ggm_handle_t})::ggm_status_t
@prototype ggm_destroy(handle::ggm_handle_t)::ggm_status_t
@prototype ggm_get_info(handle::ggm_handle_t, info::Ptr{ggm_info_t})::ggm_status_t

# (operation, problem, tensors)
const OPERATIONS = (
    (:ggm_route, :ggm_route_problem_t, :ggm_route_tensors_t),
    (:ggm_permute, :ggm_permute_problem_t, :ggm_permute_tensors_t),
    (:ggm_unpermute, :ggm_permute_problem_t, :ggm_permute_tensors_t),
    (:ggm_unpermute_backward, :ggm_permute_problem_t, :ggm_unpermute_backward_tensors_t),
    (:ggm_grouped_gemm, :ggm_grouped_gemm_problem_t, :ggm_grouped_gemm_tensors_t),
    (:ggm_grouped_gemm_array, :ggm_grouped_gemm_array_problem_t, :ggm_grouped_gemm_array_tensors_t),
    (:ggm_moe_forward, :ggm_moe_problem_t, :ggm_moe_forward_tensors_t),
    (:ggm_moe_backward, :ggm_moe_problem_t, :ggm_moe_backward_tensors_t),
)

# Each operation is two functions.
for (operation, problem, tensors) in OPERATIONS
    @eval begin
        @prototype $(Symbol(operation, :_workspace_size))(handle::ggm_handle_t, problem::Ptr{$problem},
                                                          bytes::Ptr{Csize_t})::ggm_status_t
        @prototype $operation(handle::ggm_handle_t, problem::Ptr{$problem}, tensors::Ptr{$tensors}, workspace::Ptr{Cvoid},
                              workspace_bytes::Csize_t, stream::ggm_stream_t)::ggm_status_t
    end
end
