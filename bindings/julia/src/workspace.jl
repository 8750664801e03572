"""
    GGM.workspace(bytes) -> array of UInt8

Host memory of at least one byte, aligned as the library asks: one for many calls on the host backend. Tasks that call at the same time
need one each.
"""
function workspace(bytes::Integer)
    memory = Vector{UInt8}(undef, bytes + GGM_WORKSPACE_ALIGNMENT)
    skip = (-UInt(pointer(memory))) % UInt(GGM_WORKSPACE_ALIGNMENT)  # Julia never moves an array
    return view(memory, Int(skip) .+ (1:max(Int(bytes), 1)))
end

"""
The described workspace of one call, nothing when it needs none. given: nothing, an array of any element type, or a function that
makes one from a number of bytes. arrays: those of the call. stream: the one that the caller named, or nothing.
"""
function take_workspace(given, bytes::Int, handle::Handle, arrays, stream)
    bytes == 0 && (given === nothing || given isa Function) && return nothing
    array = given === nothing ? make_workspace(bytes, handle, arrays, stream) : given isa Function ? given(bytes) : given
    described = describe(:workspace, array)
    check_place(:workspace, described, handle)
    isbitstype(described.eltype) && ispacked(described) || throw(ArgumentError("workspace must be of bits without gaps"))
    return described
end

function make_workspace(bytes::Int, handle::Handle, arrays, stream)
    on_host(handle) && return workspace(bytes)
    for array in arrays
        current = current_stream(owner(array))
        current === nothing && continue
        # Memory of the array's package is freed in the order of its own stream.
        stream === nothing || stream_address(stream) == stream_address(current) || break
        return similar(owner(array), UInt8, bytes)
    end
    throw(ArgumentError("workspace: this call needs $bytes bytes of device memory, and none of its arrays could make it for the stream " *
                        "of the call; give an array, or a function that makes one from a number of bytes"))
end
