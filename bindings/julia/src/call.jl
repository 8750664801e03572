# One call being made: arrays are checked against each other and become the fields of the problem and of the tensors. The library
# sees addresses, so that a wrong shape would read or write other memory: here every size of a problem comes from the arrays.

"An expected length of an axis: that of the size `name`, plus `more`."
struct Dim
    name::Symbol
    more::Int
end
Dim(name::Symbol) = Dim(name, 0)
Base.show(io::IO, dim::Dim) = print(io, dim.name, dim.more == 0 ? "" : "+$(dim.more)")

struct Call
    handle::Handle
    given::Dict{Symbol,Any}              # {argument => array}, without those that are nothing
    stream::Any                          # as the caller gave it
    sizes::Dict{Symbol,Tuple{Int,Symbol}}  # {size or stride => (value, the argument that told it)}
    axes::Dict{Symbol,Symbol}            # {size => an array that has such an axis}
    checked::Dict{Symbol,Described}
end

"""
    Call(handle, stream, arguments, routing = nothing)

arguments: every array that the call may take, by name; those that are nothing were not given.
"""
function Call(handle::Handle, stream, arguments::Vector{Pair{Symbol,Any}}, routing::Union{Nothing,Routing}=nothing)
    call = Call(handle, Dict(), stream, Dict(), Dict(), Dict())
    for (name, array) in arguments
        array === nothing || (call.given[name] = array)
    end
    routing === nothing || merge!(call.given, Dict{Symbol,Any}(name => getfield(routing, name) for name in fieldnames(Routing)))
    return call
end

# ---- sizes -----------------------------------------------------------------------------------------------------------------

"Sets a size, or compares it with what another argument told."
function tell!(call::Call, size::Symbol, value::Integer, source::Symbol)
    old, first = get!(call.sizes, size, (Int(value), source))
    old == value || throw(DimensionMismatch("$source tells $size = $value, but $first tells $old"))
    return
end

"A size given by keyword; nothing: not given."
option!(call::Call, size::Symbol, value) = value === nothing || tell!(call, size, value, Symbol("the keyword ", size))

told(call::Call, size::Symbol) = get(call.sizes, size, (0, :nothing))

"Refuses a call without those arguments. needed_by: the argument that wants them, where they are not always needed."
function require(call::Call, names::Symbol...; needed_by=nothing)
    for name in names
        haskey(call.given, name) || throw(ArgumentError("$name is missing" * (needed_by === nothing ? "" : "; $needed_by needs it")))
    end
end

# ---- arrays ----------------------------------------------------------------------------------------------------------------

const FLOAT, INDEX = :float, :index

"""
Checks the argument `name`, and returns the number of its element type; 0 when it is not given.

    dims      the size of each axis by name, in Julia's order; a Dim, or a number
    kind      FLOAT, INDEX, or a tuple of Julia types
    steps     names of the strides of the axes but the first; nothing where the array must be packed
    group     whether the last axis may be `shared`
"""
function array!(call::Call, name::Symbol, dims::Tuple, kind; steps::Tuple=(), group::Bool=false, out::Bool=false)
    haskey(call.given, name) || return Int32(0)
    array = describe(name, call.given[name])
    number = element_type(name, array.eltype, kind)
    check_place(name, array, call.handle)
    out && owner_is_shared(array.array) && throw(ArgumentError("$name is written, but the array is shared"))
    suits(dim, n) = dim isa Int ? dim == n : dim isa Dim ? n >= dim.more : true
    fits = length(array.size) == length(dims) && all(suits(dim, n) for (dim, n) in zip(dims, array.size))
    fits || throw(DimensionMismatch("$name has size $(array.size); it must be ($(join(dims, ", ")))"))
    for (dim, length) in zip(dims, array.size)
        dim isa Symbol && (tell!(call, dim, length, name); get!(call.axes, dim, name))
        dim isa Dim && tell!(call, dim.name, length - dim.more, name)
    end
    check_strides!(call, name, array, isempty(steps) ? ntuple(_ -> nothing, max(length(dims) - 1, 0)) : steps, group)
    call.checked[name] = array
    return number
end

owner_is_shared(array) = array isa Shared || (array isa Union{SubArray,Base.ReshapedArray,Base.ReinterpretArray} && owner_is_shared(parent(array)))

function element_type(name::Symbol, T::Type, kind)
    number = kind === FLOAT ? data_type(T) : kind === INDEX ? index_type(T) : Int32(T in kind)
    number == 0 || return number
    kind === FLOAT && T === UInt16 &&
        throw(ArgumentError("$name holds UInt16; if those are the bits of bfloat16 give reinterpret(GGM.BFloat16, $name)"))
    wanted = kind === FLOAT ? TYPE_TEXT : kind === INDEX ? INDEX_TEXT : join(kind, " or ")
    throw(ArgumentError("$name holds $T; it must hold $wanted"))
end

