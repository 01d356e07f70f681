"""Does what docs/extending.md says, in a folder of its own: extract.py SOURCE_TREE OUT

Every indented block of the page that starts with a comment `// name: ...` becomes the file that the page's table gives it. The
line after `Add the line` goes to the top of the list in a copy of the stage's register.cpp. A copy is only written when it
differs, so that nothing is compiled twice.
"""

import pathlib
import re
import sys

ROW = re.compile(r"^\| \w+ \| `(\S+)` \| `(\S+)` \|", re.M)
BLOCK = re.compile(r"(?:^    .*\n|^\n)+", re.M)
OLD_ROW = re.compile(r"^\| (\w+) \| `(\S+)` \| `(\S+)` \| `(\S+)` \| `(\S+)` \|$", re.M)
OLD_LINES = re.compile(r"^Declare `(.+?)`,? (?:and )?add `(.+?)`(?:, and the row `(.+?)`)?\.$", re.M)
LINE = re.compile(r"^Add the line `(METHOD\((\w+), \w+\))`", re.M)


def insert_after(text, pattern, line, indent):
    found = list(re.finditer(pattern, text, re.M))
    assert found, f"nothing matches {pattern}"
    return text[: found[0].end()] + f"\n{indent}{line}" + text[found[0].end() :]


def sections(page):
    """(code, line, product) of each `## ` section that has an example."""
    for section in page.split("\n## ")[1:]:
        blocks = [re.sub(r"^    ", "", block.group(), flags=re.M).strip() + "\n" for block in BLOCK.finditer(section)]
        code = [block for block in blocks if block.startswith("// ")]
        line = LINE.search(section)
        if old := OLD_LINES.search(section):
            yield code[0], old.groups(), None
            continue
        if not code and not line:
            continue
        assert len(code) == 1 and line, f"section '{section.splitlines()[0]}': one example and its line are expected"
        yield code[0], *line.groups()


def add_line(text, line, product):
    """The list of `product`, with one more line at its top."""
    first = re.search(rf"^#define \w+\(METHOD\) +\\\n(?=  METHOD\({product}, )", text, re.M)
    assert first, f"no list of {product}"
    return text[: first.end()] + f"  {line} \\\n" + text[first.end() :]


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def main():
    tree, out = map(pathlib.Path, sys.argv[1:])
    page = (tree / "docs" / "extending.md").read_text()
    files = {pathlib.Path(file).stem: (file, register) for file, register in ROW.findall(page)}
    old = {pathlib.Path(row[1]).stem: row for row in OLD_ROW.findall(page)}
    for code, line, product in sections(page):
        if product is None:
            kind, file, header, register, test = old[re.match(r"// (\w+):", code).group(1)]
            write(out / file, code)
            text = (tree / header).read_text()
            write(out / header, text.replace("\n}  // namespace holdfast", f"\n{line[0]}\n\n}}  // namespace holdfast"))
            text = (tree / register).read_text()
            write(out / register, insert_after(text, rf'^ *\w*Registry\S* (registry|all)\("{kind}"\);$', line[1], "  "))
            write(out / test, insert_after((tree / test).read_text(), r"(Rows|\brows = )\{$", line[2], "    "))
            continue
        file, register = files[re.match(r"// (\w+):", code).group(1)]
        write(out / file, code)
        write(out / register, add_line((tree / register).read_text(), line, product))


if __name__ == "__main__":
    main()
