# The extension on a stand-in for CUDA.jl, the programs of README.md, docstrings, and the package in a fresh depot.
module Package

using Pkg
using Test
using GGM
import ..device_handle, ..throws

const ROOT = dirname(@__DIR__)

pushfirst!(LOAD_PATH, joinpath(@__DIR__, "stand_in"))
include("../ext/GGMCUDAExt.jl")
import CUDA
popfirst!(LOAD_PATH)

@testset "the extension: CuArrays lie on their device, calls go to the task's stream" begin
    handle = device_handle()
    on_device(a; device=0) = CUDA.CuArray(a, device)
    ids = on_device(Int32[0 1; 1 -1])
    @test GGM.place(ids) == GGM.Place(:cuda, UInt(pointer(ids.array)), 0)
    @test GGM.place(view(ids, :, 2)) == GGM.Place(:cuda, UInt(pointer(ids.array)) + 8, 0)
    routing = GGM.Routing(ids, 2)
    @test routing.assignment_row isa CUDA.CuArray{Int32,2}
    scratch = similar(ids, UInt8, 1 << 16)
    # The host backend refuses every stream by its number, which shows that it came there.
    @test throws(GGM.Error, "stream = 0x10", () -> GGM.route!(handle, routing, ids))
    @test throws(GGM.Error, "stream = 0x20", () -> GGM.route!(handle, routing, ids; stream=CUDA.CuStream(Ptr{UInt8}(32)), workspace=scratch))
    @test throws(ArgumentError, "ids lies on the CUDA device 1", () -> GGM.route!(handle, routing, on_device(ids.array; device=1)))
end

@testset "the extension is declared, in a project that Pkg of any version reads" begin
    @test Pkg.Types.read_project(joinpath(ROOT, "Project.toml")).name == "GGM"
    project = read(joinpath(ROOT, "Project.toml"), String)
    @test occursin("[weakdeps]\nCUDA = ", project) && occursin("[extensions]\nGGMCUDAExt = \"CUDA\"", project)
    @test readdir(joinpath(ROOT, "ext")) == ["GGMCUDAExt.jl"]
end

const README = read(joinpath(ROOT, "README.md"), String)

@testset "programs of the README print what stands below them" begin
    pairs = collect(eachmatch(r"```julia\n(.*?)```\s+It prints\s+```text\n(.*?)```"s, README))
    @test length(pairs) >= 2
    for (program, wanted) in map(m -> m.captures, pairs)
        mktemp() do path, io
            redirect_stdout(io) do
                include_string(Module(:Readme), "using GGM\n" * program, "README.md")
            end
            flush(io)
            @test read(path, String) == wanted
        end
    end
end

@testset "every name of the README exists" begin
    names = unique(m[1] for m in eachmatch(r"`GGM\.(?!Raw)([A-Za-z_0-9]+!?)", README))
    @test length(names) > 10
    @test [name for name in names if !isdefined(GGM, Symbol(name))] == []
end

@testset "what is public has a docstring" begin
    public = [:Handle, :Error, :Routing, :BFloat16, :Place, :Raw, :load, :version, :build_info, :status_string, :last_error, :place,
              :current_stream, :stream_address, :data_type, :shared, :workspace, :addresses, :fault_counts, :RouteProblem,
              :PermuteProblem, :GroupedGemmProblem, :GroupedGemmArrayProblem, :MoeProblem]
    for operation in (:route, :permute, :unpermute, :unpermute_backward, :grouped_gemm, :grouped_gemm_array, :moe_forward, :moe_backward)
        append!(public, [Symbol(operation, "!"), Symbol(operation, "_workspace_size")])
    end
    for name in public
        @test !occursin("No documentation found", string(Base.Docs.doc(Base.Docs.Binding(GGM, name))))
    end
end

@testset "a package may call the library while it is precompiled" begin
    mktempdir() do depot
        # The library is not loaded yet where the result is used.
        write(joinpath(depot, "Caller.jl"), "module Caller\nusing GGM\nconst AT_BUILD = GGM.version()\nnow() = GGM.version()\nend\n")
        code = "using Caller, GGM; print(Caller.AT_BUILD, ' ', isempty(GGM.Raw.LOADED_PATH[]), ' ', Caller.now())"
        command = `$(Base.julia_cmd()) --startup-file=no --project=$ROOT -e $code`
        environment = merge(Dict{String,String}(ENV), Dict("JULIA_DEPOT_PATH" => "$depot:", "JULIA_LOAD_PATH" => "@:$depot:@stdlib"))
        wanted = "$(GGM.version()) true $(GGM.version())"
        @test read(setenv(command, environment), String) == wanted  # compiles
        @test read(setenv(command, environment), String) == wanted  # takes what was compiled
    end
end

end
