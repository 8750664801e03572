"""The wheels, pure and with the library inside: each holds the whole package and nothing else, and works where it is put."""
import importlib.metadata
import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import unittest
import zipfile

import ggm

ROOT = pathlib.Path(__file__).resolve().parents[1]
PACKAGES = ["ggm", "ggm.raw"]
LIBRARY = pathlib.Path(os.environ.get("GGM_LIBRARY") or ggm.raw.load()._name).resolve()
# Two tokens, two experts: expert 0 doubles a token, expert 1 swaps its two features.
ONE_CALL = """
from array import array
import ggm

def tensor(kind, *shape, numbers):
    return memoryview(array(kind, numbers)).cast("B").cast(kind, shape)

x, weights = tensor("f", 2, 2, numbers=[1, 2, 3, 4]), tensor("f", 2, 2, numbers=[0.5, 0.25, 1, 0])
weight, ids = tensor("f", 2, 2, 2, numbers=[2, 0, 0, 2, 0, 1, 1, 0]), tensor("i", 2, 2, numbers=[0, 1, 1, -1])
y = tensor("f", 2, 2, numbers=[0] * 4)
with ggm.Handle("host") as handle:
    ggm.moe_forward(handle, x, weight, y, weight_order="NK", ids=ids, routing_weights=weights)
print(ggm.raw.load()._name, *(number for row in y.tolist() for number in row))
"""


def modules():
    return {path.relative_to(ROOT).as_posix() for path in (ROOT / "ggm").rglob("*.py")}


class Package(unittest.TestCase):
    def test_pyproject_names_every_folder(self):
        text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
        listed = re.findall(r'"([\w.]+)"', re.search(r"^packages = \[(.*)\]", text, flags=re.M).group(1))
        self.assertEqual(sorted(listed), PACKAGES)
        self.assertEqual(sorted({pathlib.PurePath(name).parent.as_posix().replace("/", ".") for name in modules()}), PACKAGES)

    def test_what_is_public_is_there_and_documented(self):
        for name in ggm.__all__:
            value = getattr(ggm, name)
            if callable(value):
                self.assertTrue(value.__doc__, f"ggm.{name} has no docstring")

    def skip_without(self, *needed):
        for name in needed:
            if importlib.util.find_spec(name) is None:
                self.skipTest(f"{sys.executable} has no {name} (Debian: apt-get install python3-{name})")

    def skip_without_builder(self):
        self.skip_without("setuptools")
        version = importlib.metadata.version("setuptools")
        parts = tuple(map(int, version.split(".")[:2]))
        if parts < (61, 0):
            self.skipTest(f"setuptools {version} does not read the table project of pyproject.toml; 61 does")
        if parts < (70, 1):  # from then on setuptools makes wheels by itself
            self.skip_without("wheel")

    def build(self, folder, **changes):
        """(the wheel, the files in it but its metadata); built by the backend as a front end calls it, so that pip is not needed."""
        source, out = folder / "source", folder / "out"
        if not source.exists():
            shutil.copytree(ROOT, source, ignore=shutil.ignore_patterns("__pycache__", "*.so*", "build", "*.egg-info"))
        out.mkdir()
        code = f"from setuptools import build_meta; build_meta.build_wheel({str(out)!r})"
        environment = {name: value for name, value in os.environ.items() if name != "GGM_WHEEL_LIBRARY"}
        result = subprocess.run([sys.executable, "-c", code], cwd=source, env={**environment, **changes}, capture_output=True,
                                text=True, timeout=100)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        wheel, = out.iterdir()
        wheel = wheel.rename(folder / wheel.name)
        out.rmdir()
        with zipfile.ZipFile(wheel) as archive:
            return wheel, {name for name in archive.namelist() if ".dist-info/" not in name}

    def test_the_wheel(self):
        self.skip_without_builder()
        with tempfile.TemporaryDirectory() as name:
            unpacked = pathlib.Path(name) / "unpacked"
            wheel, inside = self.build(pathlib.Path(name))
            self.assertEqual(wheel.name, f"ggm-{ggm.__version__}-py3-none-any.whl")
            self.assertEqual(inside, modules())
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(unpacked)
            code = "import ggm; print(ggm.__file__, ggm.Handle('host').info.backend.name)"
            environment = {**os.environ, "PYTHONPATH": str(unpacked), "GGM_LIBRARY": str(LIBRARY)}
            printed = subprocess.run([sys.executable, "-c", code], env=environment, cwd="/", check=True, capture_output=True,
                                     text=True, timeout=60)
            self.assertEqual(printed.stdout.split(), [str(unpacked / "ggm" / "__init__.py"), "HOST"])

    def test_the_wheel_with_the_library(self):
        self.skip_without_builder()
        self.skip_without("pip", "venv")
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            python = folder / "environment" / "bin" / "python"
            wheel, inside = self.build(folder, GGM_WHEEL_LIBRARY=str(LIBRARY))
            platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
            self.assertEqual(wheel.name, f"ggm-{ggm.__version__}-py3-none-{platform}.whl")
            self.assertEqual(inside, modules() | {"ggm/lib/libggm.so"})
            self.assertEqual(self.build(folder)[1], modules(), "a later wheel has nothing left of it")

            subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "environment"], check=True, timeout=60)
            installed = subprocess.run([sys.executable, "-m", "pip", "--python", python, "install", "--no-deps", "--no-index", wheel],
                                       capture_output=True, text=True, timeout=60)
            if "no such option: --python" in installed.stderr:
                self.skipTest(f"pip {importlib.metadata.version('pip')} cannot install into another environment; 22.3 can")
            self.assertEqual(installed.returncode, 0, installed.stdout + installed.stderr)
            # -I: nothing of this environment, nor of the source tree, is looked at; no array package is there.
            environment = {name: value for name, value in os.environ.items() if not name.startswith("GGM_") and name != "LD_LIBRARY_PATH"}
            printed = subprocess.run([python, "-I", "-c", ONE_CALL], env=environment, cwd="/", capture_output=True, text=True, timeout=60)
            self.assertEqual(printed.stderr, "")
            library, *numbers = printed.stdout.split()
            self.assertTrue(library.startswith(str(folder.resolve() / "environment")) and library.endswith("/ggm/lib/libggm.so"), library)
            self.assertEqual(numbers, ["1.5", "2.25", "4.0", "3.0"])

    def test_a_file_that_is_not_the_library_makes_no_wheel(self):
        self.skip_without_builder()
        with tempfile.TemporaryDirectory() as name, self.assertRaisesRegex(AssertionError, "GGM_WHEEL_LIBRARY = .*pyproject.toml: "):
            self.build(pathlib.Path(name), GGM_WHEEL_LIBRARY=str(ROOT / "pyproject.toml"))


if __name__ == "__main__":
    unittest.main()
