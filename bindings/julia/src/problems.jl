# Problems: the sizes, types and orders of an operation without arrays, for sizing workspaces ahead and for asking what is
# supported. The operations make theirs from the arrays that they get.

const PROBLEM_TEXT = """
Fields are those of the struct in ggm.h, which says what each means; what is not given is 0, the default. Choices are taken by
name (`:NK`, `:masked`) or number, element types also as Julia's (`Float32`, `GGM.BFloat16`, `Int32`)."""

function numbered(kind::Type, fields::Dict{Symbol,Any})
    for (name, value) in fields
        choices = choices_of(name)
        choices === nothing || (fields[name] = choice(choices, value, name))
    end
    return Raw.filled(kind, fields)
end

for (name, kind, text) in (
    (:RouteProblem, :ggm_route_problem_t, "of `route!`. Required: top_k, experts, id_type."),
    (:PermuteProblem, :ggm_permute_problem_t, "of `permute!`, `unpermute!` and `unpermute_backward!`. Required: top_k, experts, token_type."),
    (:GroupedGemmProblem, :ggm_grouped_gemm_problem_t,
     "of `grouped_gemm!`. Required: a_type, b_type, and b_order unless the layout is `:variable_k`."),
    (:GroupedGemmArrayProblem, :ggm_grouped_gemm_array_problem_t,
     "of `grouped_gemm_array!`. Required: a_order, b_order, a_type, b_type."),
    (:MoeProblem, :ggm_moe_problem_t,
     "of `moe_forward!` and `moe_backward!`. Required: top_k, experts, x_type, weight_type, weight_order; for the backward also gradients."),
)
    @eval begin
        @doc $("    GGM.$name(; fields...) -> Raw.$kind\n\nA problem $text\n$PROBLEM_TEXT") $name
        $name(; fields...) = numbered(Raw.$kind, Dict{Symbol,Any}(fields))
    end
end

function workspace_size(handle::Handle, query, problem::Raw.CStruct)
    bytes = Ref{Csize_t}(0)
    inside(pointer -> check(query(pointer, Ref(problem), bytes)), handle)
    return Int(bytes[])
end

for (operation, kind) in (
    (:route, :ggm_route_problem_t), (:permute, :ggm_permute_problem_t), (:unpermute, :ggm_permute_problem_t),
    (:unpermute_backward, :ggm_permute_problem_t), (:grouped_gemm, :ggm_grouped_gemm_problem_t),
    (:grouped_gemm_array, :ggm_grouped_gemm_array_problem_t), (:moe_forward, :ggm_moe_problem_t), (:moe_backward, :ggm_moe_problem_t),
)
    name, query = Symbol(operation, :_workspace_size), Symbol(:ggm_, operation, :_workspace_size)
    @eval begin
        @doc $("""    GGM.$name(handle, problem) -> Int

               Bytes of workspace that `$(operation)!` needs for a problem, 0 or more: enough for every routing and for fewer tokens and rows. It
               validates the whole problem: what it accepts the call accepts. Throws [`Error`](@ref).""") $name
        $name(handle::Handle, problem::Raw.$kind) = workspace_size(handle, Raw.$query, problem)
    end
end
