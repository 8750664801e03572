# The structs of ggm.h, field by field under the header's names. A test compares size, offset and type of every field with the
# header and with what a C compiler makes of it. What a field means is said in ggm.h alone.

"""
    @cstruct name begin field::Type; (field, field)::Type ... end

Defines an immutable struct with the layout of C, and a constructor by keywords that starts as the GGM_..._INIT macro does: zeros and
the struct's size.
"""
macro cstruct(name, block)
    fields = Expr[]
    for entry in block.args
        entry isa LineNumberNode && continue
        names, type = entry.args
        for field in (names isa Symbol ? (names,) : names.args)
            push!(fields, Expr(:(::), field, type))
        end
    end
    return esc(quote
        struct $name <: CStruct
            $(fields...)
        end
        $name(; fields...) = filled($name, Dict{Symbol,Any}(fields))
        push!(STRUCTS, $name)
    end)
end

"A struct of ggm.h. Made by keywords; fields that are not given are zero, `struct_size` is the struct's size."
abstract type CStruct end

const STRUCTS = DataType[]

function filled(::Type{S}, given::Dict{Symbol,Any}) where {S<:CStruct}
    for name in keys(given)
        name in fieldnames(S) || throw(ArgumentError("$(nameof(S)) has no field $name"))
    end
    return S((filled_field(S, name, fieldtype(S, name), given) for name in fieldnames(S))...)
end

function filled_field(::Type{S}, name::Symbol, ::Type{F}, given::Dict{Symbol,Any}) where {S,F}
    haskey(given, name) && return converted(name, F, given[name])
    name === :struct_size && return F(sizeof(S))
    return F <: Ptr ? F(0) : zero(F)
end

function converted(name::Symbol, ::Type{F}, value) where {F<:Integer}
    value isa Integer || throw(ArgumentError("$name = $(repr(value)); it must be an integer"))
    typemin(F) <= value <= typemax(F) || throw(ArgumentError("$name = $value; it must be in $(typemin(F)) .. $(typemax(F))"))
    return F(value)
end
converted(::Symbol, ::Type{Float64}, value) = Float64(value)
converted(::Symbol, ::Type{F}, value::Union{Ptr,UInt}) where {F<:Ptr} = F(UInt(value))

function Base.show(io::IO, value::CStruct)
    given = [name for name in fieldnames(typeof(value))[2:end] if !(getfield(value, name) in (0, C_NULL))]
    print(io, nameof(typeof(value)), "(", join(("$name = $(getfield(value, name))" for name in given), ", "), ")")
end

@cstruct ggm_create_params_t begin
    (struct_size, flags)::UInt32
    (backend, device, kernel_family, log_level, host_threads, reserved)::Int32
    log::Ptr{Cvoid}         # void log(void* user, int32_t level, const char* message), made by @cfunction
    log_user::Ptr{Cvoid}
    allocate::Ptr{Cvoid}    # void* allocate(void* user, size_t bytes, size_t alignment)
    deallocate::Ptr{Cvoid}  # void deallocate(void* user, void* pointer, size_t bytes)
    allocator_user::Ptr{Cvoid}
end

@cstruct ggm_info_t begin
    struct_size::UInt32
    (backend, device, kernel_family, compute_capability, multiprocessors, shared_memory_bytes, workspace_alignment)::Int32
end

@cstruct ggm_route_problem_t begin
    (struct_size, flags)::UInt32
    (tokens, top_k, experts, experts_total, first_expert, max_rows, ids_ld)::Int64
    (id_type, sm_limit)::Int32
end

@cstruct ggm_route_tensors_t begin
    (struct_size, reserved)::UInt32
    ids::Ptr{Cvoid}
    (expert_map, num_tokens)::Ptr{Int32}
    faults::Ptr{UInt32}
    (group_offsets, row_assignment, assignment_row)::Ptr{Int32}
end

@cstruct ggm_permute_problem_t begin
    (struct_size, flags)::UInt32
    (tokens, top_k, experts, max_rows, features, token_ld, row_ld, routing_weights_ld)::Int64
    (token_type, row_type, routing_weight_type, sm_limit)::Int32
end

@cstruct ggm_permute_tensors_t begin
    (struct_size, reserved)::UInt32
    (group_offsets, row_assignment, assignment_row)::Ptr{Int32}
    (routing_weights, input, output)::Ptr{Cvoid}
    num_tokens::Ptr{Int32}
    faults::Ptr{UInt32}
end

@cstruct ggm_unpermute_backward_tensors_t begin
    (struct_size, reserved)::UInt32
    (group_offsets, row_assignment, assignment_row)::Ptr{Int32}
    (routing_weights, rows, dy, d_rows)::Ptr{Cvoid}
    d_routing_weights::Ptr{Float32}
    num_tokens::Ptr{Int32}
    faults::Ptr{UInt32}
end

@cstruct ggm_grouped_gemm_problem_t begin
    (struct_size, flags)::UInt32
    (groups, m, n, k, lda, ldb, ldc, ldd, stride_a, stride_b, stride_c, stride_d)::Int64
    (alpha, beta)::Float64
    (layout, group_form, index_type, b_order, a_type, b_type, c_type, d_type, compute_type, sm_limit)::Int32
end

@cstruct ggm_grouped_gemm_tensors_t begin
    (struct_size, reserved)::UInt32
    (group_sizes, group_offsets, row_group, a, b, c, d)::Ptr{Cvoid}
    faults::Ptr{UInt32}
end

@cstruct ggm_grouped_gemm_array_problem_t begin
    (struct_size, flags)::UInt32
    (groups, max_m, max_n, max_k)::Int64
    (alpha, beta)::Float64
    (index_type, a_order, b_order, a_type, b_type, c_type, d_type, compute_type, min_alignment, sm_limit)::Int32
end

@cstruct ggm_grouped_gemm_array_tensors_t begin
    (struct_size, reserved)::UInt32
    (m, n, k, lda, ldb, ldc, ldd)::Ptr{Cvoid}
    (a, b, c, d)::Ptr{Ptr{Cvoid}}
    faults::Ptr{UInt32}
end

@cstruct ggm_moe_problem_t begin
    (struct_size, flags)::UInt32
    (tokens, top_k, experts, experts_total, first_expert, max_rows, ids_ld, routing_weights_ld, in_features, out_features,
     x_ld, y_ld, weight_ld, weight_stride, bias_stride, dy_ld, dx_ld, d_weight_ld, d_weight_stride, d_bias_stride)::Int64
    (id_type, routing_weight_type, x_type, weight_type, bias_type, y_type, product_type, compute_type, weight_order, input_rows,
     output_rows, combine, sm_limit, gradients, dy_type, dx_type, d_weight_type, d_bias_type)::Int32
end

@cstruct ggm_moe_forward_tensors_t begin
    (struct_size, reserved)::UInt32
    ids::Ptr{Cvoid}
    (expert_map, group_offsets, row_assignment, assignment_row)::Ptr{Int32}
    (routing_weights, x, weight, bias, y)::Ptr{Cvoid}
    num_tokens::Ptr{Int32}
    faults::Ptr{UInt32}
end

@cstruct ggm_moe_backward_tensors_t begin
    (struct_size, reserved)::UInt32
    ids::Ptr{Cvoid}
    (expert_map, group_offsets, row_assignment, assignment_row)::Ptr{Int32}
    (routing_weights, x, weight, bias, dy, dx, d_weight, d_bias)::Ptr{Cvoid}
    d_routing_weights::Ptr{Float32}
    num_tokens::Ptr{Int32}
    faults::Ptr{UInt32}
end
