"""Does what docs/extending.md says, in a folder of its own: extract.py SOURCE_TREE OUT

Every indented block of the page that starts with a comment `// name: ...` becomes the file that the page's table gives it. The
line after `Add the line` goes to the top of the list in a copy of the stage's register.cpp. A copy is only written when it
differs, so that nothing is compiled twice. What an earlier page left is removed.
"""

import pathlib
import re
import sys

ROW = re.compile(r"^\| \w+ \| `(\S+)` \| `(\S+)` \|", re.M)
BLOCK = re.compile(r"(?:^    .*\n|^\n)+", re.M)
LINE = re.compile(r"^Add the line `(METHOD\((\w+), \w+\))`", re.M)


def sections(page):
    """(code, line, product) of each `## ` section that has an example."""
    for section in page.split("\n## ")[1:]:
        blocks = [re.sub(r"^    ", "", block.group(), flags=re.M).strip() + "\n" for block in BLOCK.finditer(section)]
        code = [block for block in blocks if block.startswith("// ")]
        line = LINE.search(section)
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
    made = []
    for code, line, product in sections(page):
        file, register = files[re.match(r"// (\w+):", code).group(1)]
        made += [out / file, out / register]
        write(out / file, code)
        write(out / register, add_line((tree / register).read_text(), line, product))
    for path in out.rglob("*"):
        if path.suffix in (".cpp", ".h") and path.parent != out and path not in made:
            path.unlink()  # An earlier page left it.


if __name__ == "__main__":
    main()
