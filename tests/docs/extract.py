"""Does what docs/extending.md says, in a folder of its own: extract.py SOURCE_TREE OUT

Every indented block of the page that starts with a comment `// name: ...` becomes the file that the page's table gives it. The
lines after `Declare`, `add` and `and the row` go into copies of the header, the registration and the conformance test that the
table names. A copy is only written when it differs, so that nothing is compiled twice.
"""

import pathlib
import re
import sys

ROW = re.compile(r"^\| (\w+) \| `(\S+)` \| `(\S+)` \| `(\S+)` \| (.*) \|$", re.M)
BLOCK = re.compile(r"(?:^    .*\n|^\n)+", re.M)
LINES = re.compile(r"^Declare `(.+?)`,? (?:and )?add `(.+?)`(?:, and the row `(.+?)`)?\.$", re.M)


def insert_after(text, pattern, line, indent):
    found = list(re.finditer(pattern, text, re.M))
    assert found, f"nothing matches {pattern}"
    return text[: found[0].end()] + f"\n{indent}{line}" + text[found[0].end() :]


def sections(page):
    """(code, declaration, addition, row) of each `## ` section that has an example."""
    for section in page.split("\n## ")[1:]:
        blocks = [re.sub(r"^    ", "", block.group(), flags=re.M).strip() + "\n" for block in BLOCK.finditer(section)]
        code = [block for block in blocks if block.startswith("// ")]
        lines = LINES.search(section)
        assert len(code) == 1 and lines, f"section '{section.splitlines()[0]}': one example and its lines are expected"
        yield code[0], *lines.groups()


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def main():
    tree, out = map(pathlib.Path, sys.argv[1:])
    page = (tree / "docs" / "extending.md").read_text()
    table = {row[0]: row[1:] for row in ROW.findall(page)}
    files = {pathlib.Path(file).stem: (kind, file) for kind, (file, *_) in table.items()}
    for code, declaration, addition, row in sections(page):
        kind, file = files[re.match(r"// (\w+):", code).group(1)]
        _, header, register, test = table[kind]
        write(out / file, code)
        text = (tree / header).read_text()
        write(out / header, text.replace("\n}  // namespace holdfast", f"\n{declaration}\n\n}}  // namespace holdfast"))
        text = (tree / register).read_text()
        write(out / register, insert_after(text, rf'^ *\w*Registry\S* (registry|all)\("{kind}"\);$', addition, "  "))
        if row:
            test = test.strip("`")
            write(out / test, insert_after((tree / test).read_text(), r"(Rows|\brows = )\{$", row, "    "))


if __name__ == "__main__":
    main()
