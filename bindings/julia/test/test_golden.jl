# Every call of tests/golden/golden.txt through GGM.Raw on the host backend; tests/golden/README.md has the format of the file. Structs are
# filled by the names of their fields, so a call needs no code here.
module Golden

using Test
using GGM
using GGM: Raw

const ROOT = normpath(joinpath(@__DIR__, "..", "..", ".."))
const FILE = joinpath(ROOT, "tests", "golden", "golden.txt")
const TYPES = Dict("float32" => Float32, "bfloat16" => GGM.BFloat16, "float16" => Float16, "float64" => Float64, "int32" => Int32,
                   "int64" => Int64, "uint32" => UInt32)
const POISON = 99  # what outputs hold before a call; no result is this, in any type

# {operation => (query, call, problem, tensors)}
const OPERATIONS = Dict(name => (getfield(Raw, Symbol(name, :_workspace_size)), getfield(Raw, name), getfield(Raw, problem), getfield(Raw, tensors))
                        for (name, problem, tensors) in Raw.OPERATIONS)

struct Numbers
    wanted::Bool
    field::String
    type::DataType
    numbers::Vector{Int}
end

struct Call
    title::String
    operation::Symbol
    problem::Dict{Symbol,Any}
    arrays::Vector{Numbers}
end

function read_calls(path)
    calls = Call[]
    title, operation, problem, arrays = "", :none, Dict{Symbol,Any}(), Numbers[]
    for line in eachline(path)
        words = split(line, ' ')
        if words[1] == "case"
            title, problem, arrays = line[6:end], Dict{Symbol,Any}(), Numbers[]
        elseif words[1] == "operation"
            operation = Symbol(:ggm_, words[2])
        elseif words[1] == "set"
            problem[Symbol(words[2])] = parse(Int, words[3])
        elseif words[1] in ("in", "out")
            numbers = parse.(Int, words[5:end])
            length(numbers) == prod(parse.(Int, split(words[4], 'x'))) || error("the shape is not that of the numbers: $line")
            push!(arrays, Numbers(words[1] == "out", words[2], TYPES[words[3]], numbers))
        elseif words[1] == "end"
            push!(calls, Call(title, operation, problem, arrays))
            title = ""
        elseif !isempty(words[1]) && !startswith(words[1], "#")
            error("unknown word: $line")
        end
    end
    isempty(title) || error("$path ends inside of $title")
    return calls
end

function encode(T, numbers)
    made = T.(numbers)
    Float64.(made) == numbers || error("a number of the file is not exact in $T")
    return made
end

last_error() = unsafe_string(Raw.ggm_last_error())

"What is not as the file has it; nothing when all is."
function difference(pointer, call::Call)
    query, operation, problem_type, tensors_type = OPERATIONS[call.operation]
    memory, lists, fields = Dict{String,Vector}(), Dict{Symbol,Vector{UInt}}(), Dict{Symbol,Any}()
    for array in call.arrays
        array.wanted && haskey(memory, array.field) && continue
        made = memory[array.field] = encode(array.type, array.wanted ? fill(POISON, length(array.numbers)) : array.numbers)
        parts = split(array.field, '.')
        if length(parts) == 1
            fields[Symbol(array.field)] = UInt(Base.pointer(made))
        else # a.0, a.1, ... are matrices; a is the array of their addresses
            list = get!(lists, Symbol(parts[1]), UInt[])
            parts[2] == string(length(list)) || error("$(array.field) is not the next matrix")
            push!(list, UInt(Base.pointer(made)))
        end
    end
    for (name, list) in lists
        fields[name] = UInt(Base.pointer(list))
    end
    problem, tensors, bytes = Ref(problem_type(; call.problem...)), Ref(tensors_type(; fields...)), Ref{Csize_t}(0)
    query(pointer, problem, bytes) == 0 || return last_error()
    workspace = GGM.workspace(bytes[])
    GC.@preserve memory lists workspace begin
        operation(pointer, problem, tensors, Ptr{Cvoid}(Base.pointer(workspace)), bytes[], C_NULL) == 0 || return last_error()
    end
    any(array -> array.wanted, call.arrays) || return "the call has no result"
    for array in call.arrays
        array.wanted || continue
        for (i, (got, number)) in enumerate(zip(memory[array.field], array.numbers))
            Float64(got) == number || return "$(array.field)[$(i - 1)] is $(Float64(got)); it must be $number"
        end
    end
    return nothing
end

"The call with the last number of its last result changed."
function changed(call::Call)
    arrays = copy(call.arrays)
    i = findlast(array -> array.wanted, arrays)
    old = arrays[i]
    arrays[i] = Numbers(true, old.field, old.type, [old.numbers[1:end-1]; old.numbers[end] + 1])
    return Call(call.title, call.operation, call.problem, arrays), old
end

function run_file(calls)
    @test Set(call.operation for call in calls) == Set(keys(OPERATIONS))
    GGM.Handle(:host; host_threads = 2) do handle
        GGM.inside(handle) do pointer
            @testset "every call gives what the file says" begin
                for call in calls
                    found = difference(pointer, call)
                    found === nothing || println(call.title, ": ", found)
                    @test found === nothing
                end
            end
            @testset "a changed number is seen" begin
                tried = Set()
                for call in calls
                    call_, old = changed(call)
                    (call.operation, old.type) in tried && continue
                    push!(tried, (call.operation, old.type))
                    @test startswith(something(difference(pointer, call_), "nothing"), "$(old.field)[$(length(old.numbers) - 1)] is ")
                end
                @test length(tried) >= length(OPERATIONS)
            end
        end
    end
end

# A package that is installed alone has no golden file; in the source tree a missing one is an error.
if isfile(FILE) || isfile(joinpath(ROOT, "include", "ggm", "ggm.h"))
    run_file(read_calls(FILE))
else
    @info "skipped: there is no $FILE; the golden file is in the source tree of libggm alone"
end

end
