#!/usr/bin/env python3
"""Checks that the documents point at things that exist.

In every Markdown file of the repository:
- a relative link leads to a file or folder, and its #anchor to a heading there;
- a path in back quotes that begins with a folder of the repository exists (names with *, <, { or ... are patterns and pass);
- a name GGM_... or ggm_... occurs in some file that is not a document.

Links to the network are not followed. Usage: cmake/check_links.py [--root DIR]. Prints each offence as file:line; exits with 1 if
there is one.
"""
import argparse
import pathlib
import re
import subprocess
import sys

LINK = re.compile(r"!?\[(?:[^\]\[]|\[[^\]]*\])*\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")
CODE_SPAN = re.compile(r"`([^`]+)`")
HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*#*$")
FENCE = re.compile(r"^\s*(```|~~~)")
NAME = re.compile(r"\b(?:GGM|ggm)_[A-Za-z0-9_]*[A-Za-z0-9]\b(?!\*|\.\.\.)")
TOP_FOLDERS = ("src/", "include/", "tests/", "cmake/", "docs/", "bench/", "bindings/", ".ci/")


def repository_files(root):
    listed = subprocess.run(["git", "-C", str(root), "ls-files", "-co", "--exclude-standard"], capture_output=True, text=True)
    if listed.returncode == 0 and listed.stdout:
        return [root / name for name in listed.stdout.splitlines() if (root / name).is_file()]
    skipped = lambda p: any(part == ".git" or part.startswith("build") for part in p.relative_to(root).parts[:-1])
    return [p for p in root.rglob("*") if p.is_file() and not skipped(p)]


def anchor_of(heading):
    """The anchor that a heading gets: lower case, punctuation dropped, blanks to hyphens."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
    return re.sub(r"\s", "-", re.sub(r"[^\w\- ]", "", text.lower()))


def lines_of(path):
    """Each line with its number and whether it is inside a fenced block."""
    fenced = False
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if FENCE.match(line):
            fenced = not fenced
            yield number, line, True
        else:
            yield number, line, fenced


def anchors_of(path):
    anchors = set()
    for _, line, fenced in lines_of(path):
        match = HEADING.match(line)
        if match and not fenced:
            anchor, count = anchor_of(match.group(1)), 0
            while (f"{anchor}-{count}" if count else anchor) in anchors:
                count += 1
            anchors.add(f"{anchor}-{count}" if count else anchor)
    return anchors


def link_offence(target, path, root):
    if re.match(r"[a-z][a-z0-9+.-]*:", target):
        return None
    name, _, anchor = target.partition("#")
    file = (root / name.lstrip("/") if name.startswith("/") else path.parent / name).resolve() if name else path
    if not file.exists():
        return f"dead link: {target}"
    if anchor and file.suffix == ".md" and anchor.lower() not in anchors_of(file):
        return f"no heading for the anchor: {target}"
    return None


def path_offence(span, root):
    word = span.strip().split(" ")[0].rstrip(".,;:")
    if not word.startswith(TOP_FOLDERS) or re.search(r"[*<>{}$]|\.\.\.", word):
        return None
    word = re.sub(r":\d+$", "", word)
    return None if (root / word).exists() else f"no such path: {word}"


def offences_of(path, root, known):
    for number, line, fenced in lines_of(path):
        if not fenced:
            without_code = CODE_SPAN.sub(lambda m: " " * len(m.group(0)), line)
            for match in LINK.finditer(line):
                # A link inside a code span is an example; its text may itself be code.
                if without_code[match.start()] == line[match.start()]:
                    yield number, link_offence(match.group(1), path, root)
            for match in CODE_SPAN.finditer(line):
                yield number, path_offence(match.group(1), root)
        for match in NAME.finditer(line):
            if match.group(0) not in known:
                yield number, f"a name that no source file has: {match.group(0)}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    root = parser.parse_args().root.resolve()
    files = repository_files(root)
    documents = [f for f in files if f.suffix == ".md"]
    known = set()
    for file in files:
        if file.suffix != ".md":
            try:
                known.update(NAME.findall(file.read_text(encoding="utf-8")))
            except UnicodeDecodeError:
                pass
    offences = 0
    for document in documents:
        for number, offence in offences_of(document, root, known):
            if offence:
                print(f"{document.relative_to(root)}:{number}: {offence}")
                offences += 1
    print(f"links: {len(documents)} documents, {offences} offences")
    return 1 if offences else 0


if __name__ == "__main__":
    sys.exit(main())
