"""lay_out_kernel.py: what it writes, and that the loader `kernels` of Hugging Face loads and runs it. The latter is skipped where that
package or torch is not installed."""
import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import ggm
import lay_out_kernel

ROOT = pathlib.Path(__file__).resolve().parents[1]
LIBRARY = pathlib.Path(os.environ.get("GGM_LIBRARY") or ggm.raw.load()._name).resolve()
MISSING = [name for name in ("torch", "kernels") if importlib.util.find_spec(name) is None]
# Both copies of the package in one process. Expert 0 doubles a token, expert 1 swaps its two features.
PROGRAM = """
import pathlib, sys
import torch
import ggm.torch
from kernels import get_local_kernel

kernel = get_local_kernel(pathlib.Path(sys.argv[1]), backend=sys.argv[2])
x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
W = torch.tensor([[[2.0, 0.0], [0.0, 2.0]], [[0.0, 1.0], [1.0, 0.0]]])
layer = x, W, torch.tensor([[0, 1], [1, -1]]), torch.tensor([[0.5, 0.25], [1.0, 0.0]])
y = kernel.moe(*layer)
y.sum().backward()
print(y.flatten().tolist(), x.grad.flatten().tolist())
print(kernel.grouped_gemm(x.detach(), W, torch.tensor([1, 1])).flatten().tolist())
print(torch.equal(y, ggm.torch.moe(*layer)))
# Each copy ran in its own library: the operators of one did not replace those of the other.
print(*(package.torch._handles["host"].loaded._name for package in (kernel.ggm, ggm)))
"""


class Kernels(unittest.TestCase):
    def test_the_layout(self):
        with tempfile.TemporaryDirectory() as folder:
            result = self.run_script(LIBRARY, folder)
            self.assertEqual(result.returncode, 0, result.stderr)
            variant = pathlib.Path(result.stdout.strip())
            described = json.loads((variant / "metadata.json").read_text(encoding="utf-8"))
            backend = "cpu" if "no CUDA" in ggm.build_info() else "cuda"
            self.assertEqual(variant, pathlib.Path(folder, "build", f"torch-{backend}"))
            self.assertEqual((described["name"], described["backend"]["type"], described["version"]), ("ggm", backend, 1))
            self.assertTrue(re.fullmatch(f"_ggm_{backend}_[0-9a-f]{{10}}", described["id"]), described["id"])
            written = {path.relative_to(variant).as_posix() for path in variant.rglob("*") if path.is_file()}
            package = {path.relative_to(ROOT).as_posix() for path in (ROOT / "ggm").rglob("*.py")}
            self.assertEqual(written, package | {"__init__.py", "metadata.json", "ggm/lib/libggm.so"})
            self.assertEqual((variant / "ggm/lib/libggm.so").read_bytes(), LIBRARY.read_bytes())
            self.assertIn(f"{variant} is there already", self.run_script(LIBRARY, folder).stderr)

    def test_what_is_no_library_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            result = self.run_script(ROOT / "pyproject.toml", folder)
            self.assertEqual(result.returncode, 1)
            self.assertIn("pyproject.toml", result.stderr)
            self.assertNotIn("Traceback", result.stderr)
            self.assertEqual(list(pathlib.Path(folder).iterdir()), [])

    def test_the_id_tells_contents_apart(self):
        library = ggm.raw.load()
        ids = {lay_out_kernel.metadata(library, files)["id"] for files in ({"a": b"1"}, {"a": b"2"}, {"b": b"1"})}
        self.assertEqual(len(ids), 3)

    def test_architectures(self):
        for text, wanted in (("CUDA 13.0 (80;86-real;90a-real;100f-real)", ["8.0+PTX", "8.6", "9.0a", "10.0f"]),
                             ("CUDA 12.8 (80-virtual;120-real)", ["8.0+PTX", "12.0"]),
                             ("CUDA 12.8 (all-major)", []), ("no CUDA", None)):
            got = lay_out_kernel.cuda_architectures(f"libggm 0.1.0, commit 0123, {text}, host kernels plain")
            self.assertEqual(got, wanted, text)

    @unittest.skipIf(MISSING, f"{sys.executable} has no {' and no '.join(MISSING)}")
    def test_kernels_loads_and_runs_it(self):
        with tempfile.TemporaryDirectory() as folder:
            variant = lay_out_kernel.lay_out(LIBRARY, folder)
            backend = variant.name[len("torch-"):]
            environment = {name: value for name, value in os.environ.items() if not name.startswith(("GGM_", "LD_LIBRARY_PATH"))}
            # The other copy of the package has no library inside and takes the system's.
            (pathlib.Path(folder) / "libggm.so.0.1").symlink_to(LIBRARY)
            environment.update(PYTHONPATH=str(ROOT), LD_LIBRARY_PATH=folder, HF_HUB_OFFLINE="1", HF_HOME=folder)
            result = subprocess.run([sys.executable, "-c", PROGRAM, folder, backend], cwd="/", env=environment, capture_output=True,
                                    text=True, timeout=100)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(result.stdout.splitlines(), [
                "[1.5, 2.25, 4.0, 3.0] [1.25, 1.25, 1.0, 1.0]",
                "[2.0, 4.0, 4.0, 3.0]",
                "True",
                f"{variant.resolve() / 'ggm/lib/libggm.so'} libggm.so.0.1",
            ])

    def run_script(self, *arguments):
        return subprocess.run([sys.executable, ROOT / "lay_out_kernel.py", *arguments], capture_output=True, text=True, timeout=60)


if __name__ == "__main__":
    unittest.main()
