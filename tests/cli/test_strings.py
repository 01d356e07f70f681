"""Any name and any file content is shown, written and refused in a way that readers survive."""

import csv
import io
import json
import os
import xml.etree.ElementTree as ET

NAME = 'a\x1b[31mb line\nbreak sep\u2028sep turn\u202eed quo"te, <tag>&amp; caf\u00e9'
FLAGS = ["--attack", "random(samples=2)", "--epsilon", "0.3", "--metric", "top_k(k=2)", "--gate", "top_k(k=2)>=0.999"]


def test_any_title_survives(holdfast, subject, tmp_path):
    done = holdfast("audit", *subject, *FLAGS, "--title", NAME, "--out", "run", code=1)
    assert "\x1b" not in done.stdout + done.stderr
    suite = ET.fromstring((tmp_path / "run" / "junit.xml").read_bytes())[0]
    assert suite.get("failures") == "1" and "caf\u00e9" in suite.get("name")
    assert json.loads((tmp_path / "run" / "results.json").read_text())["title"] == NAME, "data keep the exact name"


def test_a_file_name_that_is_no_utf8_survives_to_the_end(holdfast, subject, tmp_path):
    os.rename(tmp_path / "inputs.npy", os.path.join(os.fsencode(tmp_path), b"in\xff\xfeputs.npy"))
    run = ["audit", *subject[:2], "--inputs", b"in\xff\xfeputs.npy".decode(errors="surrogateescape")]
    holdfast(*run, *FLAGS, "--out", "run", code=1)
    ET.fromstring((tmp_path / "run" / "junit.xml").read_bytes())
    rows = list(csv.DictReader(io.StringIO((tmp_path / "run" / "samples.csv").read_bytes().decode("utf-8"))))
    assert len(rows) == 20 and rows[0]["dataset"] == "in\ufffd\ufffdputs.npy"


def test_json_that_holds_something_else_is_named(holdfast, subject, tmp_path):
    holdfast("audit", *subject, *FLAGS, "--out", "run", code=1)
    changes = [
        ("results.json", lambda json: json.pop("rows")),
        ("results.json", lambda json: json.update(rows=3)),
        ("results.json", lambda json: json["rows"][0].pop("threat")),
        ("manifest.json", lambda json: json.pop("datasets")),
        ("manifest.json", lambda json: json.update(datasets={"a": 1})),
    ]
    for file, change in changes:
        path = tmp_path / "run" / file
        before = path.read_text()
        content = json.loads(before)
        change(content)
        path.write_text(json.dumps(content))
        done = holdfast("report", "run", "--out", "report.html", code=2)
        assert "unexpected failure" not in done.stderr and "error: run" in done.stderr.splitlines()[-1], done.stderr
        path.write_text(before)
    manifest = tmp_path / "run" / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"digests"', '"digest"'))
    holdfast.fails("verify", "run", saying=["run/", "does not hold what it should: key 'digests' not found"])


def test_a_model_that_mixes_large_batches_only_is_refused_as_such(holdfast, subject, tmp_path):
    import torch

    class Mixing(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(6, 3)

        def forward(self, x):
            logits = self.layer(x)
            if x.size(0) > 10:
                logits = logits + logits.mean(0, keepdim=True)
            return logits

    torch.manual_seed(0)
    torch.jit.script(Mixing()).save(str(tmp_path / "mixing.pt"))
    flags = ["--attack", "er(steps=5)", "--epsilon", "0.3", "--metric", "top_k(k=2)", "--out", "run"]
    holdfast.fails(
        "attack", "--model", "mixing.pt", *subject[2:], *flags, saying=["mixing.pt", "depends on the other samples of the batch"]
    )
