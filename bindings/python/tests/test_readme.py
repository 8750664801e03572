"""The programs of README.md print what stands below them, and its tables name what exists."""
import contextlib
import io
import pathlib
import re
import subprocess
import sys
import unittest

import numpy  # noqa: F401  the programs need it

import ggm

README = pathlib.Path(__file__).resolve().parents[1] / "README.md"


class Readme(unittest.TestCase):
    def test_programs_print_what_it_says(self):
        pairs = re.findall(r"```python\n(.*?)```\s+It prints\s+```text\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.S)
        self.assertGreaterEqual(len(pairs), 2)
        for program, wanted in pairs:
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile(program, str(README), "exec"), {"__name__": "readme"})
            self.assertEqual(printed.getvalue(), wanted)

    def test_every_name_of_the_package_exists(self):
        names = set(re.findall(r"`ggm\.([A-Za-z_]+)", README.read_text(encoding="utf-8"))) - {"torch"}
        self.assertGreater(len(names), 10)
        self.assertEqual([name for name in sorted(names) if not hasattr(ggm, name)], [])

    def test_the_package_imports_no_torch(self):
        code = f"import sys; sys.path.insert(0, {str(README.parent)!r}); import ggm; print('torch' in sys.modules, hasattr(ggm, 'torch'))"
        printed = subprocess.run([sys.executable, "-c", code], cwd="/", check=True, capture_output=True, text=True, timeout=60)
        self.assertEqual(printed.stdout.split(), ["False", "False"])


if __name__ == "__main__":
    unittest.main()
