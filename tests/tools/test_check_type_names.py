"""tools/check_type_names.py finds what a compiler does not, and nothing else."""

import pathlib
import subprocess
import sys

import pytest

TOOL = pathlib.Path(__file__).parents[2] / "tools" / "check_type_names.py"


def run(root, files):
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return subprocess.run([sys.executable, TOOL, root], capture_output=True, text=True)


@pytest.mark.parametrize(
    ("first", "second", "name"),
    [
        (
            "namespace holdfast { struct Baseline { int a; }; }",
            "namespace holdfast {\nclass Baseline final : Other {};\n}",
            "holdfast::Baseline",
        ),
        ("namespace a::b { enum class Kind { kOne }; }", "namespace a { inline namespace b { struct Kind {}; } }", "a::b::Kind"),
        (
            "namespace a { struct Outer { struct Inner {}; }; }",
            "namespace a { struct Outer::Inner { int b; }; }",
            "a::Outer::Inner",
        ),
        ("template <typename T, class U = void> struct Pair {};", "struct [[nodiscard]] alignas(8) Pair { int a; };", "Pair"),
        ("struct Plain {};", 'int f() { return 1\'000; }\nconst char* s = "}"; /* } */ struct Plain {};', "Plain"),
        ("struct Plain {};", "auto x = f(Y{1}, [] { return 2; });\nstruct Plain {};", "Plain"),
    ],
)
def test_reports_both_places_of_a_name_that_is_defined_twice(tmp_path, first, second, name):
    result = run(tmp_path, {"include/holdfast/a.h": first, "src/core/b.cpp": second})
    assert result.returncode == 1
    assert f"{name} is defined 2 times" in result.stdout
    assert "include/holdfast/a.h:1" in result.stdout and "src/core/b.cpp:" in result.stdout


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("namespace a { struct X {}; }", "namespace b { struct X {}; }"),
        ("namespace a { struct X {}; }", "namespace a { struct X; X make(); struct X* find(); }"),
        ("namespace a { namespace { struct X {}; } }", "namespace a { struct X {}; }"),
        ("namespace a { struct X {}; }", "namespace a { void f() { struct X {}; } }"),
        ("struct X {};", "struct X make() { return {}; }\nstruct X value{1};"),
        ("template <typename T> struct X {};", "template <> struct X<int> {};"),
        ("struct A { struct Options {}; };", "struct B { struct Options {}; };"),
        ("struct X {};", '// struct X {};\nconst char* text = R"(struct X {};)";'),
        ("#ifdef A\nstruct X {};\n#else\nstruct X { int a; };\n#endif", "#define X(a) \\\n  struct X { a; }\n"),
    ],
)
def test_accepts_what_is_not_the_same_type(tmp_path, first, second):
    result = run(tmp_path, {"include/holdfast/a.h": first, "src/core/b.cpp": second})
    assert (result.returncode, result.stdout) == (0, "")


def test_public_types_have_names_of_their_own(tmp_path):
    files = {
        "include/holdfast/a.h": "namespace a { struct Shared {}; struct Outer { struct Options {}; }; }",
        "include/holdfast/b.h": "namespace b { struct Shared {}; struct Other { struct Options {}; }; }",
        "src/core/c.h": "namespace c { struct Outer {}; }",
    }
    result = run(tmp_path, files)
    assert result.returncode == 1 and result.stdout.startswith("Shared is defined 2 times in public headers:")
    assert "Options" not in result.stdout and "Outer" not in result.stdout


def test_tests_are_compared_with_the_library_and_not_with_other_programs(tmp_path):
    files = {
        "tests/attack/a_test.cpp": "struct Own {};",
        "tests/metric/b_test.cpp": "struct Own {};",
        "src/core/c.h": "struct Shared {};",
    }
    assert run(tmp_path, files).returncode == 0
    result = run(tmp_path, {"tests/metric/c_test.cpp": "struct Shared { int a; };"})
    assert result.returncode == 1 and "tests/metric/c_test.cpp:1" in result.stdout
