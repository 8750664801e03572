"""Which CUDA stream a call goes to."""
import sys


def number_of(stream):
    """The cudaStream_t of a stream object: a number, a torch stream (cuda_stream), a CuPy stream (ptr), or anything with the
    __cuda_stream__ protocol. None: NULL."""
    if stream is None:
        return 0
    protocol = getattr(stream, "__cuda_stream__", None)
    if protocol is not None:
        return int((protocol() if callable(protocol) else protocol)[1])
    for member in ("cuda_stream", "ptr"):
        if hasattr(stream, member):
            return int(getattr(stream, member))
    try:
        return int(stream)
    except (TypeError, ValueError):
        raise TypeError(f"stream is a {type(stream).__name__}; a number or a stream of torch, CuPy or __cuda_stream__ is taken") from None


def torch_of(obj):
    """The module torch, when obj is a tensor of it: whoever made one has imported it."""
    torch = sys.modules.get("torch")
    return torch if torch is not None and isinstance(obj, torch.Tensor) else None


def current(arrays):
    """The stream of a call on CUDA that names none: torch's current stream where an array is a torch tensor, the stream that
    __cuda_array_interface__ names, else the default stream. Raises ValueError when the arrays disagree."""
    told = {}
    for name, obj in arrays.items():
        number = None
        torch = torch_of(obj)
        if torch is not None:
            if obj.device.type == "cuda":
                number = torch.cuda.current_stream(obj.device).cuda_stream
        else:
            number = (getattr(obj, "__cuda_array_interface__", None) or {}).get("stream")
            if number == 0:
                raise ValueError(f"the __cuda_array_interface__ of {name} names the stream 0, which the protocol forbids")
        if number is not None:
            # 1 is another name of the default stream.
            told.setdefault(0 if number == 1 else number, (number, name))
    if len(told) > 1:
        one, other = list(told.values())[:2]
        raise ValueError(f"{one[1]} is of the stream {one[0]:#x}, {other[1]} of {other[0]:#x}; make one wait for the other and give stream=")
    return next(iter(told.values()))[0] if told else 0
