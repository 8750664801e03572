# Where arrays lie, their strides, bfloat16; streams and workspaces of calls on device arrays. There is no device here: the arrays
# say that they lie on one, and so does the handle.
module Arrays

using Test
using GGM
import ..DeviceArray, ..MADE, ..device_handle, ..new_routing, ..same, ..throws

described(a) = (d = GGM.describe(:x, a); (d.place.address, d.size, d.strides, d.place.memory))

const BASE = reshape(collect(Float32, 1:24), 6, 4)
const START = UInt(pointer(BASE))

@testset "arrays of the host" begin
    @test described(BASE) == (START, (6, 4), (1, 6), :host)
    @test described(view(BASE, 2:4, 2:3)) == (START + 28, (3, 2), (1, 6), :host)
    @test described(view(BASE, :, 3)) == (START + 48, (6,), (1,), :host)
    @test described(view(BASE, 3:8)) == (START + 8, (6,), (1,), :host)
    @test described(view(BASE, :, 1:2:3)) == (START, (6, 2), (1, 12), :host)
    @test described(view(view(BASE, 2:5, :), 2:3, 2:4)) == (START + 4 * 8, (2, 3), (1, 6), :host)
    @test described(reshape(view(BASE, :, 2:3), 3, 4)) == (START + 24, (3, 4), (1, 3), :host)
    @test described(reinterpret(UInt32, BASE)) == (START, (6, 4), (1, 6), :host)
    @test described(view(reinterpret(Float16, BASE), 3:4, 2:2)) == (START + 24 + 4, (2, 1), (1, 12), :host)
    # Axes that do not begin at 1, as those of OffsetArrays.
    bits = collect(UInt16, 1:40)
    offset = reinterpret(GGM.BFloat16, view(bits, Base.IdentityUnitRange(21:36)))
    @test first(axes(offset, 1)) == 21 && described(view(offset, 23:24))[1:2] == (UInt(pointer(bits)) + 2 * 22, (2,))
    @test described(fill(1))[2:4] == ((), (), :host)
    @test described(GGM.shared(view(BASE, 1:2, 2:3), 5)) == (START + 24, (2, 2, 5), (1, 6, 0), :host)
end

@testset "what is no known array is refused by name" begin
    @test throws(ArgumentError, "x is a Int64, which is no array", () -> GGM.describe(:x, 3))
    @test throws(ArgumentError, "does not know where such an array lies (see GGM.place)", () -> GGM.describe(:x, 1:3))
    @test throws(ArgumentError, "does not know where such an array lies", () -> GGM.describe(:x, view(BASE, [1, 3], :)))
    gaps = view(BASE, 1:4, :)
    for a in (view(reshape(gaps, 4, 4), :, 1:3), reshape(view(gaps, 1:12), 4, 3), view(reinterpret(UInt32, gaps), :, 1:3))
        # Known or refused by name, as this Julia's strides have it; known where it is.
        fits = try
            d = GGM.describe(:x, a)
            last = d.place.address + sizeof(eltype(a)) * sum((d.size .- 1) .* d.strides)
            unsafe_load(Ptr{eltype(a)}(d.place.address)) == a[1] && unsafe_load(Ptr{eltype(a)}(last)) == a[end]
        catch error
            error isa ArgumentError
        end
        @test fits
    end
    @test throws(ArgumentError, "x is a", () -> GGM.describe(:x, view(gaps, 1:12)))  # an index that passes over gaps
    @test throws(ArgumentError, "memory = :gpu; it must be :host or :cuda", () -> GGM.Place(:gpu, C_NULL))
end

@testset "shared: one matrix as many" begin
    one = GGM.shared([1 2; 3 4], 3)
    @test one == cat([1 2; 3 4], [1 2; 3 4], [1 2; 3 4]; dims=3)
    @test_throws BoundsError one[1, 1, 4]
end

@testset "packed" begin
    @test GGM.ispacked(GGM.describe(:x, BASE))
    @test !GGM.ispacked(GGM.describe(:x, view(BASE, 1:3, :)))
    @test GGM.ispacked(GGM.describe(:x, view(BASE, 1:3, 2:2)))
    @test GGM.ispacked(GGM.describe(:x, view(BASE, 1:3, 1:0)))
end

