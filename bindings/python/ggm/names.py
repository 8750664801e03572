"""The choices of ggm.h as enumerations. Everywhere an enumeration is taken, the name of a member in any case ("host",
"bfloat16", "NK") and the plain number are taken as well."""
import enum

from . import raw


def _choices(name, prefix, base=enum.IntEnum, skip=()):
    members = {key[len(prefix):]: value for key, value in vars(raw).items() if key.startswith(prefix)}
    made = base(name, {key: value for key, value in members.items() if key not in skip}, module=__name__)
    made.__doc__ = f"{prefix}* of ggm.h."
    return made


Status = _choices("Status", "GGM_STATUS_")
Type = _choices("Type", "GGM_TYPE_")
Index = _choices("Index", "GGM_INDEX_")
Order = _choices("Order", "GGM_ORDER_")
Compute = _choices("Compute", "GGM_COMPUTE_")
Layout = _choices("Layout", "GGM_LAYOUT_")
GroupForm = _choices("GroupForm", "GGM_GROUPS_")
Combine = _choices("Combine", "GGM_COMBINE_")
Rows = _choices("Rows", "GGM_ROWS_")
Backend = _choices("Backend", "GGM_BACKEND_")
Kernels = _choices("Kernels", "GGM_KERNELS_")
LogLevel = _choices("LogLevel", "GGM_LOG_")
Gradient = _choices("Gradient", "GGM_GRADIENT_", enum.IntFlag)
Flag = _choices("Flag", "GGM_FLAG_", enum.IntFlag)
Fault = _choices("Fault", "GGM_FAULT_", skip=("WORDS",))

FAULT_WORDS = raw.GGM_FAULT_WORDS
WORKSPACE_ALIGNMENT = raw.GGM_WORKSPACE_ALIGNMENT
STRIDE_SHARED = raw.GGM_STRIDE_SHARED


def choice(kind, value, argument):
    """The number of a member that is given by itself, by name or by number. An unknown number goes on to the library, whose
    refusal says more than this package could."""
    if not isinstance(value, str):
        return 0 if value is None else value
    try:
        return kind[value.upper()]
    except KeyError:
        known = ", ".join(repr(name.lower()) for name in kind.__members__)
        raise ValueError(f"{argument} = {value!r}; known are {known}") from None


def known(kind, number):
    """The member with this number, or the number itself: a newer library may know more."""
    try:
        return kind(number)
    except ValueError:
        return number
