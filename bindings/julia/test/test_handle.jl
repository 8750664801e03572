# Handles, the log, errors, threads; the raw layer: create and destroy with an allocator, both forms of the last error; finding the
# library.
module Handles

using Test
using GGM
using GGM: Raw
import ..throws, ..new_routing

route(handle; options...) = GGM.route!(handle, new_routing(2, 1, 1), zeros(Int32, 1, 2); options...)

@testset "a handle of the host" begin
    GGM.Handle(:host; host_threads=2) do handle
        @test handle.info.backend === :host && GGM.on_host(handle) && isopen(handle)
        @test (handle.info.device, handle.info.multiprocessors, handle.info.workspace_alignment) == (0, 2, 256)
        @test handle.info.kernel_family in (:host_plain, :host_avx2, :host_avx512)
        @test string(handle) == "GGM.Handle(:host, device 0)"
    end
    for backend in (:HOST, 2, Raw.GGM_BACKEND_HOST)
        GGM.Handle(backend; kernel_family=:host_plain, device=:current) do handle
            @test handle.info.kernel_family === :host_plain
        end
    end
end

@testset "refusals of create come with status and text" begin
    error = try GGM.Handle(:host; host_threads=5000) catch error; error end
    @test error isa GGM.Error && error.status == Raw.GGM_STATUS_INVALID_VALUE && error.name == "GGM_STATUS_INVALID_VALUE"
    @test occursin("host_threads = 5000", error.text) && occursin("1024", error.text)
    @test error.text == GGM.last_error()
    @test throws(GGM.Error, "GGM_STATUS_INVALID_ENUM: params.backend = 77", () -> GGM.Handle(77))
    @test throws(ArgumentError, "backend = :gpu; known are :auto, :cuda, :host", () -> GGM.Handle(:gpu))
    @test throws(ArgumentError, "device = :first; it must be a number or :current", () -> GGM.Handle(:host; device=:first))
    @test throws(ArgumentError, "host_threads = 4294967296; it must be in -2147483648 .. 2147483647",
                 () -> GGM.Handle(:host; host_threads=2^32))
end

@testset "a closed handle is refused, closing twice does no harm" begin
    handle = GGM.Handle(:host)
    close(handle)
    close(handle)
    @test !isopen(handle) && string(handle) == "GGM.Handle(closed)"
    @test throws(GGM.Error, "GGM_STATUS_INVALID_HANDLE", () -> route(handle))
end

@testset "close is refused while a call is inside" begin
    handle = GGM.Handle(:host)
    GGM.inside(handle) do pointer
        @test throws(ErrorException, "in use: 1 calls", () -> close(handle))
    end
    @test isopen(handle)
    close(handle)
    @test !isopen(handle)
end

@testset "a close that is refused leaves calls alone" begin
    handle = GGM.Handle(:host; host_threads=1)
    GGM.inside(handle) do pointer
        for _ in 1:3
            @test throws(ErrorException, "in use", () -> close(handle))
            @test isopen(handle)
            route(handle)
        end
        # From another thread too, at any time.
        done, refused = Threads.Atomic{Bool}(false), Threads.Atomic{Int}(0)
        closer = Threads.@spawn while !done[]
            throws(ErrorException, "in use", () -> close(handle)) && Threads.atomic_add!(refused, 1)
        end
        fine, calls, wanted, end_at = true, 0, Threads.nthreads() == 1 ? 0 : 1000, time() + 30
        while calls < 3000 || (refused[] < wanted && time() < end_at)
            fine &= GGM.inside(pointer -> pointer != C_NULL, handle) && isopen(handle)
            calls += 1
        end
        done[] = true
        wait(closer)
        @test fine
        @test refused[] >= wanted
    end
    close(handle)
    @test throws(GGM.Error, "GGM_STATUS_INVALID_HANDLE", () -> route(handle))
    @test !isopen(handle)
end

const DESTROYED = Threads.Atomic{Int}(0)
const DESTROY = Ref{Ptr{Cvoid}}(C_NULL)

function counted_destroy(handle::Ptr{Cvoid})::Int32
    Threads.atomic_add!(DESTROYED, 1)
    return ccall(DESTROY[], Int32, (Ptr{Cvoid},), handle)
end

# Julia may hold a local until its function ends, so whoever made the handles has to have returned.
@noinline leave_handles(count) = (foreach(_ -> GGM.Handle(:host; host_threads=1), 1:count); nothing)