@testset "bfloat16" begin
    bits(x) = reinterpret(UInt16, GGM.BFloat16(x))
    # Every number is itself again.
    for b in 0x0000:0xffff
        x = reinterpret(GGM.BFloat16, b)
        (isnan(x) ? isnan(GGM.BFloat16(Float32(x))) : bits(Float32(x)) == b) || @test (b, "is not itself") == ()
    end
    @test bits(1) == 0x3f80 && bits(-2.0) == 0xc000 && bits(Inf32) == 0x7f80
    @test bits(1 + 2^-8) == 0x3f80 && bits(1 + 3 * 2^-8) == 0x3f82  # ties to even
    @test bits(1 + 2^-8 + 2^-20) == 0x3f81 && bits(1 + 2^-8 - 2^-20) == 0x3f80
    @test bits(floatmax(Float32)) == 0x7f80  # beyond the largest
    @test isnan(GGM.BFloat16(reinterpret(Float32, 0x7f800001)))
    @test GGM.BFloat16(3) == 3.0 && Float64(GGM.BFloat16(0.5)) === 0.5 && Float16(GGM.BFloat16(2)) === Float16(2)
    @test string(GGM.BFloat16(1.5)) == "BFloat16(1.5)"
    @test GGM.BFloat16(1) == GGM.BFloat16(1) && hash(GGM.BFloat16(1)) == hash(1)
    one, two = GGM.BFloat16(1), GGM.BFloat16(2)
    @test isequal(one, GGM.BFloat16(1)) && !isequal(one, two) && isequal(GGM.BFloat16(NaN32), GGM.BFloat16(NaN32))
    @test !isequal(GGM.BFloat16(0), GGM.BFloat16(-0.0f0)) && signbit(GGM.BFloat16(-0.0f0)) && !signbit(one)
    @test [one, two] == [1, 2] && [one, two] == Float16[1, 2] && one + 1 === 2.0f0
end

@testset "the types and choices that are known" begin
    @test GGM.choice(GGM.TYPES, GGM.BFloat16, :x) == GGM.choice(GGM.TYPES, :bfloat16, :x) == 2
    @test throws(ArgumentError, "x_type = Int8; it must be Float32", () -> GGM.MoeProblem(x_type=Int8))
    @test throws(ArgumentError, "id_type = Float32; it must be Int32 or Int64", () -> GGM.RouteProblem(id_type=Float32))
    @test throws(ArgumentError, "layout = :flat; known are :contiguous, :masked, :variable_k", () -> GGM.GroupedGemmProblem(layout=:flat))
    @test throws(ArgumentError, "combine = \"auto\"; a Symbol or a number", () -> GGM.MoeProblem(combine="auto"))
    @test GGM.named(GGM.BACKENDS, 2) === :host && GGM.named(GGM.BACKENDS, 77) === 77
    counts = GGM.fault_counts(UInt32[5, 4, 3, 2, 1, 0, 0, 0])
    @test counts == (bad_id=5, bad_routing=2, misaligned_group=1, rows_dropped=3, size_clamped=4)
end

# ---- device arrays -----------------------------------------------------------------------------------------------------------

const IDS = Int32[0 1 1; 1 -1 0]

function route_on(handle, ids; routing=GGM.Routing(ids, 2), options...)
    GGM.route!(handle, routing, ids; options...)
end

@testset "a call on device arrays, its workspace made by similar" begin
    handle = device_handle()
    ids = DeviceArray(IDS; stream=0)  # tells its stream, the default one
    empty!(MADE)
    routing = GGM.Routing(ids, 2)
    @test length(MADE) == 3 && all(a isa DeviceArray{Int32} for a in MADE)
    empty!(MADE)
    route_on(handle, ids; routing=routing)
    @test routing.group_offsets.array == [0, 2, 5]
    @test routing.row_assignment.array[1:5] == [0, 5, 1, 2, 4]
    needed = GGM.route_workspace_size(handle, GGM.RouteProblem(tokens=3, top_k=2, experts=2, id_type=Int32))
    @test needed > 0 && [(eltype(a), length(a)) for a in MADE] == [(UInt8, needed)]
    given = similar(ids, UInt8, needed)
    empty!(MADE)
    route_on(handle, ids; routing=routing, workspace=given)
    asked = Ref(0)
    route_on(handle, ids; routing=routing, workspace=bytes -> (asked[] = bytes; given))
    @test asked[] == needed && isempty(MADE)
end

