"""Finds type names that are defined twice in one namespace, and public types of one name: check_type_names.py [ROOT]

Two classes of one name in one namespace are undefined behaviour, even when no file sees both: the linker keeps one of the two
sets of functions, and no compiler says so. The sources of the libraries, the program and the bindings are read together, and
each folder of tests and each benchmark together with these. Types in an anonymous namespace belong to their file and do not
count. Public types, those of a header below include, have names of their own in all namespaces; types within a type are named
with it. The exit code is 1 when a name is defined twice.
"""

import collections
import pathlib
import re
import sys

# What is not code: comments, raw strings, strings, characters. A digit before a quote is a separator, as in 1'000.
NOT_CODE = re.compile(
    r"""//(?:[^\\\n]|\\.|\\\n)* | /\*.*?\*/ | R"(?P<mark>[^()\s]{0,16})\(.*?\)(?P=mark)" |
        "(?:[^"\\\n]|\\.)*" | (?<![0-9a-fA-F])'(?:[^'\\\n]|\\.)+'""",
    re.S | re.X,
)
TOKEN = re.compile(r"[A-Za-z_]\w*|::|\S")
KEYS = {"struct", "class", "union", "enum"}
CLOSING = {"(": ")", "[": "]", "<": ">"}

Definition = collections.namedtuple("Definition", "name path line")


def blank(match):
    """Spaces and the same line breaks, so that line numbers stay."""
    text = match.group()
    return ("0" if text[0] in "\"'R" else " ") + re.sub(r"[^\n]", " ", text[1:])


def drop_directives(text):
    """Without preprocessor lines and without what follows an #else or #elif: one branch is enough, and braces stay balanced."""
    lines, skipping, continued = [], [], False
    for line in text.split("\n"):
        directive = re.match(r"\s*#\s*(\w+)", line)
        if directive and not continued:
            word = directive.group(1)
            if word in ("if", "ifdef", "ifndef"):
                skipping.append(False)
            elif word in ("else", "elif") and skipping:
                skipping[-1] = True
            elif word == "endif" and skipping:
                skipping.pop()
        hidden = bool(directive) or continued or any(skipping)
        continued = (bool(directive) or continued) and line.rstrip().endswith("\\")
        lines.append("" if hidden else line)
    return "\n".join(lines)


def skip_group(tokens, start):
    """The position after the bracket that closes the one at `start`."""
    opening, closing = tokens[start], CLOSING[tokens[start]]
    depth = 0
    for position in range(start, len(tokens)):
        depth += (tokens[position] == opening) - (tokens[position] == closing)
        if depth == 0:
            return position + 1
    return len(tokens)


def find_key(tokens):
    """The position of struct, class, union or enum outside of every bracket, or -1. Behind a `=` comes no definition."""
    position = 0
    while position < len(tokens) and tokens[position] != "=":
        if tokens[position] in KEYS:
            return position
        position = skip_group(tokens, position) if tokens[position] in CLOSING else position + 1
    return -1


def defined_type(tokens):
    """(is it a type's definition, its name or None) for the tokens before an opening brace."""
    position = find_key(tokens)
    if position < 0:
        return False, None
    while position < len(tokens) and (tokens[position] in KEYS or tokens[position] in ("[", "alignas", "(")):
        position = skip_group(tokens, position) if tokens[position] in CLOSING else position + 1
    if re.fullmatch(r"[A-Z_]+ (?!final)\w+", " ".join(tokens[position : position + 2])):
        position += 1  # a macro, for example one that exports a class
    name = ""
    while position < len(tokens) and tokens[position] not in ("final", ":"):
        if tokens[position] == "<":
            end = skip_group(tokens, position)
            name += " ".join(tokens[position:end])
            position = end
        elif tokens[position] == "::" or (re.match(r"\w", tokens[position]) and (not name or name.endswith("::"))):
            name += tokens[position]
            position += 1
        else:
            return False, None  # a function that returns a struct, a variable
    return True, name or None