@testset "the collector frees a handle, and close does at once" begin
    slot = Raw.ADDRESSES[:ggm_destroy]
    DESTROY[] = slot[]
    slot[] = @cfunction(counted_destroy, Int32, (Ptr{Cvoid},))
    handle = GGM.Handle(:host; host_threads=1)
    close(handle)
    close(handle)
    @test DESTROYED[] == 1
    leave_handles(20)
    GC.gc()
    GC.gc()
    @test DESTROYED[] >= 20
    slot[] = DESTROY[]
end

@testset "the log gets levels and lines, also of refused calls" begin
    lines = []
    GGM.Handle(:host; log_level=:plan, log=(level, line) -> push!(lines, (level, line))) do handle
        route(handle)
        @test any(level === :plan && occursin("route", line) for (level, line) in lines)
        @test throws(GGM.Error, "workspace_bytes = 9", () -> route(handle; workspace=GGM.workspace(9)))
        @test any(level === :error && occursin("workspace_bytes = 9", line) for (level, line) in lines)
    end
end

@testset "what a log throws goes no further" begin
    GGM.Handle(:host; log_level=:plan, log=(level, line) -> error("of the log")) do handle
        routing = @test_logs (:error, "the log of a GGM.Handle failed") match_mode = :any route(handle)
        @test routing.group_offsets == [0, 2]
    end
end

@testset "tasks share a handle and have errors of their own" begin
    faults = Channel{String}(10_000)
    function work(handle, number)
        ids = fill(Int32(number % 4), 2, 64)
        for _ in 1:50
            routing = GGM.route!(handle, new_routing(64, 2, 4), ids)
            diff(routing.group_offsets) == [e == number % 4 ? 128 : 0 for e in 0:3] || put!(faults, "$number: $routing")
            try
                GGM.route_workspace_size(handle, GGM.RouteProblem(tokens=-1 - number, top_k=1, experts=1, id_type=Int32))
            catch error
                occursin("tokens = $(-1 - number);", error.text) || put!(faults, "$number: $error")
            end
        end
    end
    GGM.Handle(:host; host_threads=2) do handle
        foreach(wait, [Threads.@spawn(work(handle, number)) for number in 0:7])
    end
    close(faults)
    @test collect(faults) == []
end

# ---- the raw layer -----------------------------------------------------------------------------------------------------------

const TAKEN = Dict{Ptr{Cvoid},Csize_t}()

function allocate(::Ptr{Cvoid}, bytes::Csize_t, alignment::Csize_t)::Ptr{Cvoid}
    pointer = Ref{Ptr{Cvoid}}(C_NULL)
    ccall(:posix_memalign, Cint, (Ptr{Ptr{Cvoid}}, Csize_t, Csize_t), pointer, max(alignment, sizeof(Ptr{Cvoid})), bytes)
    TAKEN[pointer[]] = bytes
    return pointer[]
end

function deallocate(::Ptr{Cvoid}, pointer::Ptr{Cvoid}, bytes::Csize_t)::Cvoid
    pop!(TAKEN, pointer, 0) == bytes && Libc.free(pointer)
    return nothing
end

@testset "create with an allocator, and destroy" begin
    params = Raw.ggm_create_params_t(
        backend=Raw.GGM_BACKEND_HOST, host_threads=1,
        allocate=@cfunction(allocate, Ptr{Cvoid}, (Ptr{Cvoid}, Csize_t, Csize_t)),
        deallocate=@cfunction(deallocate, Cvoid, (Ptr{Cvoid}, Ptr{Cvoid}, Csize_t)))
    handle = Ref{Ptr{Cvoid}}(C_NULL)
    @test Raw.ggm_create(Ref(params), handle) == Raw.GGM_STATUS_SUCCESS
    @test !isempty(TAKEN)
    @test Raw.ggm_destroy(handle[]) == Raw.GGM_STATUS_SUCCESS
    @test isempty(TAKEN)
    @test Raw.ggm_destroy(C_NULL) == Raw.GGM_STATUS_SUCCESS
end

