#!/usr/bin/env python3
"""Makes the Rust declarations of ggm-sys from include/ggm/ggm.h and version.h.

Written: ggm-sys/src/types.rs (constants, structs) and ggm-sys/src/functions.rs (prototypes). Both are committed, so that
building the crate needs neither Python nor a C parser. The comments of the header become the documentation of the items.

The header keeps a narrow style (fixed-width fields, anonymous enums with explicit values, no unions), and this script knows
that style, not C: whatever it does not understand is an error, never left out in silence.

Usage: bindings/rust/generate.py [--check]. --check writes nothing, prints the difference and exits with 1 if there is one.
"""
import argparse
import difflib
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
INCLUDE = HERE.parents[1] / "include" / "ggm"
SOURCE = HERE / "ggm-sys" / "src"

SCALARS = {"int32_t": "i32", "int64_t": "i64", "uint32_t": "u32", "size_t": "usize", "float": "f32", "double": "f64",
           "void": "c_void", "char": "c_char"}
ZERO = {"i32": "0", "i64": "0", "u32": "0", "usize": "0", "f64": "0.0"}
# Macros that are values; a bound is compared with 64-bit fields, the alignment is a number of bytes.
MACROS = {"GGM_MAX_ROWS": "i64", "GGM_MAX_EXPERTS": "i64", "GGM_MAX_GROUPS": "i64", "GGM_MAX_TOP_K": "i64",
          "GGM_WORKSPACE_ALIGNMENT": "usize", "GGM_STRIDE_SHARED": "i64"}
# Macros that are no values of the interface: guards, markers, initialisers (those become INIT of each struct).
IGNORED = re.compile(r"GGM_GGM_H|GGM_API|GGM_DEV|GGM_\w+_INIT")
COMMENT = re.compile(r"/\*(.*?)\*/", re.S)
RULE = re.compile(r"={20,}")


def stop(text):
    sys.exit(f"generate.py: {text}")


def rust_type(c_type):
    """A C type without its name: 'const void* const*' is '*const *const c_void'."""
    words = re.findall(r"\w+|\*", re.sub(r"\b(?:GGM_DEV|struct)\b", " ", c_type))
    base = [w for w in words[:words.index("*")] if w != "const"] if "*" in words else [w for w in words if w != "const"]
    if len(base) != 1 or not (base[0] in SCALARS or base[0].startswith(("ggm_", "CU"))):
        stop(f"unknown type: {c_type!r}")
    result = SCALARS.get(base[0], base[0])
    if "*" not in words:
        return "()" if result == "c_void" else result
    constant = "const" in words[:words.index("*")]
    for word in words[words.index("*"):]:
        if word == "*":
            result = ("*const " if constant else "*mut ") + result
            constant = False
        elif word == "const":
            constant = True
        else:
            stop(f"unknown type: {c_type!r}")
    return result


def split_name(declaration):
    """'const void* ids' -> ('const void*', 'ids')"""
    match = re.fullmatch(r"(.*?)\b(\w+)", declaration.strip(), re.S)
    if not match or not match.group(1).strip():
        stop(f"not a declaration: {declaration!r}")
    return match.group(1), match.group(2)


def function_pointer(declaration):
    match = re.fullmatch(r"(.*?)\(\s*\*\s*(\w+)\s*\)\s*\((.*)\)", declaration.strip(), re.S)
    if not match:
        return None
    parameters = ", ".join(f"{name}: {rust_type(c)}" for c, name in map(split_name, match.group(3).split(",")))
    result = rust_type(match.group(1))
    arrow = "" if result == "()" else f" -> {result}"
    return match.group(2), f"Option<unsafe extern \"C\" fn({parameters}){arrow}>"


def documentation(comments, indent=""):
    """Comments as /// lines; a row of equals signs is the frame of a section heading and says nothing."""
    lines = []
    for comment in comments:
        for line in comment.split("\n"):
            line = re.sub(r"^\s*\* ?", "", line).strip()
            if not RULE.search(line):
                lines.append(line)
        while lines and not lines[-1]:
            lines.pop()
    return "".join(f"{indent}///{' ' + line if line else ''}\n" for line in lines)


def items(body, separator):
    """[(declaration, [its comments])]: a comment belongs to what it follows on the same line, else to what comes next."""
    result, pending, position, declaration = [], [], 0, ""
    after = False  # a declaration just ended on this line
    for token in re.finditer(r"/\*.*?\*/|\n|\([^()]*\)|[^\n/(%s]+|.|%s" % (separator, separator), body, re.S):
        text = token.group(0)
        if text.startswith("/*"):
            (result[-1][1] if after else pending).append(text[2:-2])
        elif text == "\n":
            after = False
        elif text == separator:
            result.append((declaration.strip(), pending))
            declaration, pending, after = "", [], True
        elif text.strip():
            declaration += " " + text.strip()
            after = False
        position = token.end()
    if position != len(body):
        stop("a struct or enum that cannot be read")
    if declaration.strip():  # the last constant of an enum has no comma; its comment came before the closing brace
        result.append((declaration.strip(), pending))
    elif pending and result:
        result[-1][1].extend(pending)
    return result