function check_place(name::Symbol, array::Described, handle::Handle)
    memory = on_host(handle) ? :host : :cuda
    array.place.memory === memory ||
        throw(ArgumentError("$name lies in $(array.place.memory) memory; this handle works on $memory memory"))
    device = array.place.device
    memory === :host || device === nothing || device == handle.info.device ||
        throw(ArgumentError("$name lies on the CUDA device $device; the handle is of device $(handle.info.device)"))
end

"Axes of one element, and arrays of none, have no stride that matters; 0 is told for them, which means packed."
function check_strides!(call::Call, name::Symbol, array::Described, steps::Tuple, group::Bool)
    any(iszero, array.size) && return
    isempty(array.size) && return
    array.size[1] > 1 && array.strides[1] != 1 &&
        throw(ArgumentError("$name has strides $(array.strides); the elements of a column must follow each other"))
    packed = packed_strides(array.size)
    for axis in 2:length(array.size)
        array.size[axis] == 1 && continue
        stride, field = array.strides[axis], steps[axis-1]
        if field === nothing
            stride == packed[axis] || throw(ArgumentError("$name has strides $(array.strides); it must be packed"))
        elseif stride == 0 && group && axis == length(array.size)
            tell!(call, field, GGM_STRIDE_SHARED, name)
        elseif stride <= 0
            throw(ArgumentError("$name has the stride $stride on axis $axis, which cannot be told to the library"))
        else
            tell!(call, field, stride, name)
        end
    end
end

vector!(call::Call, name::Symbol, dim, kind; out::Bool=false) = array!(call, name, (dim,), kind; out=out)

function extras!(call::Call)
    if haskey(call.given, :num_tokens)
        dims = ndims(describe(:num_tokens, call.given[:num_tokens]).array) == 0 ? () : (1,)
        array!(call, :num_tokens, dims, (Int32,))
    end
    vector!(call, :faults, Int(GGM_FAULT_WORDS), (UInt32,); out=true)
end

function expert_map!(call::Call, experts_total)
    option!(call, :experts_total, experts_total)
    vector!(call, :expert_map, :experts_total, (Int32,))
    haskey(call.given, :expert_map) && told(call, :experts_total)[1] == 0 &&
        throw(DimensionMismatch("expert_map has no entries; to the library 0 would mean first_expert + experts"))
    return
end

"The routing arrays, of which assignment_row tells tokens and top_k."
function routing!(call::Call; out::Bool=false)
    vector!(call, :group_offsets, Dim(:experts, 1), (Int32,); out=out)
    vector!(call, :row_assignment, :max_rows, (Int32,); out=out)
    array!(call, :assignment_row, (:top_k, :tokens), (Int32,); out=out)
end

"0 rows would mean all of tokens*top_k to the library, and more than that cannot be filled."
function check_max_rows(call::Call)
    haskey(call.axes, :max_rows) || return
    rows, source = told(call, :max_rows)[1], call.axes[:max_rows]
    all = told(call, :tokens)[1] * told(call, :top_k)[1]
    rows > all && throw(DimensionMismatch("$source has $rows rows; more than tokens*top_k = $all cannot be filled, so give a view"))
    rows == 0 && all > 0 && throw(DimensionMismatch("$source has no rows; 0 would mean all of tokens*top_k = $all"))
end

# ---- the call --------------------------------------------------------------------------------------------------------------

"The stream of a call: the one given, else the one that the arrays tell."
function stream_of(call::Call)
    call.stream === nothing || return stream_address(call.stream)
    on_host(call.handle) && return C_NULL
    found, source = nothing, :nothing
    for (name, array) in call.given
        stream = current_stream(owner(array))
        stream === nothing && continue
        address = stream_address(stream)
        found === nothing || found == address || throw(ArgumentError(
            "$name is of the stream $address, $source of $found; make one wait for the other and give stream ="))
        found, source = address, name
    end
    return something(found, C_NULL)
end

"""
Makes the call. kind: struct of the problem, which gets the sizes and strides that were told, and `fields`; query, operation and
tensors: of the operation. The tensors get the address of each array under the name of its argument.
"""
function run!(call::Call, kind, query, operation, tensors, workspace; fields...)
    given = Dict{Symbol,Any}(size => value for (size, (value, _)) in call.sizes)
    problem = numbered(kind, merge!(given, Dict{Symbol,Any}(fields)))
    bytes = workspace_size(call.handle, query, problem)
    stream = stream_of(call)
    scratch = take_workspace(workspace, bytes, call.handle, values(call.given), call.stream)
    filled = Raw.filled(tensors, Dict{Symbol,Any}(name => array.place.address for (name, array) in call.checked))
    address = scratch === nothing ? C_NULL : Ptr{Cvoid}(scratch.place.address)
    available = scratch === nothing ? 0 : prod(scratch.size) * sizeof(scratch.eltype)
    GC.@preserve call scratch begin
        inside(pointer -> check(operation(pointer, Ref(problem), Ref(filled), address, available, stream)), call.handle)
    end
    return
end

addflag(flags, bit, wanted::Bool) = wanted ? flags | bit : flags
