"""Reads ggm.h: its structs with their fields, enum constants, object-like macros and prototypes. For the checks of tests/abi and
tests/misuse; it knows the header's own style, not C."""
import pathlib
import re

PATH = pathlib.Path(__file__).resolve().parents[2] / "include" / "ggm" / "ggm.h"
FUNCTION_POINTER = re.compile(r"\(\s*\*\s*(\w+)\s*\)\s*\(")


def plain(text):
    """The header without comments, preprocessor lines and annotations."""
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    text = re.sub(r"^[ \t]*#(?:.*\\\n)*.*$", "", text, flags=re.M)
    return re.sub(r"\b(?:GGM_DEV|const)\b", " ", text)


class Header:
    def __init__(self, path=PATH):
        self.text = pathlib.Path(path).read_text(encoding="utf-8")
        self.plain = plain(self.text)

    def structs(self):
        """[(type name, [field name])] in the order of the header."""
        result = []
        for match in re.finditer(r"typedef struct \w+\s*\{(.*?)\}\s*(\w+)\s*;", self.plain, flags=re.S):
            fields = []
            for declaration in filter(None, (d.strip() for d in match.group(1).split(";"))):
                pointer = FUNCTION_POINTER.search(declaration)
                if pointer:
                    fields.append(pointer.group(1))
                    continue
                fields += [re.findall(r"[A-Za-z_]\w*", name)[-1] for name in declaration.split(",")]
            result.append((match.group(2), fields))
        return result

    def functions(self):
        """[(function name, [parameter name])]"""
        result = []
        for match in re.finditer(r"GGM_API[^;(]*?\b(ggm_\w+)\s*\(([^)]*)\)\s*;", self.plain, flags=re.S):
            words = [re.findall(r"[A-Za-z_]\w*", parameter) for parameter in match.group(2).split(",")]
            result.append((match.group(1), [w[-1] for w in words if w != ["void"]]))
        return result

    def constants(self):
        """Names of enum constants and of numeric macros."""
        names = []
        for match in re.finditer(r"\benum\s*\{(.*?)\}", self.plain, flags=re.S):
            names += re.findall(r"\b(GGM_\w+)\s*=", match.group(1))
        names += re.findall(r"^#define (GGM_(?:MAX_\w+|WORKSPACE_ALIGNMENT|STRIDE_SHARED))\b", self.text, flags=re.M)
        return names