class Output:
    def __init__(self):
        self.types, self.functions, self.names, self.layout = [], [], [], []

    def constant(self, name, rust, value, group, own):
        """group: comments on this constant and the next ones; own: comments on it alone."""
        if name in self.names:
            stop(f"{name} is defined twice")
        self.names.append(name)
        between = "///\n" if group and own else ""
        self.types.append(f"{documentation(group)}{between}{documentation(own)}pub const {name}: {rust} = {value};\n")

    def enum(self, body, comments):
        """The comment above an enum describes all of its constants: it stands at the first."""
        for entry, own in items(body, ","):
            match = re.fullmatch(r"(GGM_\w+)\s*=\s*(-?\d+)", entry)
            if not match:
                stop(f"an enum constant without an explicit value: {entry!r}")
            self.constant(match.group(1), "i32", match.group(2), comments, own)
            comments = []

    def struct(self, name, body, comments, header):
        initialiser = name[:-2].upper() + "_INIT"
        if f"#define {initialiser}" not in header:
            stop(f"{name} has no {initialiser}")
        fields = []
        for declaration, own in items(body, ";"):
            pointer = function_pointer(declaration)
            if pointer:
                fields.append((*pointer, own))
                continue
            first, *others = declaration.split(",")
            c_type, field = split_name(first)
            rust = rust_type(c_type)
            fields.append((field, rust, own))
            fields += [(other.strip(), rust, []) for other in others]
        if fields[0][:2] != ("struct_size", "u32"):
            stop(f"{name} does not begin with struct_size")
        lines = [f"{documentation(comments)}#[repr(C)]\n#[derive(Clone, Copy, Debug)]\npub struct {name} {{\n"]
        lines += [f"{documentation(own, '    ')}    pub {field}: {rust},\n" for field, rust, own in fields]
        lines.append(f"}}\n\nimpl {name} {{\n    /// Zeros and the size of the struct, as {initialiser}.\n"
                     "    pub const INIT: Self = Self {\n")
        for field, rust, _ in fields:
            if field == "struct_size":
                value = "core::mem::size_of::<Self>() as u32"
            elif rust.startswith("*"):
                value = "core::ptr::null()" if rust.startswith("*const") else "core::ptr::null_mut()"
            else:
                value = "None" if rust.startswith("Option<") else ZERO[rust]
            lines.append(f"        {field}: {value},\n")
        lines.append("    };\n}\n\n")
        lines.append(f"impl Default for {name} {{\n    fn default() -> Self {{\n        Self::INIT\n    }}\n}}\n")
        self.types.append("\n" + "".join(lines) + "\n")
        self.layout.append((name, [field for field, _, _ in fields]))

    def opaque(self, tag, alias, comments):
        self.types.append("\n/// Opaque: only pointers to it exist.\n#[repr(C)]\n#[derive(Debug)]\n"
                          f"pub struct {tag} {{\n    _private: [u8; 0],\n}}\n"
                          f"{documentation(comments)}pub type {alias} = *mut {tag};\n")

    def function(self, result, name, parameters, comments):
        parameters = re.sub(r"\s+", " ", parameters).strip()
        listed = [] if parameters == "void" else [split_name(p) for p in parameters.split(",")]
        rust = ", ".join(f"{p}: {rust_type(c)}" for c, p in listed)
        # A query and its call stand together under one comment, which went to the query.
        query = f"{name}_workspace_size"
        documented = documentation(comments, "    ")
        if not documented and any(f"fn {query}(" in other for other in self.functions):
            documented = f"    /// The call whose workspace [`{query}`] asks for.\n"
        elif not documented:
            documented = "    /// The bytes of workspace of one problem; validates it as well.\n"
        lines = f"    fn {name}({rust}) -> {rust_type(result)};\n"
        if len(lines) > 128:
            inner = "".join(f"        {p},\n" for p in rust.split(", "))
            lines = f"    fn {name}(\n{inner}    ) -> {rust_type(result)};\n"
        self.functions.append(documented + lines)


STATEMENT = re.compile(r"""
    (?P<comment>/\*.*?\*/)
  | (?P<preprocessor>\#(?:[^\n]*\\\n)*[^\n]*)
  | typedef\s+struct\s+\w+\s*\{(?P<struct>.*?)\}\s*(?P<struct_name>\w+)\s*;
  | typedef\s+struct\s+(?P<tag>\w+)\s*\*\s*(?P<opaque>\w+)\s*;
  | typedef\s+(?P<aliased>\w+)\s+(?P<alias>\w+)\s*;
  | enum\s*\{(?P<enum>.*?)\}\s*;
  | GGM_API\s+(?P<result>[^;(]*?)(?P<function>ggm_\w+)\s*\((?P<parameters>[^)]*)\)\s*;
  | (?P<language>extern\s+"C"\s*\{|\}\s*)
  | (?P<space>\s+)
""", re.S | re.X)


