# Raw says what include/ggm/ggm.h says: constants, layout and type of every field, every prototype, the version.
module Declarations

using Test
using GGM
using GGM: Raw

const INCLUDE = joinpath(@__DIR__, "..", "..", "..", "include")
const COMPILER = get(ENV, "CC", "cc")

"The header without comments and without what only a compiler needs."
plain(text) = replace(replace(text, r"/\*.*?\*/"s => " "), r"\bGGM_DEV\b" => " ")

function header_constants(text)
    names = [m[1] for m in eachmatch(r"^\s*#define (GGM_(?:MAX_\w+|WORKSPACE_ALIGNMENT|STRIDE_SHARED))\b"m, text)]
    for body in eachmatch(r"\benum\s*\{(.*?)\}"s, text), m in eachmatch(r"\b(GGM_\w+)\s*=", body[1])
        push!(names, m[1])
    end
    return Symbol.(names)
end

const SCALARS = Dict("int32_t" => Int32, "int64_t" => Int64, "uint32_t" => UInt32, "size_t" => Csize_t, "double" => Float64,
                     "float" => Float32, "void" => Cvoid, "ggm_status_t" => Int32, "ggm_handle_t" => Ptr{Cvoid},
                     "ggm_stream_t" => Ptr{Cvoid})

"The Julia type of a C type without its name."
function julia_type(text)
    words = [m.match for m in eachmatch(r"\w+|\*", text) if m.match != "const"]
    stars = count(==("*"), words)
    base = words[1] == "char" ? (stars -= 1; nothing) : get(() -> getfield(Raw, Symbol(words[1])), SCALARS, words[1])
    # A string that is given is text; one that is written is bytes.
    base === nothing && (base = occursin("const", text) ? Cstring : Ptr{UInt8})
    for _ in 1:stars
        base = Ptr{base}
    end
    return base
end

"{name => [(field, type)]}; a function pointer is a pointer."
function header_structs(text)
    found = Dict{Symbol,Vector{Tuple{Symbol,DataType}}}()
    for m in eachmatch(r"typedef struct \w+\s*\{(.*?)\}\s*(\w+)\s*;"s, text)
        fields = found[Symbol(m[2])] = Tuple{Symbol,DataType}[]
        for declaration in filter(!isempty, strip.(split(m[1], ";")))
            callback = match(r"\(\s*\*\s*(\w+)\s*\)", declaration)
            if callback !== nothing
                push!(fields, (Symbol(callback[1]), Ptr{Cvoid}))
                continue
            end
            first, others = Iterators.peel(split(declaration, ","))
            type, name = match(r"^(.*?)(\w+)\s*$"s, first).captures
            push!(fields, (Symbol(name), julia_type(type)))
            append!(fields, [(Symbol(strip(other)), julia_type(type)) for other in others])
        end
    end
    return found
end

"{function => (result, [parameters])}"
function header_prototypes(text)
    found = Dict{Symbol,Tuple{DataType,Vector{DataType}}}()
    for m in eachmatch(r"GGM_API\s+([\w\s]+?[\s*]+)(ggm_\w+)\s*\(([^)]*)\)\s*;"s, text)
        parameters = [julia_type(replace(p, r"\w+\s*$" => "")) for p in split(m[3], ",") if strip(p) != "void"]
        found[Symbol(m[2])] = (julia_type(m[1]), parameters)
    end
    return found
end

function prototype_faults(text, declared)
    wanted, faults = header_prototypes(text), String[]
    for name in sort(collect(union(keys(wanted), keys(declared))))
        haskey(wanted, name) || (push!(faults, "$name: not in the header"); continue)
        haskey(declared, name) || (push!(faults, "$name: not declared"); continue)
        declared[name] == wanted[name] || push!(faults, "$name: declared as $(declared[name]), the header says $(wanted[name])")
    end
    return faults
end

declared_constants() = [name for name in names(Raw; all=true) if startswith(String(name), "GGM_")]

function declared_lines(constants)
    lines = String[]
    for S in Raw.STRUCTS
        push!(lines, "$(nameof(S)) $(sizeof(S))")
        for (i, field) in enumerate(fieldnames(S))
            push!(lines, "$(nameof(S)).$field $(fieldoffset(S, i)) $(sizeof(fieldtype(S, i)))")
        end
    end
    return [lines; ["$name = $(getfield(Raw, name))" for name in constants]]
end

