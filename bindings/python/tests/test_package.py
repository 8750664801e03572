"""The wheel is pure Python, holds the whole package and nothing else, and works where it is unpacked."""
import importlib.metadata
import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

import ggm

ROOT = pathlib.Path(__file__).resolve().parents[1]
PACKAGES = ["ggm", "ggm.raw"]


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

    def test_the_wheel(self):
        for needed in ("setuptools", "wheel"):
            if importlib.util.find_spec(needed) is None:
                self.skipTest(f"{sys.executable} has no {needed} (Debian: apt-get install python3-{needed})")
        version = importlib.metadata.version("setuptools")
        if int(version.partition(".")[0]) < 61:
            self.skipTest(f"setuptools {version} does not read the table project of pyproject.toml; 61 does")
        with tempfile.TemporaryDirectory() as folder:
            source, out, unpacked = (pathlib.Path(folder) / name for name in ("source", "out", "unpacked"))
            shutil.copytree(ROOT, source, ignore=shutil.ignore_patterns("__pycache__", "*.so*", "build", "*.egg-info"))
            # The backend as a front end calls it, so that pip and a network are not needed.
            code = f"from setuptools import build_meta; build_meta.build_wheel({str(out)!r})"
            out.mkdir()
            subprocess.run([sys.executable, "-c", code], cwd=source, check=True, capture_output=True, timeout=100)
            wheel, = out.iterdir()
            self.assertEqual(wheel.name, f"ggm-{ggm.__version__}-py3-none-any.whl")
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(unpacked)
                inside = {name for name in archive.namelist() if ".dist-info/" not in name}
            self.assertEqual(inside, modules())
            code = "import ggm; print(ggm.__file__, ggm.Handle('host').info.backend.name)"
            environment = {**os.environ, "PYTHONPATH": str(unpacked), "GGM_LIBRARY": ggm.raw.load()._name}
            printed = subprocess.run([sys.executable, "-c", code], env=environment, cwd="/", check=True, capture_output=True,
                                     text=True, timeout=60)
            self.assertEqual(printed.stdout.split(), [str(unpacked / "ggm" / "__init__.py"), "HOST"])


if __name__ == "__main__":
    unittest.main()
