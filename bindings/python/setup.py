"""What pyproject.toml cannot say: a wheel may carry the C library. With the environment variable GGM_WHEEL_LIBRARY, the path of a
libggm.so, the wheel has that file as ggm/lib/libggm.so and is one of this platform; without it the wheel is pure Python."""
import os
import pathlib
import shutil
import sys

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.dist import Distribution

HERE = pathlib.Path(__file__).resolve().parent
LIBRARY = os.environ.get("GGM_WHEEL_LIBRARY")
CARRIED = pathlib.PurePath("ggm", "lib", "libggm.so")


def check(path):
    """That the file is a libggm of this package's version, found out now and not at the first call."""
    sys.path.insert(0, str(HERE))
    from ggm.raw import load
    try:
        load(path)
    except (OSError, ImportError) as error:
        sys.exit(f"GGM_WHEEL_LIBRARY = {path}: {error}")


class BuildWithLibrary(build_py):
    def run(self):
        super().run()
        if getattr(self, "editable_mode", False):
            return  # the modules stay in the source tree then, and nothing is to be put there
        target = pathlib.Path(self.build_lib, CARRIED)
        shutil.rmtree(target.parent, ignore_errors=True)  # of an earlier build in the same folder
        if LIBRARY:
            check(pathlib.Path(LIBRARY).resolve())
            target.parent.mkdir(parents=True)
            shutil.copy(LIBRARY, target)  # the file behind a link


commands, distribution = {"build_py": BuildWithLibrary}, Distribution
if LIBRARY:
    try:
        from setuptools.command.bdist_wheel import bdist_wheel
    except ImportError:  # before setuptools 70.1
        from wheel.bdist_wheel import bdist_wheel

    class PlatformWheel(bdist_wheel):
        def get_tag(self):
            # The library is opened by ctypes: any Python 3 will do.
            return ("py3", "none", super().get_tag()[2])

    class WithLibrary(Distribution):
        def has_ext_modules(self):
            return True

    commands["bdist_wheel"], distribution = PlatformWheel, WithLibrary

setup(cmdclass=commands, distclass=distribution)
