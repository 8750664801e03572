#!/usr/bin/env python3
"""Runs test modules of this folder: run.py [module ...], all of them without one. Environment: GGM_LIBRARY, the library to test;
CC, a C compiler. Exit: 0 passed, 1 failed, 77 skipped because numpy is not installed."""
import importlib
import pathlib
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent


def main(names):
    sys.path[:0] = [str(HERE), str(HERE.parent)]
    suite = unittest.TestSuite()
    for name in names or sorted(path.stem for path in HERE.glob("test_*.py")):
        try:
            module = importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name != "numpy":
                raise
            print(f"{name}: skipped, {sys.executable} has no numpy (Debian: apt-get install python3-numpy)")
            return 77
        suite.addTests(unittest.defaultTestLoader.loadTestsFromModule(module))
    result = unittest.TextTestRunner(verbosity=2).run(suite)
    if result.testsRun == 0:
        print("no tests were found")
        return 1
    return 0 if result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
