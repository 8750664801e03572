#!/usr/bin/env python3
"""The link check on a small tree with one offence of each kind: check_links_test.py CHECK_LINKS."""
import pathlib
import subprocess
import sys
import tempfile

GOOD = """# First heading

See [there](docs/other.md), [a part](docs/other.md#second-part), [here](#first-heading), [code](src/a.c), [web](https://example.org/x).
`src/a.c`, `src/*.c`, `docs/<name>.md` and ggm_known are fine. `[not a link](nowhere.md)` is an example.

```
[not a link](nowhere.md)
```
"""
BAD = {
    "[dead](docs/none.md)": "dead link: docs/none.md",
    "[dead anchor](docs/other.md#third)": "no heading for the anchor: docs/other.md#third",
    "[dead own anchor](#nothing)": "no heading for the anchor: #nothing",
    "[`code` text](docs/none2.md)": "dead link: docs/none2.md",
    "See `src/b.c`.": "no such path: src/b.c",
    "Set GGM_UNKNOWN.": "a name that no source file has: GGM_UNKNOWN",
}


def check(script, root, text):
    (root / "README.md").write_text(text)
    return subprocess.run([sys.executable, script, "--root", root], capture_output=True, text=True)


def main():
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "docs").mkdir()
        (root / "src").mkdir()
        (root / "docs/other.md").write_text("# Other\n\n## Second part\n\n[up](../README.md)\n")
        (root / "src/a.c").write_text("int ggm_known(void);\n")
        done = check(sys.argv[1], root, GOOD)
        if done.returncode != 0:
            sys.exit("a sound tree was refused:\n" + done.stdout + done.stderr)
        for line, offence in BAD.items():
            done = check(sys.argv[1], root, GOOD + line + "\n")
            if done.returncode != 1 or f"README.md:9: {offence}" not in done.stdout or "1 offences" not in done.stdout:
                sys.exit(f"not found: {offence}\n{done.stdout}{done.stderr}")
    print(f"{len(BAD)} kinds of offence found")


if __name__ == "__main__":
    main()
