"""ggm.h by ctypes: every constant, struct and function under the name that it has there, and nothing more.

    from ggm import raw
    handle = ctypes.c_void_p()
    params = raw.ggm_create_params_t(backend=raw.GGM_BACKEND_HOST)
    status = raw.ggm_create(ctypes.byref(params), ctypes.byref(handle))

Functions return a status and never raise for one. The library is opened at the first use of a function (see `load`); constants
and structs need none. Pointers are addresses: the caller keeps the memory, the structs and the callbacks alive.
"""
from .constants import *  # noqa: F401,F403
from .functions import OPERATIONS, PROTOTYPES, load  # noqa: F401
from .structs import *  # noqa: F401,F403


def __getattr__(name):
    if name in PROTOTYPES:
        return getattr(load(), name)
    raise AttributeError(f"module {__name__} has no attribute {name}")