@testset "views of device arrays lie where they do" begin
    whole = DeviceArray(reshape(collect(Float32, 1:24), 6, 4))
    part = view(whole, 2:4, 2:3)
    @test GGM.place(part) == GGM.Place(:cuda, UInt(pointer(whole.array)) + 28, 0)
    @test GGM.owner(part) === whole
end

@testset "memory and device have to be the handle's" begin
    handle = device_handle()
    @test throws(ArgumentError, "ids lies in host memory; this handle works on cuda memory", () -> route_on(handle, IDS))
    far = DeviceArray(IDS; device=3)
    @test throws(ArgumentError, "ids lies on the CUDA device 3; the handle is of device 0", () -> route_on(handle, far))
    GGM.Handle(:host) do host
        @test throws(ArgumentError, "ids lies in cuda memory; this handle works on host memory", () -> route_on(host, DeviceArray(IDS)))
    end
    ids = DeviceArray(IDS; stream=0)
    @test throws(ArgumentError, "workspace lies in host memory", () -> route_on(handle, ids; workspace=GGM.workspace(4096)))
end

@testset "the stream of a call is the one given, else the arrays'" begin
    handle = device_handle()
    scratch = similar(DeviceArray(IDS), UInt8, 1 << 16)
    # The host backend refuses every stream by its number, which shows that it came there.
    refused(number, ids; options...) = throws(
        GGM.Error, "GGM_STATUS_INVALID_STREAM: stream = 0x$(string(number; base=16))",
        () -> route_on(handle, ids; routing=new_device_routing(), workspace=scratch, options...))
    new_device_routing() = GGM.Routing(DeviceArray(zeros(Int32, 3)), DeviceArray(zeros(Int32, 6)), DeviceArray(zeros(Int32, 2, 3)))
    @test refused(16, DeviceArray(IDS; stream=16))
    @test refused(32, DeviceArray(IDS; stream=16); stream=32)
    @test refused(48, DeviceArray(IDS); stream=Ptr{Cvoid}(48))
    @test refused(64, view(DeviceArray(IDS; stream=64), :, :))
    @test throws(ArgumentError, "make one wait for the other and give stream =",
                 () -> route_on(handle, DeviceArray(IDS; stream=16); routing=new_device_routing(), workspace=scratch,
                                faults=DeviceArray(zeros(UInt32, 8); stream=32)))
    @test throws(ArgumentError, "stream is a String", () -> route_on(handle, DeviceArray(IDS; stream=0); stream="one"))
    @test GGM.stream_address(nothing) == C_NULL
end

@testset "a workspace is made only where it is freed in the order of the stream" begin
    handle = device_handle()
    routing = GGM.Routing(DeviceArray(zeros(Int32, 3)), DeviceArray(zeros(Int32, 6)), DeviceArray(zeros(Int32, 2, 3)))
    text = "none of its arrays could make it for the stream of the call"
    @test throws(ArgumentError, text, () -> route_on(handle, DeviceArray(IDS); routing=routing))
    @test throws(ArgumentError, text, () -> route_on(handle, DeviceArray(IDS; stream=16); routing=routing, stream=32))
    empty!(MADE)
    @test throws(GGM.Error, "", () -> route_on(handle, DeviceArray(IDS; stream=16); routing=routing, stream=16))
    @test length(MADE) == 1
end

@testset "workspaces of the host" begin
    for bytes in (0, 1, 255, 256, 5000)
        memory = GGM.workspace(bytes)
        @test length(memory) == max(bytes, 1) && GGM.place(memory).address % 256 == 0
    end
    GGM.Handle(:host) do handle
        needed = GGM.route_workspace_size(handle, GGM.RouteProblem(tokens=3, top_k=2, experts=2, id_type=Int32))
        @test route_on(handle, IDS; workspace=GGM.workspace(needed)).group_offsets == [0, 2, 5]
        @test route_on(handle, IDS; workspace=GGM.workspace).group_offsets == [0, 2, 5]
        @test throws(GGM.Error, "GGM_STATUS_WORKSPACE_TOO_SMALL: workspace_bytes = $(needed - 1)",
                     () -> route_on(handle, IDS; workspace=GGM.workspace(needed - 1)))
        @test throws(GGM.Error, "GGM_STATUS_MISALIGNED", () -> route_on(handle, IDS; workspace=view(GGM.workspace(needed + 1), 2:needed+1)))
        @test throws(ArgumentError, "workspace must be of bits without gaps",
                     () -> route_on(handle, IDS; workspace=view(GGM.workspace(2needed), 1:2:2needed)))
    end
end

end
