"""The prototypes of ggm.h and the loading of the library. A test compares every prototype with the header."""
import ctypes
import os
import pathlib
import threading

from . import structs

STATUS = ctypes.c_int32
HANDLE = ctypes.c_void_p
STREAM = ctypes.c_void_p
TEXT = ctypes.c_char_p


def pointer(kind):
    return ctypes.POINTER(kind)


# {name: (type of the result, [types of the parameters])}
PROTOTYPES = {
    "ggm_version": (ctypes.c_int32, []),
    "ggm_build_info": (TEXT, []),
    "ggm_status_string": (TEXT, [STATUS]),
    "ggm_last_error": (TEXT, []),
    "ggm_copy_last_error": (ctypes.c_size_t, [ctypes.c_char_p, ctypes.c_size_t]),
    "ggm_create": (STATUS, [pointer(structs.ggm_create_params_t), pointer(HANDLE)]),
    "ggm_destroy": (STATUS, [HANDLE]),
    "ggm_get_info": (STATUS, [HANDLE, pointer(structs.ggm_info_t)]),
}

# {operation: (problem, tensors)}; each is two functions.
OPERATIONS = {
    "ggm_route": (structs.ggm_route_problem_t, structs.ggm_route_tensors_t),
    "ggm_permute": (structs.ggm_permute_problem_t, structs.ggm_permute_tensors_t),
    "ggm_unpermute": (structs.ggm_permute_problem_t, structs.ggm_permute_tensors_t),
    "ggm_unpermute_backward": (structs.ggm_permute_problem_t, structs.ggm_unpermute_backward_tensors_t),
    "ggm_grouped_gemm": (structs.ggm_grouped_gemm_problem_t, structs.ggm_grouped_gemm_tensors_t),
    "ggm_grouped_gemm_array": (structs.ggm_grouped_gemm_array_problem_t, structs.ggm_grouped_gemm_array_tensors_t),
    "ggm_moe_forward": (structs.ggm_moe_problem_t, structs.ggm_moe_forward_tensors_t),
    "ggm_moe_backward": (structs.ggm_moe_problem_t, structs.ggm_moe_backward_tensors_t),
}

for _name, (_problem, _tensors) in OPERATIONS.items():
    PROTOTYPES[_name + "_workspace_size"] = (STATUS, [HANDLE, pointer(_problem), pointer(ctypes.c_size_t)])
    PROTOTYPES[_name] = (STATUS, [HANDLE, pointer(_problem), pointer(_tensors), ctypes.c_void_p, ctypes.c_size_t, STREAM])

# The version that these declarations are of. While it is 0.x, every minor version may break the ABI.
MAJOR, MINOR = 0, 1
FILE_NAMES = (f"libggm.so.{MAJOR}.{MINOR}", "libggm.so")
# Where a wheel carries the library.
CARRIED = pathlib.Path(__file__).resolve().parents[1] / "lib"

_lock = threading.Lock()
_default = None


def load(path=None):
    """The library with its prototypes set, as a ctypes.CDLL: the interpreter lock is released during each call.

    path: the file to open. Without it the default library is opened once and kept: the file that the environment variable
    GGM_LIBRARY names, else libggm.so.0.1 or libggm.so in the folder that GGM_LIB_DIR names, else in the folder lib of this
    package, where a wheel carries it, else the one that the system's loader finds. Raises OSError when it cannot be opened,
    ImportError when it is another version."""
    global _default
    if path is not None:
        return _prepare(ctypes.CDLL(os.fspath(path)), path)
    with _lock:
        if _default is None:
            _default = _find()
        return _default


def _find():
    asked = os.environ.get("GGM_LIBRARY")
    if asked:
        return _prepare(ctypes.CDLL(asked), asked)
    folder = os.environ.get("GGM_LIB_DIR")
    found = _file_in(pathlib.Path(folder) if folder else CARRIED)
    if found:
        return _prepare(ctypes.CDLL(str(found)), found)
    if folder:
        raise OSError(f"GGM_LIB_DIR = {folder}; there is no {' or '.join(FILE_NAMES)} in it")
    reasons = []
    for name in FILE_NAMES:
        try:
            library = ctypes.CDLL(name)
        except OSError as error:
            reasons.append(str(error))
        else:
            return _prepare(library, name)
    raise OSError(f"libggm was not found: GGM_LIBRARY and GGM_LIB_DIR are not set, {CARRIED} has none, and the system's loader says: "
                  f"{'; '.join(reasons)}")


def _file_in(folder):
    return next((folder / name for name in FILE_NAMES if (folder / name).exists()), None)


def _prepare(library, path):
    if not hasattr(library, "ggm_version"):
        raise ImportError(f"{path} is not libggm: it has no ggm_version")
    number = library.ggm_version()
    if number // 100 != MAJOR * 100 + MINOR:
        found = f"{number // 10000}.{number // 100 % 100}.{number % 100}"
        raise ImportError(f"{path} is libggm {found}; this package needs {MAJOR}.{MINOR}.x")
    for name, (result, parameters) in PROTOTYPES.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, parameters
    return library
