# Finding and opening the library.

# The version that these declarations are of. While it is 0.x, every minor version may break the ABI.
const VERSION_OF_HEADER = v"0.1.0"
const FILE_NAMES = ("libggm.so.$(VERSION_OF_HEADER.major).$(VERSION_OF_HEADER.minor)", "libggm.so")

const LOADING = ReentrantLock()
const LOADED_PATH = Ref("")

"The address in `slot`, after loading the library where none is loaded yet."
@inline function loaded(slot::Base.RefValue{Ptr{Cvoid}})
    address = slot[]
    address == C_NULL || return address
    load()
    return slot[]
end

"""
    load([path]) -> String

Opens the library and returns its path; the first use of a function does it without a path. Then it is the file that the environment
variable GGM_LIBRARY names, else the `libggm.so.0.1` or `libggm.so` that the system's loader finds. A process has one library:
naming another one later is an error, as is a library of another version.
"""
function load(path::Union{Nothing,AbstractString}=nothing)
    lock(LOADING) do
        if !isempty(LOADED_PATH[])
            path === nothing || samefile(resolved(path), LOADED_PATH[]) ||
                error("$path cannot be loaded: $(LOADED_PATH[]) is already")
            return LOADED_PATH[]
        end
        library = path === nothing ? found() : Libdl.dlopen(path, Libdl.RTLD_NOW | Libdl.RTLD_LOCAL)
        prepare(library)
        return LOADED_PATH[] = Libdl.dlpath(library)
    end
end

"The file of a name that the system's loader has resolved already; any other path as it is."
function resolved(path)
    ispath(path) && return path
    library = Libdl.dlopen(path, Libdl.RTLD_NOW | Libdl.RTLD_LOCAL | Libdl.RTLD_NOLOAD; throw_error=false)
    return library === nothing ? path : Libdl.dlpath(library)
end

samefile(a, b) = ispath(a) && ispath(b) && realpath(a) == realpath(b)

function found()
    asked = get(ENV, "GGM_LIBRARY", "")
    isempty(asked) || return Libdl.dlopen(asked, Libdl.RTLD_NOW | Libdl.RTLD_LOCAL)
    for name in FILE_NAMES
        library = Libdl.dlopen(name, Libdl.RTLD_NOW | Libdl.RTLD_LOCAL; throw_error=false)
        library === nothing || return library
    end
    error("libggm was not found: GGM_LIBRARY is not set, and the system's loader has neither $(join(FILE_NAMES, " nor "))")
end

function prepare(library::Ptr{Cvoid})
    path = Libdl.dlpath(library)
    version = Libdl.dlsym(library, :ggm_version; throw_error=false)
    version === nothing && error("$path is not libggm: it has no ggm_version")
    number = ccall(version, Int32, ())
    wanted = wanted_version()
    number ÷ 100 == 100 * wanted.major + wanted.minor ||
        error("$path is libggm $(version_of(number)); this package needs $(wanted.major).$(wanted.minor).x")
    found = Dict(name => Libdl.dlsym(library, name) for name in keys(ADDRESSES))
    for (name, address) in found
        ADDRESSES[name][] = address
    end
end

wanted_version() = VERSION_OF_HEADER
version_of(number::Integer) = VersionNumber(number ÷ 10000, number ÷ 100 % 100, number % 100)
