"""Handle: one backend on one device."""
import contextlib
import ctypes
import threading
import typing
import weakref

from . import raw
from .errors import check
from .names import Backend, Kernels, LogLevel, choice, known


class Info(typing.NamedTuple):
    """What a handle is. Fields as in ggm_info_t of ggm.h."""

    backend: Backend
    device: int
    kernel_family: Kernels
    compute_capability: int
    multiprocessors: int
    shared_memory_bytes: int
    workspace_alignment: int


class Handle:
    """A handle of the library; everything runs on one.

    backend        "auto" (CUDA where this build has it and there is a usable GPU, else the host), "cuda", "host"
    device         CUDA ordinal, or "current" for the thread's current device
    kernel_family  "auto", or a family of Kernels for tests
    log_level      "off", "error", "plan", "trace"
    log            called as log(level, line) by the thread that makes a call, by several threads at once when several call;
                   without it lines go to stderr. What it raises is reported by sys.unraisablehook and goes no further.
    host_threads   worker threads of the host backend, 0: one a core
    library        path of another libggm than the default one (see ggm.raw.load)

    Raises ggm.Error. Any number of threads may use one handle at the same time if their workspaces and outputs differ and, on
    CUDA, its device is current in each of them. `close`, the end of a `with` block and the garbage collector free it; work
    that is already on a stream completes.
    """

    def __init__(self, backend="auto", device=0, *, kernel_family="auto", log_level="off", log=None, host_threads=0, library=None):
        self.loaded = raw.load(library)
        params = raw.ggm_create_params_t(
            backend=choice(Backend, backend, "backend"),
            kernel_family=choice(Kernels, kernel_family, "kernel_family"),
            log_level=choice(LogLevel, log_level, "log_level"),
            host_threads=host_threads,
        )
        if device == "current":
            params.flags = raw.GGM_CREATE_CURRENT_DEVICE
        else:
            params.device = device
        callback = None
        if log is not None:
            callback = raw.log_fn(lambda _, level, line: log(known(LogLevel, level), line.decode("utf-8", "replace")))
            params.log = callback
        pointer = ctypes.c_void_p()
        check(self.loaded, self.loaded.ggm_create(ctypes.byref(params), ctypes.byref(pointer)))
        self._pointer = pointer.value
        self._calls = 0
        self._lock = threading.Lock()
        # Holds the callback, which the library may call until the handle is destroyed.
        self._finalizer = weakref.finalize(self, _destroy, self.loaded, pointer.value, callback)
        # The end of the process frees it anyway, and a thread that is still at work then may be inside a call with it.
        self._finalizer.atexit = False
        self.info = self._read_info()

    def _read_info(self):
        info = raw.ggm_info_t()
        with self.in_use() as pointer:
            check(self.loaded, self.loaded.ggm_get_info(pointer, ctypes.byref(info)))
        rest = {name: getattr(info, name) for name in Info._fields}
        rest.update(backend=known(Backend, info.backend), kernel_family=known(Kernels, info.kernel_family))
        return Info(**rest)

    @property
    def on_host(self):
        """Whether its arrays lie in host memory."""
        return self.info.backend == Backend.HOST

    def close(self):
        """Frees the handle; later calls with it raise ggm.Error. Doing it twice does no harm. Raises RuntimeError while another
        thread is inside a call with it."""
        with self._lock:
            if self._calls:
                raise RuntimeError(f"the handle is in use: {self._calls} calls have not returned")
            self._pointer = None
        self._finalizer()

    @contextlib.contextmanager
    def in_use(self):
        """The C handle, which close() leaves alone until the block ends. None when the handle is closed: the library refuses it."""
        with self._lock:
            self._calls += 1
            pointer = self._pointer
        try:
            yield pointer
        finally:
            with self._lock:
                self._calls -= 1

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __repr__(self):
        if self._pointer is None:
            return "<ggm.Handle, closed>"
        return f"<ggm.Handle, {self.info.backend!r}, device {self.info.device}>"


def _destroy(library, pointer, callback):
    library.ggm_destroy(pointer)
    del callback
