"""
    GGM.Error

A call that the library refused or that failed. When `status ÷ 1000` is 2 (an argument) or 3 (not supported) nothing was written.

    status  number, one of `Raw.GGM_STATUS_*`; a newer library may have others of the same thousands
    name    its name
    text    the library's text: argument, value, limit
"""
struct Error <: Exception
    status::Int32
    name::String
    text::String
end

Base.showerror(io::IO, error::Error) = print(io, "GGM.Error: ", error.name, ": ", error.text)

"""
Throws for every status but success. To be called right after the function: the text belongs to the thread, and a task that waits
for anything in between may wake up on another one.
"""
function check(status::Integer)
    status == 0 && return
    text = unsafe_string(Raw.ggm_last_error())
    throw(Error(status, unsafe_string(Raw.ggm_status_string(status)), text))
end
