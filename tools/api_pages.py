"""Pages that are made from the program: api.md from docstrings, methods.md from what each method declares."""

import inspect
import re
import sys
from pathlib import Path
from typing import Any

import holdfast
import holdfast.testing

# In the order of the pages.
PARTS = {
    "Explain, attack, measure": ["explain", "Explained", "attack", "Threat", "Attacked", "measure", "Similarity"],
    "Measures of a model, and certificates": ["measure_model", "Measurement", "certify", "Certified"],
    "Audit": ["audit", "audit_config", "choose_threat", "Suggestion", "Run", "Worst", "load_run", "compare"],
    "Train": ["objective", "Objective", "train"],
    "Methods of your own": ["metric", "explainer", "attack_method", "measure_method", "objective_method"],
    "Models and schemas": ["load_model", "Model", "Schema"],
    "What there is": ["list", "describe", "Methods", "Error", "HoldfastWarning"],
}


def section(name: str, thing: Any) -> list[str]:
    signature = ""
    if callable(thing) and not (inspect.isclass(thing) and issubclass(thing, Exception)):
        try:
            signature = written(inspect.signature(thing))
        except (TypeError, ValueError):
            signature = "(...)"
    lines = [f"### {name}", "", "```python", f"{name}{signature}", "```", "", markdown(inspect.getdoc(thing) or ""), ""]
    if inspect.isclass(thing):
        for key, member in vars(thing).items():
            is_function = inspect.isfunction(member) or isinstance(member, property)
            if key.startswith("_") or not is_function or not inspect.getdoc(member):
                continue
            call = "" if isinstance(member, property) else str(inspect.signature(member))
            lines += [f"- **`{name}.{key}{call}`**: {markdown(inspect.getdoc(member) or '').splitlines()[0]}"]
        lines.append("")
    return lines


def written(signature: inspect.Signature) -> str:
    """One parameter a line, types without their quotes."""
    parameters = [re.sub(r"""(: )['"](.+?)['"](?=( = |$))""", r"\1\2", str(one)) for one in signature.parameters.values()]
    keyword_only = [one.kind is one.KEYWORD_ONLY for one in signature.parameters.values()]
    if True in keyword_only:
        parameters.insert(keyword_only.index(True), "*")
    if len(parameters) < 3:
        return f"({', '.join(parameters)})"
    return "(\n" + "".join(f"    {one},\n" for one in parameters) + ")"


def markdown(text: str) -> str:
    """Docstrings as Markdown: examples as code, roles and double backquotes as code, arguments as a list."""
    text = re.sub(r":(?:func|class|meth):`~?([^`]+)`", r"`\1`", text).replace("``", "`")
    lines, in_example, in_arguments = [], False, False
    for line in text.splitlines():
        if line.startswith(">>>") or (in_example and line):
            if not in_example:
                lines.append("```python")
            in_example = True
        elif in_example:
            lines.append("```")
            in_example = False
        if line in ("Args:", "Returns:"):
            in_arguments = True
            lines += ["", f"**{line[:-1].replace('Args', 'Arguments')}**", ""]
            continue
        if in_arguments and (found := re.match(r"    (\w+(?:, \w+)*): (.*)", line)):
            line = f"- `{found[1]}`: {found[2]}"
        elif in_arguments:
            line = "  " + line.strip()
        lines.append(line)
    return "\n".join(lines + (["```"] if in_example else []))


def api() -> str:
    lines = ["# Python API", "", "Made from the docstrings of the package; every example runs as a test.", ""]
    named = {name for names in PARTS.values() for name in names}
    missing = set(holdfast.__all__) - named - {"__version__", "attacks", "explainers", "measures", "metrics", "objectives"}
    assert not missing, f"api_pages.py does not show {missing}"
    for part, names in PARTS.items():
        lines += [f"## {part}", ""]
        for name in names:
            lines += section(f"holdfast.{name}", getattr(holdfast, name))
    lines += ["## In tests", ""]
    for name in holdfast.testing.__all__:
        lines += section(f"holdfast.testing.{name}", getattr(holdfast.testing, name))
    return "\n".join(lines)


def methods() -> str:
    lines = [
        "# Methods and their options",
        "",
        "What `holdfast list` and `holdfast describe` say. Options are written `er(steps=100)`.",
        "",
    ]
    for kind in ("explainers", "attacks", "metrics", "measures", "objectives", "recipes", "models", "datasets"):
        lines += [f"## {kind.capitalize()}", ""]
        for name in holdfast.list(kind):
            method = holdfast.describe(name)
            lines += [f"### {name}", "", method["summary"][:1].upper() + method["summary"][1:] + ".", ""]
            lines += [method[key] + "\n" for key in ("notes", "citation") if method[key]]
            if method["options"]:
                lines += ["| option | default | range | meaning |", "|---|---|---|---|"]
                lines += [
                    f"| `{one['name']}` | `{one['default']}` | {escaped(one['range'])} | {escaped(one['help'])} |"
                    for one in method["options"]
                ]
                lines.append("")
    return "\n".join(lines)


def name_links(folder: Path) -> None:
    """Links that show the name of a file show the heading of its page."""
    pages = {path.name: path.read_text() for path in folder.glob("*.md")}
    for name, text in pages.items():

        def named(found: re.Match[str]) -> str:
            heading = pages.get(found[1], found[1]).partition("\n")[0].removeprefix("# ")
            return f"[{heading}]({found[1]}{found[2]}"

        (folder / name).write_text(re.sub(r"\[(?:docs/)?([\w-]+\.md)\]\(\1([#)])", named, text))


def escaped(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    (folder / "api.md").write_text(api())
    (folder / "methods.md").write_text(methods())
    name_links(folder)