def without_access(tokens):
    while len(tokens) > 1 and tokens[0] in ("public", "private", "protected") and tokens[1] == ":":
        tokens = tokens[2:]
    return tokens


def opened_scope(tokens, scope):
    """What a brace after these tokens opens: its scope (names, or None where types do not count), and the type it defines."""
    tokens = without_access(tokens)
    if scope is None:
        return None, None
    if tokens[:1] == ["inline"] and "namespace" in tokens[:2]:
        tokens = tokens[1:]
    if tokens[:1] == ["namespace"]:
        names = [token for token in tokens[1:] if re.match(r"\w", token) and token != "inline"]
        return (scope + tuple(names) if names else None), None
    if tokens[:1] == ["extern"] and len(tokens) == 2:
        return scope, None
    is_type, name = defined_type(tokens)
    if not is_type or name is None:
        return None, None
    inside = (*scope, name)
    return (None if "enum" in tokens else inside), "::".join(inside)


def definitions(text, path):
    """Every type with a body that is not in an anonymous namespace or in a function."""
    code = drop_directives(NOT_CODE.sub(blank, text))
    scopes = [((), 0)]  # what is open, and how many brackets were open when it began, as in f(X{1})
    tokens, brackets, line, end = [], 0, 1, 0
    for match in TOKEN.finditer(code):
        line += code.count("\n", end, match.start())
        end = match.start()
        token = match.group()
        if token == "{":
            scope, name = opened_scope(tokens, scopes[-1][0] if brackets == 0 else None)
            if name:
                yield Definition(name, path, line)
            scopes.append((scope, brackets))
            tokens, brackets = [], 0
        elif token == "}":
            brackets = scopes.pop()[1] if len(scopes) > 1 else 0
            tokens = []
        elif token == ";" and brackets == 0:
            tokens = []
        else:
            brackets += (token in "([") - (token in ")]")
            tokens.append(token)


def twice(found):
    """{name: definitions} of those that are defined more than once."""
    names = collections.defaultdict(list)
    for definition in found:
        names[definition.name].append(definition)
    return {name: places for name, places in names.items() if len(places) > 1}


def public_twice(found):
    """{name: definitions} of public types that share a name, in whatever namespaces."""
    types = {definition.name for definition in found}
    names = collections.defaultdict(dict)
    for definition in found:
        space, _, name = definition.name.rpartition("::")
        if definition.path.parts[0] == "include" and space not in types:
            names[name][definition.name] = definition
    return {name: list(places.values()) for name, places in names.items() if len(places) > 1}


def read_folder(root, folder, deep=True):
    files = (root / folder).rglob("*") if deep else (root / folder).glob("*")
    for path in sorted(files):
        if path.suffix in (".h", ".cpp") and path.is_file():
            yield from definitions(path.read_text(), path.relative_to(root))


def check(root):
    product = [d for folder in ("include", "src", "python/bindings", "tests/support") for d in read_folder(root, folder)]
    clashes = twice(product)
    programs = [path for path in sorted((root / "tests").glob("*")) if path.is_dir() and path.name != "support"]
    for program in programs:
        own = list(read_folder(root, program.relative_to(root)))
        clashes |= {name: places for name, places in twice(product + own).items() if name not in clashes}
    for file in sorted((root / "bench").glob("*.cpp")):  # a program each
        own = list(definitions(file.read_text(), file.relative_to(root)))
        clashes |= {name: places for name, places in twice(product + own).items() if name not in clashes}
    return clashes


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent)
    clashes, shared = check(root), public_twice(list(read_folder(root, "include")))
    for what, found in (("in one namespace", clashes), ("in public headers", shared)):
        for name, places in sorted(found.items()):
            print(f"{name} is defined {len(places)} times {what}:")
            for place in places:
                print(f"  {place.path}:{place.line}")
    return 1 if clashes or shared else 0


if __name__ == "__main__":
    sys.exit(main())
