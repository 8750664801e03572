#!/usr/bin/env python3
"""Shows Doxygen the plain comments of include/ggm as its own: doxygen_filter.py FILE, the text to standard output.

The headers have comments that read well in the file and no Doxygen marks. Here a comment behind a declaration becomes that one's, a
comment in front of one likewise, the first of a file and those of its sections become parts of the file's page, lines as they
are. No line is added or removed, so a warning names the line of the header. Run by Doxygen, see docs/Doxyfile.
"""
import pathlib
import re
import sys

COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
RULE = re.compile(r"^\s*\*?\s*={10,}\s*$")
SPECIAL = re.compile(r"([\\@&$#<>%\"]|::)")  # what Doxygen would take for a command, a link or HTML


def body_lines(comment):
    lines = comment[2:-2].split("\n")
    return [lines[0]] + [re.sub(r"^\s*\* ?", "", line) for line in lines[1:]]


def for_the_file(comment):
    lines = ["" if RULE.match(line) else line.strip("\n") for line in body_lines(comment)]
    if len(lines) == 1:
        return comment
    # The command stands on the line of the opening mark, so that the count of lines stays.
    return "/** @file\n" + "\n".join([f"@verbatim {lines[0]} {lines[1]}".rstrip(), *lines[2:-1], lines[-1].rstrip() + " @endverbatim */"])


def for_a_declaration(comment, mark):
    # Two points would end the first sentence.
    return mark + "\n".join(SPECIAL.sub(r"\\\1", line).replace(" .. ", " \u2026 ") for line in body_lines(comment)) + "*/"


def convert(text):
    def replace(match):
        comment, before = match.group(0), text[text.rfind("\n", 0, match.start()) + 1:match.start()].strip()
        if match.start() == 0 or RULE.match(comment[2:].split("\n")[0]):
            return for_the_file(comment)
        if before.startswith("}") or (before.startswith("#") and not before.startswith("#define")):
            return comment  # names what ends here
        return for_a_declaration(comment, "/**<" if before else "/**")

    return COMMENT.sub(replace, text)


if __name__ == "__main__":
    sys.stdout.reconfigure(encoding="utf-8")
    sys.stdout.write(convert(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8")))