function compiled_lines(constants)
    program = ["#include \"ggm/ggm.h\"", "#include <stdio.h>", "int main(void) {"]
    for S in Raw.STRUCTS
        name = nameof(S)
        push!(program, "  printf(\"$name %zu\\n\", sizeof($name));")
        for field in fieldnames(S)
            push!(program, "  printf(\"$name.$field %zu %zu\\n\", offsetof($name, $field), sizeof((($name*)0)->$field));")
        end
    end
    append!(program, ["  printf(\"$name = %lld\\n\", (long long)$name);" for name in constants])
    mktempdir() do folder
        source, binary = joinpath(folder, "layout.c"), joinpath(folder, "layout")
        write(source, join([program; "  return 0;"; "}\n"], "\n"))
        run(`$COMPILER -std=c11 -I $INCLUDE $source -o $binary`)
        return readlines(`$binary`)
    end
end

const TEXT = plain(read(joinpath(INCLUDE, "ggm", "ggm.h"), String))
const CONSTANTS = header_constants(TEXT)

@testset "the header was read" begin
    @test length(header_prototypes(TEXT)) >= 24
    @test length(header_structs(TEXT)) >= 14
    @test length(CONSTANTS) >= 80
end

@testset "constants have the header's names" begin
    @test sort(declared_constants()) == sort(CONSTANTS)
end

@testset "structs have the header's fields, in its order, of its types" begin
    @test Dict(nameof(S) => collect(zip(fieldnames(S), fieldtypes(S))) for S in Raw.STRUCTS) == header_structs(TEXT)
    added = replace(TEXT, "int64_t first_expert;" => "int64_t first_expert; int64_t more;")
    @test added != TEXT && header_structs(added) != header_structs(TEXT)
end

@testset "layout and values are the compiler's" begin
    if Sys.which(COMPILER) === nothing
        @info "skipped: there is no C compiler $COMPILER (set CC)"
    else
        @test declared_lines(CONSTANTS) == compiled_lines(CONSTANTS)
    end
end

@testset "prototypes are the header's, and the comparison can fail" begin
    @test prototype_faults(TEXT, Raw.PROTOTYPES) == []
    added = TEXT * "GGM_API ggm_status_t ggm_new(ggm_handle_t handle);"
    @test prototype_faults(added, Raw.PROTOTYPES) == ["ggm_new: not declared"]
    changed = replace(TEXT, "ggm_destroy(ggm_handle_t handle)" => "ggm_destroy(size_t handle)")
    @test length(prototype_faults(changed, Raw.PROTOTYPES)) == 1
    @test prototype_faults(TEXT, filter(entry -> entry[1] != :ggm_route, Raw.PROTOTYPES)) == ["ggm_route: not declared"]
end

@testset "each function can be called under its name, each operation has its two wrappers" begin
    for (name, (_, parameters)) in Raw.PROTOTYPES
        @test length(first(methods(getfield(Raw, name))).sig.parameters) == 1 + length(parameters)
    end
    operations = [String(name)[5:end-15] for name in keys(Raw.PROTOTYPES) if endswith(String(name), "_workspace_size")]
    @test length(operations) == 8
    for operation in operations
        @test getfield(GGM, Symbol(operation, "!")) isa Function
        @test getfield(GGM, Symbol(operation, "_workspace_size")) isa Function
    end
end

@testset "each choice of the header has a name" begin
    choices = [getfield(GGM, name) for name in names(GGM; all=true) if isdefined(GGM, name) && getfield(GGM, name) isa GGM.Choices]
    apart = r"^GGM_(STATUS|GRADIENT|FLAG|FAULT|MAX|CREATE)_|^GGM_(STRIDE_SHARED|WORKSPACE_ALIGNMENT)$"
    for name in CONSTANTS
        occursin(apart, String(name)) && continue
        prefix = only([c for c in choices if startswith(String(name), c.prefix)])
        @test GGM.choice(prefix, Symbol(String(name)[length(prefix.prefix)+1:end]), :x) == getfield(Raw, name)
    end
end

@testset "the version is the header's" begin
    text = read(joinpath(INCLUDE, "ggm", "version.h"), String)
    parts = [parse(Int, match(Regex("#define GGM_VERSION_$part (\\d+)"), text)[1]) for part in ("MAJOR", "MINOR", "PATCH")]
    @test Raw.VERSION_OF_HEADER == VersionNumber(parts...)
    @test GGM.version() == VersionNumber(parts...)
    @test occursin("version = \"$(join(parts, "."))\"", read(joinpath(@__DIR__, "..", "Project.toml"), String))
end

end
