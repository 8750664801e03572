#!/usr/bin/env python3
"""Compares the tables of README.md with the tests in the sources.

usage: check_promises.py [README.md]

Every title in the last column of a table under "Promises" and "Decided rules" must be that of a test: of Catch2 (without ", GPU"),
of a case (tests/cases, without id and place), or of a check. Every "promise:" and "semantic:" test must be in a table.
"""
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
TITLE = re.compile(r'(?:TEST_CASE|SEMANTIC|GGM_CASE_[A-Z_]+)\(\s*"((?:[^"\\]|\\.)*)"')
CHECK = re.compile(r'ggm_add_check\("([^"]+)"')


def titles_of_sources(tests):
    titles = set()
    for path in tests.rglob("*.cpp"):
        for title in TITLE.findall(path.read_text(encoding="utf-8")):
            title = re.sub(r", GPU$", "", title)
            title = re.sub(r"^(BR-\d{3}(, | )?)+", "", title)
            titles.add(title)
            titles.add("semantic: " + title)  # SEMANTIC writes it in front
    for path in tests.rglob("CMakeLists.txt"):
        titles.update("check: " + name for name in CHECK.findall(path.read_text(encoding="utf-8")))
    return titles


def titles_of_tables(readme):
    text = readme.read_text(encoding="utf-8")
    rows = [line for line in text[text.index("## Promises"):].splitlines() if line.startswith("| ")]
    return [title for row in rows for title in re.findall(r"`([^`]+)`", row.rstrip("| ").split(" | ")[-1])]


def main(arguments):
    named = titles_of_tables(pathlib.Path(arguments[0]) if arguments else HERE / "README.md")
    found = titles_of_sources(HERE.parent)
    problems = [f"README.md names `{title}`: no test has this title" for title in named if title not in found]
    must = {t for t in found if t.startswith("promise: ")}
    semantics = "".join(path.read_text(encoding="utf-8") for path in HERE.glob("semantics*.cpp"))
    must |= {"semantic: " + title for title in re.findall(r'SEMANTIC\(\s*"([^"]+)"', semantics)}
    problems += [f"`{title}` is not in README.md" for title in sorted(must - set(named))]
    for problem in problems:
        print(problem)
    print(f"promises: {len(named)} titles named, {len(problems)} offences")
    return 1 if problems or not named else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