@testset "the last error as a pointer and as a copy" begin
    handle = Ref(Ptr{Cvoid}(1))
    @test Raw.ggm_create(Ref(Raw.ggm_create_params_t(backend=99)), handle) == Raw.GGM_STATUS_INVALID_ENUM
    @test handle[] == C_NULL
    text = unsafe_string(Raw.ggm_last_error())
    @test occursin("backend = 99", text) && text == GGM.last_error()
    @test Raw.ggm_copy_last_error(C_NULL, 0) == length(text)
    buffer = fill(0xff, 8)
    @test Raw.ggm_copy_last_error(buffer, 8) == length(text)
    @test buffer == [codeunits(text)[1:7]; 0x00]
end

@testset "strings" begin
    @test GGM.status_string(2001) == "GGM_STATUS_NULL_POINTER"
    @test GGM.status_string(12345) == "unknown status"
    @test occursin(string(GGM.version()), GGM.build_info())
end

@testset "structs start as the macros do, and refuse what does not fit" begin
    problem = Raw.ggm_route_problem_t(tokens=5, top_k=2)
    @test problem.struct_size == sizeof(problem) && problem.experts == 0
    @test string(problem) == "ggm_route_problem_t(tokens = 5, top_k = 2)"
    @test Raw.ggm_route_tensors_t(ids=UInt(16)).ids == Ptr{Cvoid}(16)
    @test throws(ArgumentError, "ggm_moe_problem_t has no field tokns", () -> Raw.ggm_moe_problem_t(tokns=3))
    @test throws(ArgumentError, "sm_limit = 4294967296; it must be in -2147483648 .. 2147483647",
                 () -> Raw.ggm_moe_problem_t(sm_limit=2^32))
    @test throws(ArgumentError, "tokens = 1.5; it must be an integer", () -> Raw.ggm_moe_problem_t(tokens=1.5))
end

# ---- finding the library -----------------------------------------------------------------------------------------------------

const PATH = realpath(GGM.load())

const PROJECT = dirname(@__DIR__)

"What `code` prints in a process of its own; nothing unsets a variable."
function in_a_process(code; variables...)
    command = `$(Base.julia_cmd()) --startup-file=no --project=$PROJECT -e $code`
    environment = Dict{String,String}(ENV)
    for (name, value) in variables
        value === nothing ? delete!(environment, String(name)) : (environment[String(name)] = value)
    end
    output = IOBuffer()
    run(pipeline(ignorestatus(setenv(command, environment)); stdout=output, stderr=output))
    return String(take!(output))
end

@testset "the library is found by the environment, by the loader, by name" begin
    code = "using GGM; println(realpath(GGM.load()), ' ', GGM.Handle(:host).info.backend)"
    @test in_a_process(code; GGM_LIBRARY=PATH) == "$PATH host\n"
    @test occursin("no-such-file.so", in_a_process(code; GGM_LIBRARY="no-such-file.so"))
    before = get(ENV, "LD_LIBRARY_PATH", "")
    mktempdir() do folder
        symlink(PATH, joinpath(folder, "libggm.so.0.1"))
        @test in_a_process(code; GGM_LIBRARY=nothing, LD_LIBRARY_PATH="$folder:$before") == "$PATH host\n"
        named = "using GGM; GGM.load($(repr(joinpath(folder, "libggm.so.0.1")))); " * code
        @test in_a_process(named; GGM_LIBRARY=nothing) == "$PATH host\n"
        @test occursin("cannot be loaded", in_a_process(named * "; GGM.load(\"another.so\")"; GGM_LIBRARY=nothing))
    end
end

@testset "no library is needed for constants, and its absence is said" begin
    code = "using GGM; println(GGM.Raw.GGM_MAX_TOP_K, GGM.RouteProblem(top_k=2)); flush(stdout); GGM.version()"
    printed = in_a_process(code; GGM_LIBRARY=nothing)
    @test occursin("4096ggm_route_problem_t(top_k = 2)", printed)
    @test occursin("libggm was not found: GGM_LIBRARY is not set", printed)
end

@testset "what is not libggm is refused, and another version is" begin
    @test occursin("is not libggm: it has no ggm_version", in_a_process("using GGM; GGM.load(\"libc.so.6\")"; GGM_LIBRARY=nothing))
    code = "using GGM; @eval GGM.Raw wanted_version() = v\"0.7.0\"; GGM.load($(repr(PATH)))"
    @test occursin(r"is libggm 0\.1\.\d+; this package needs 0\.7\.x", in_a_process(code; GGM_LIBRARY=nothing))
end

end
