# The choices of ggm.h by name. Everywhere one is taken, its Symbol (:host, :two_step, :NK; case does not matter) and the plain
# number are taken.

struct Choices
    prefix::String
    members::Vector{Pair{Symbol,Int32}}  # in the order of the header's values
end

function Choices(prefix::String)
    found = [String(name) for name in names(Raw; all=true) if startswith(String(name), prefix)]
    members = [Symbol(lowercase(name[length(prefix)+1:end])) => Int32(getfield(Raw, Symbol(name))) for name in found]
    return Choices(prefix, sort(members; by=last))
end

const BACKENDS = Choices("GGM_BACKEND_")
const KERNELS = Choices("GGM_KERNELS_")
const LOG_LEVELS = Choices("GGM_LOG_")
const TYPES = Choices("GGM_TYPE_")
const INDICES = Choices("GGM_INDEX_")
const ORDERS = Choices("GGM_ORDER_")
const COMPUTES = Choices("GGM_COMPUTE_")
const LAYOUTS = Choices("GGM_LAYOUT_")
const GROUP_FORMS = Choices("GGM_GROUPS_")
const COMBINES = Choices("GGM_COMBINE_")
const ROWS = Choices("GGM_ROWS_")

# Fields of problems that hold a choice; of the others those that end in _type hold an element type.
const CHOICE_FIELDS = Dict(
    :layout => LAYOUTS, :group_form => GROUP_FORMS, :combine => COMBINES, :compute_type => COMPUTES, :input_rows => ROWS,
    :output_rows => ROWS, :id_type => INDICES, :index_type => INDICES, :a_order => ORDERS, :b_order => ORDERS, :weight_order => ORDERS)

choices_of(field::Symbol) = get(CHOICE_FIELDS, field, endswith(String(field), "_type") ? TYPES : nothing)

"""
The number of a choice. An unknown number goes on to the library, whose refusal says more than this package could.
"""
choice(::Choices, value::Integer, ::Symbol) = value
choice(::Choices, ::Nothing, ::Symbol) = Int32(0)
function choice(choices::Choices, value::Symbol, argument::Symbol)
    wanted = Symbol(lowercase(String(value)))
    for (name, number) in choices.members
        name === wanted && return number
    end
    throw(ArgumentError("$argument = :$value; known are $(join((":$name" for (name, _) in choices.members), ", "))"))
end
function choice(choices::Choices, value::Type, argument::Symbol)
    number = choices === TYPES ? data_type(value) : choices === INDICES ? index_type(value) : Int32(0)
    number == 0 && throw(ArgumentError("$argument = $value; it must be $(choices === INDICES ? INDEX_TEXT : TYPE_TEXT)"))
    return number
end
choice(::Choices, value, argument::Symbol) = throw(ArgumentError("$argument = $(repr(value)); a Symbol or a number is taken"))

"The name of a number, or the number itself: a newer library may know more."
function named(choices::Choices, number::Integer)
    for (name, known) in choices.members
        known == number && return name
    end
    return number
end

const TYPE_TEXT = "Float32, GGM.BFloat16, Float16 or Float64"
const INDEX_TEXT = "Int32 or Int64"

"""
    GGM.data_type(T) -> Int32

The `Raw.GGM_TYPE_*` of an element type, 0 for one that the library does not know. A method for another bfloat16 makes its arrays
known: `GGM.data_type(::Type{BFloat16s.BFloat16}) = GGM.Raw.GGM_TYPE_BFLOAT16`.
"""
data_type(::Type) = Raw.GGM_TYPE_DEFAULT
data_type(::Type{Float32}) = Raw.GGM_TYPE_FLOAT32
data_type(::Type{BFloat16}) = Raw.GGM_TYPE_BFLOAT16
data_type(::Type{Float16}) = Raw.GGM_TYPE_FLOAT16
data_type(::Type{Float64}) = Raw.GGM_TYPE_FLOAT64
@static if isdefined(Core, :BFloat16)
    data_type(::Type{Core.BFloat16}) = Raw.GGM_TYPE_BFLOAT16
end

index_type(::Type) = Raw.GGM_INDEX_DEFAULT
index_type(::Type{Int32}) = Raw.GGM_INDEX_INT32
index_type(::Type{Int64}) = Raw.GGM_INDEX_INT64

const FAULT_NAMES = Tuple(Symbol(lowercase(String(name)[11:end])) => Int(getfield(Raw, name)) + 1
                          for name in sort(names(Raw; all=true); by=String)
                          if startswith(String(name), "GGM_FAULT_") && name !== :GGM_FAULT_WORDS)

"""
    GGM.fault_counts(faults) -> NamedTuple

The named counts of an array `faults`: `bad_id`, `bad_routing`, `misaligned_group`, `rows_dropped`, `size_clamped`. It copies a
device array to the host, and so waits for it.
"""
function fault_counts(faults::AbstractArray)
    counts = Array(faults)
    return NamedTuple{Tuple(first.(FAULT_NAMES))}(Tuple(Int(counts[last(entry)]) for entry in FAULT_NAMES))
end