def macro(text, comments, out):
    """A macro that is a value becomes a constant; one that is neither known nor to be ignored is an error."""
    match = re.match(r"#define\s+(GGM_\w+)\s+(?:\(\(int64_t\))?(-?\d+)\)?\s*(/\*.*\*/)?\s*$", text, re.S)
    if match and match.group(1) in MACROS:
        own = COMMENT.findall(match.group(3) or "")
        out.constant(match.group(1), MACROS[match.group(1)], match.group(2), comments, own)
        return
    name = re.match(r"#define\s+(\w+)", text)
    if name and not IGNORED.fullmatch(name.group(1)):
        stop(f"unknown macro: {name.group(1)}")


def read(header):
    out = Output()
    position, pending = 0, []
    while position < len(header):
        match = STATEMENT.match(header, position)
        if not match:
            stop(f"cannot read: {header[position:position + 80]!r}")
        found = match.groupdict()
        position = match.end()
        if found["comment"]:
            text = found["comment"][2:-2]
            # A framed comment is the chapter of several items, not the text of the next one.
            pending = [] if RULE.search(text) or text.startswith(" libggm:") else pending + [text]
            continue
        if found["space"] is not None:
            # A blank line ends what a comment belongs to, unless the item follows the comment at once.
            if found["space"].count("\n") > 1:
                pending = []
            continue
        if found["preprocessor"]:
            macro(found["preprocessor"], pending, out)
        elif found["struct"] is not None:
            out.struct(found["struct_name"], found["struct"], pending, header)
        elif found["opaque"]:
            out.opaque(found["tag"], found["opaque"], pending)
        elif found["alias"]:
            out.types.append(f"{documentation(pending)}pub type {found['alias']} = {rust_type(found['aliased'])};\n")
        elif found["enum"] is not None:
            out.enum(found["enum"], pending)
        elif found["function"]:
            out.function(found["result"], found["function"], found["parameters"], pending)
        pending = []
    return out


def version():
    text = (INCLUDE / "version.h").read_text(encoding="utf-8")
    parts = [int(re.search(rf"#define GGM_VERSION_{part} (\d+)", text).group(1)) for part in ("MAJOR", "MINOR", "PATCH")]
    lines = [f"/// A part of the version that these declarations are from.\npub const GGM_VERSION_{part}: i32 = {value};\n"
             for part, value in zip(("MAJOR", "MINOR", "PATCH"), parts)]
    lines.append("/// The version that these declarations are from: 10000 * major + 100 * minor + patch.\n"
                 f"pub const GGM_VERSION: i32 = {10000 * parts[0] + 100 * parts[1] + parts[2]};\n")
    return "".join(lines)


def layout_macro(out):
    """The names of all structs, fields and constants, for the test that compares them with what the C compiler says."""
    lines = ["/// Calls `$structs!` with every struct and its fields, and `$constants!` with every constant. For tests.\n"
             "#[doc(hidden)]\n#[macro_export]\nmacro_rules! every_declaration {\n    ($structs:ident, $constants:ident) => {\n"]
    for name, fields in out.layout:
        lines.append(f"        $structs!({name}: {', '.join(fields)});\n")
    for name in out.names:
        lines.append(f"        $constants!({name});\n")
    lines.append("    };\n}\n")
    return "".join(lines)


def files():
    out = read((INCLUDE / "ggm.h").read_text(encoding="utf-8"))
    made_by = "// Made by bindings/rust/generate.py from include/ggm/ggm.h; not to be edited.\n"
    types = f"{version()}\n{''.join(out.types)}\n{layout_macro(out)}"
    types = made_by + "use std::os::raw::{c_char, c_void};\n\n" + re.sub(r"\n{3,}", "\n\n", types)
    functions = made_by + "\nfunctions! {\n" + "".join(out.functions) + "}\n"
    return {SOURCE / "types.rs": types, SOURCE / "functions.rs": functions}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    different = 0
    for path, text in files().items():
        if not check:
            path.write_text(text, encoding="utf-8")
            continue
        present = path.read_text(encoding="utf-8") if path.exists() else ""
        difference = list(difflib.unified_diff(present.splitlines(), text.splitlines(), path.name, "ggm.h", lineterm="", n=0))
        print("\n".join(difference), end="\n" if difference else "")
        different += bool(difference)
    print(f"generate: {'compared' if check else 'written'}; {different} files out of date")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
