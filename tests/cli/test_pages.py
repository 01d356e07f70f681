"""Pages, plans and help beside the audit itself: what the browser's tests do not see."""

import json
import math
import re
import subprocess

import numpy as np

ATTACK = ["--norm", "l2", "--epsilon", "0.3", "--metric", "top_k(k=2)", "--attack", "er(steps=5)"]


def test_names_that_people_type_are_understood(holdfast, subject):
    audit = ["audit", *subject, "--out", "run"]
    holdfast.fails(*audit, *ATTACK, "--explainer", "ig", saying="did you mean 'integrated_gradients'?")
    holdfast.fails(*audit, *ATTACK, "--explainer", "shap", saying="did you mean 'gradient_shap'?")
    holdfast.fails(*audit, "--eps", "0.3", saying="did you mean '--epsilon'?")


def test_completion_offers_commands_flags_and_names(holdfast, tmp_path):
    script = holdfast("completion", "bash").stdout
    (tmp_path / "completion.bash").write_text(script)

    def offered(*words):
        typed = f"COMP_WORDS=({' '.join(words)}); COMP_CWORD={len(words) - 1}"
        line = f"source completion.bash; {typed}; _holdfast; echo ${{COMPREPLY[@]}}"
        return subprocess.run(["bash", "-c", line], cwd=tmp_path, capture_output=True, text=True, check=True).stdout.split()

    assert "audit" in offered("holdfast", "au")
    assert offered("holdfast", "audit", "--exp") == ["--explainer"]
    assert "integrated_gradients" in offered("holdfast", "audit", "--explainer", "int")
    holdfast.fails("completion", "fish", saying="'fish' is not known")


def test_a_plan_checks_everything_and_writes_nothing(holdfast, subject, tmp_path):
    before = sorted(tmp_path.iterdir())
    said = holdfast("audit", *subject, *ATTACK, "--plan").stdout
    assert "the plan is sound: 1 row" in said and "evaluations a sample" in said
    assert sorted(tmp_path.iterdir()) == before
    long = ["--attack", "er(steps=4000)", "--tile", "1", "--threads", "1", "--metric", "top_k(k=2)", "--epsilon", "0.3"]
    estimate = holdfast("audit", *subject, *long, "--plan").stdout.splitlines()[-1]
    here, *others = map(int, re.findall(r"(\d+) s\b", estimate))
    assert estimate.endswith("on 8 such machines") and len(others) == 3
    for machines, seconds in zip([2, 4, 8], others, strict=True):
        assert abs(seconds - here * math.ceil(20 / machines) / 20) <= 1, estimate
    holdfast.fails("audit", *subject, *ATTACK, "--metric", "top_k(k=40)", "--plan", saying="the map has 6 features")
    holdfast.fails("audit", *subject, *ATTACK, saying="--out is required")


def test_tables_fit_the_terminal(holdfast, subject):
    run = ["audit", *subject, *ATTACK, "--attack", "random(samples=5)", "--out", "run"]
    narrow = holdfast(*run, env={"COLUMNS": "70"}).stdout
    assert max(map(len, narrow.split("\n\n")[0].splitlines()[:-1])) <= 70
    assert "left out for the width" in narrow and "er(steps=5)" in narrow and "random(samples=5)" in narrow
    wide = holdfast(*run, "--wide", env={"COLUMNS": "70"}).stdout
    assert "left out" not in wide and "flips" in wide
    assert "features under" in wide.splitlines()[-1]  # a sentence for the model comes last where there is no gate


def test_gates_on_the_difference_need_a_run_to_compare_with(holdfast, subject):
    drop = ["--gate", "top_k(k=2).drop<=0.05"]
    holdfast.fails("audit", *subject, *ATTACK, *drop, "--out", "run", saying="name it with --compare RUN")
    holdfast.fails("audit", *subject, *ATTACK, *drop, "--compare", "none", "--out", "run", saying="--compare none")
    holdfast("audit", *subject, *ATTACK, "--out", "first")
    holdfast("audit", *subject, *ATTACK, *drop, "--compare", "first", "--out", "run")


def test_a_survey_needs_images_and_answers_of_one_survey(holdfast, subject, tmp_path):
    holdfast("audit", *subject, *ATTACK, "--out", "run")
    holdfast.fails("survey", "make", "run", "--out", "survey.html", saying="this run has none")

    def answers(name, person, survey="one", said=("yes", "no", "yes")):
        values = [0.9, 0.1, 0.8]
        given = [
            {"pair": str(i), "similar": similar, "metrics": {"top_k": 0.2, "lens_precision(w=1)": value}}
            for i, (similar, value) in enumerate(zip(said, values, strict=True))
        ]
        (tmp_path / name).write_text(json.dumps({"survey": survey, "person": person, "answers": given}))

    answers("a.json", "a")
    answers("b.json", "b", said=("yes", "no", "unsure"))
    score = holdfast.json("survey", "score", "a.json", "b.json", "--json")
    side = score["sides"][0]
    # top_k calls every pair different, the other metric two of the three alike: all three answers on those side with it.
    assert (side["with"], side["count"], side["share"]) == (3, 3, 1)
    assert side["low"] == 0.025 ** (1 / 3) or abs(side["low"] - 0.025 ** (1 / 3)) < 1e-9
    assert score["prediction"][0]["metric"] == "lens_precision(w=1)" and score["prediction"][0]["auc"] == 1
    assert np.isclose(score["agreement"]["kappa"], 1) and score["agreement"]["pairs"] == 2
    holdfast.fails("survey", "score", "a.json", "a.json", saying="are there twice")
    answers("c.json", "c", survey="other")
    holdfast.fails("survey", "score", "a.json", "c.json", saying="answers survey other")
    holdfast.fails("leaderboard", "a.json", "--out", "board", saying="results.json is missing")


def test_lists_fit_the_terminal(holdfast, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    for command in (["list"], ["data", "list"], ["describe", "gauntlet"], ["describe", "mlp"], ["describe", "pair_hinge"]):
        said = holdfast(*command).stdout
        longest = max(said.splitlines(), key=len)
        assert len(longest) <= 80, f"{command}: {longest}"
    assert "source" not in holdfast("data", "list").stdout.splitlines()[1]
    assert "https://" in holdfast("data", "list", "--wide").stdout
