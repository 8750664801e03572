"""Failed calls as exceptions."""
from .names import Status, known


class Error(RuntimeError):
    """A call that the library refused or that failed.

    status  a Status, or the plain number where this package does not know it: then go by its thousand
    text    the library's text: argument, value, limit
    """

    def __init__(self, status, name, text):
        super().__init__(f"{name}: {text}")
        self.status = known(Status, status)
        self.text = text

    def __reduce__(self):
        return type(self), (int(self.status), str(self).split(":", 1)[0], self.text)


class ArgumentError(Error, ValueError):
    """A status of the thousand 2: an argument is wrong. Nothing was launched or written."""


class UnsupportedError(Error):
    """A status of the thousand 3: a valid problem that this library, build or device does not serve; the text says why."""


def check(library, status):
    """Raises for every status but success, with the text of this thread."""
    if status == 0:
        return
    kind = {2: ArgumentError, 3: UnsupportedError}.get(status // 1000, Error)
    raise kind(status, library.ggm_status_string(status).decode(), library.ggm_last_error().decode("utf-8", "replace"))
