"""
Lines that the library has logged and that are still to be given to the function `sink`. The callback may not run it: a function
that waits would let another task into the library on this thread, or wake up on another thread inside of a C call.
"""
mutable struct LogQueue
    sink::Any
    lines::Vector{Tuple{Int32,String}}
    lock::Threads.SpinLock
end
LogQueue(sink) = LogQueue(sink, [], Threads.SpinLock())

function enqueue(user::Ptr{Cvoid}, level::Int32, message::Ptr{UInt8})::Cvoid
    queue = unsafe_pointer_to_objref(user)::LogQueue
    line = (level, unsafe_string(message))
    lock(() -> push!(queue.lines, line), queue.lock)
    return nothing
end

deliver(::Nothing) = nothing
function deliver(queue::LogQueue)
    lines = lock(queue.lock) do
        taken, queue.lines = queue.lines, Tuple{Int32,String}[]
        taken
    end
    for (level, line) in lines
        try
            queue.sink(named(LOG_LEVELS, level), line)
        catch error
            # The call itself may have succeeded.
            @error "the log of a GGM.Handle failed" exception = (error, catch_backtrace())
        end
    end
end

"""
    GGM.Handle([backend]; device, kernel_family, log_level, log, host_threads)
    GGM.Handle(function, [backend]; ...)

A handle of the library; everything runs on one. The second form calls `function(handle)` and closes the handle.

    backend        :auto (CUDA where this build has it and there is a usable GPU, else the host), :cuda, :host
    device         CUDA ordinal, or :current for the thread's current device
    kernel_family  :auto, or a family of `Raw.GGM_KERNELS_*` for tests, such as :host_plain
    log_level      :off, :error, :plan, :trace
    log            called as `log(level, line)` by the task that made a call, after the call, by several at once when several call;
                   nothing: lines go to stderr. What it throws is reported and goes no further.
    host_threads   worker threads of the host backend, 0: one a core

Throws [`Error`](@ref). Any number of tasks may use one handle at the same time if their workspaces and outputs differ and, on CUDA,
its device is current for each. `close` and the garbage collector free it; work that is already on a stream completes.

`handle.info` is a NamedTuple with the fields of `ggm_info_t`, backend and kernel family by name.
"""
mutable struct Handle
    pointer::Threads.Atomic{UInt}  # 0 when closed
    calls::Threads.Atomic{Int}           # calls that are inside the library, and CLOSED more when it is closed
    log::Union{Nothing,LogQueue}
    info::NamedTuple

    function Handle(backend::Union{Symbol,Integer}=:auto; device::Union{Symbol,Integer}=0, kernel_family::Union{Symbol,Integer}=:auto,
                    log_level::Union{Symbol,Integer}=:off, log=nothing, host_threads::Integer=0)
        device isa Symbol && device !== :current && throw(ArgumentError("device = :$device; it must be a number or :current"))
        queue = log === nothing ? nothing : LogQueue(log)
        params = Raw.ggm_create_params_t(
            backend = choice(BACKENDS, backend, :backend),
            flags = device === :current ? Raw.GGM_CREATE_CURRENT_DEVICE : 0,
            device = device === :current ? 0 : device,
            kernel_family = choice(KERNELS, kernel_family, :kernel_family),
            log_level = choice(LOG_LEVELS, log_level, :log_level),
            host_threads = host_threads,
            log = queue === nothing ? C_NULL : @cfunction(enqueue, Cvoid, (Ptr{Cvoid}, Int32, Ptr{UInt8})),
            log_user = queue === nothing ? C_NULL : pointer_from_objref(queue))
        pointer = Ref{Ptr{Cvoid}}(C_NULL)
        try
            GC.@preserve queue check(Raw.ggm_create(Ref(params), pointer))
        finally
            deliver(queue)
        end
        handle = new(Threads.Atomic{UInt}(UInt(pointer[])), Threads.Atomic{Int}(0), queue)
        finalizer(destroy, handle)
        handle.info = read_info(handle)
        return handle
    end
end

function Handle(body::Function, backend::Union{Symbol,Integer}=:auto; options...)
    handle = Handle(backend; options...)
    try
        return body(handle)
    finally
        close(handle)
    end
end

function destroy(handle::Handle)
    pointer = Threads.atomic_xchg!(handle.pointer, UInt(0))
    pointer == 0 || Raw.ggm_destroy(Ptr{Cvoid}(pointer))
    return
end

const CLOSED = typemin(Int) ÷ 2

"""
    inside(body, handle)

`body(pointer)` with the C handle, which `close` leaves alone until it ends; NULL when the handle is closed, which the library refuses.
Nothing waits between here and the call: addresses were taken, and the CUDA device made current, on this very thread.
"""
function inside(body, handle::Handle)
    closed = Threads.atomic_add!(handle.calls, 1) < 0
    try
        return GC.@preserve handle body(Ptr{Cvoid}(closed ? 0 : handle.pointer[]))
    finally
        Threads.atomic_sub!(handle.calls, 1)
        deliver(handle.log)
    end
end

function read_info(handle::Handle)
    info = Ref(Raw.ggm_info_t())
    inside(pointer -> check(Raw.ggm_get_info(pointer, info)), handle)
    fields = fieldnames(Raw.ggm_info_t)[2:end]
    rest = NamedTuple{fields}(Tuple(Int(getfield(info[], name)) for name in fields))
    return merge(rest, (backend = named(BACKENDS, rest.backend), kernel_family = named(KERNELS, rest.kernel_family)))
end

on_host(handle::Handle) = handle.info.backend === :host

"""
    close(handle::GGM.Handle)

Frees the handle; later calls with it throw [`Error`](@ref). Doing it twice does no harm. It is refused while a call is inside.
"""
function Base.close(handle::Handle)
    # One exchange decides: a call that counts itself before it is seen here, and one behind it finds the handle closed.
    calls = Threads.atomic_cas!(handle.calls, 0, CLOSED)
    calls > 0 && error("the handle is in use: $calls calls have not returned")
    calls == 0 && destroy(handle)
    return
end

Base.isopen(handle::Handle) = handle.calls[] >= 0

function Base.show(io::IO, handle::Handle)
    isopen(handle) ? print(io, "GGM.Handle(:", handle.info.backend, ", device ", handle.info.device, ")") : print(io, "GGM.Handle(closed)")
end
