"""Writes TorchScript files that attack who opens them, and refusals.txt: for each file, what its refusal must say.

usage: make_hostile.py FOLDER

Attacks write to FOLDER/written. The ones that torch runs while it loads a file are tried here with torch itself: an attack that
does nothing would test nothing.
"""

import contextlib
import io
import pathlib
import struct
import sys
import warnings
import zipfile

import torch

FOLDER = pathlib.Path(sys.argv[1])
WRITTEN = FOLDER / "written"
FROM_FILE = f'torch.from_file("{WRITTEN}", True, 16)'
refusals = {}


class Small(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(6, 3)
        self.scale = 2

    def forward(self, x, power: int = 1):
        return torch.relu(self.fc(x)) * self.scale + power


class WritesAFile(Small):
    def forward(self, x):
        return self.fc(x) + torch.from_file("PATH", True, 16).fill_(1.0).sum()


class WritesAFileInAMethodThatNobodyCalls(Small):
    def forward(self, x):
        return self.fc(x)

    @torch.jit.export
    def other(self):
        return torch.from_file("PATH", True, 16)


class SavesATensor(Small):
    def forward(self, x):
        torch.save(x, "PATH")
        return self.fc(x)


class WritesWhenItsStateIsSet(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.ones(3, 6)

    @torch.jit.export
    def __getstate__(self):
        return self.weight, self.training

    @torch.jit.export
    def __setstate__(self, state: tuple[torch.Tensor, bool]):
        self.weight = state[0] + torch.from_file("PATH", True, 16).fill_(1.0).sum()
        self.training = state[1]

    def forward(self, x):
        return x @ self.weight.t()


class Prints(Small):
    def forward(self, x):
        print("this must not be among the results")
        return self.fc(x)


class Warns(Small):
    def forward(self, x):
        warnings.warn("\x1b]0;the title of the terminal\x07")  # noqa: B028
        return self.fc(x)


def scripted(module):
    buffer = io.BytesIO()
    torch.jit.save(torch.jit.script(module), buffer)
    return buffer.getvalue()


def records(content):
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def written(parts):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in parts.items():
            archive.writestr(zipfile.ZipInfo(name), content)
    return buffer.getvalue()


def keep(name, content, says):
    (FOLDER / f"{name}.pt").write_bytes(content)
    refusals[name] = says


def with_path(content):
    """The file whose sources have the real path."""
    parts = records(content)
    path = f'"{WRITTEN}"'.encode()
    return written({name: part.replace(b'"PATH"', path) if name.endswith(".py") else part for name, part in parts.items()})


def changed(content, record, change):
    parts = records(content)
    (name,) = [name for name in parts if name.split("/", 1)[1] == record]
    parts[name] = change(parts[name])
    return written(parts)


def source_with(old, new, content=None):
    def change(text):
        assert old.encode() in text, (old, text)
        return text.replace(old.encode(), new.encode())

    return changed(content or scripted(Small()), "code/__torch__.py", change)


def torch_writes(content):
    """Whether torch itself, when it only loads the file, writes where the attack wants to."""
    WRITTEN.unlink(missing_ok=True)
    with contextlib.suppress(Exception):
        torch.jit.load(io.BytesIO(content))
    done = WRITTEN.exists()
    WRITTEN.unlink(missing_ok=True)
    return done


def make_attacks_by_code():
    keep("writes_a_file", with_path(scripted(WritesAFile())), "uses aten::from_file")
    keep("uncalled_method", with_path(scripted(WritesAFileInAMethodThatNobodyCalls())), "uses aten::from_file")
    keep("saves_a_tensor", with_path(scripted(SavesATensor())), "uses aten::save")

    at_loading = {
        "set_state": with_path(scripted(WritesWhenItsStateIsSet())),
        "default_value": source_with("power: int=1", f"power: int=torch.len({FROM_FILE})"),
        "constant_of_a_class": source_with("  def forward(", f"  k : Final[int] = torch.len({FROM_FILE})\n  def forward("),
        "default_of_an_inner_function": source_with(
            "  def forward(", f"  def other(self, n: List[int]=[torch.len({FROM_FILE})]) -> int:\n    return 1\n  def forward("
        ),
    }
    for name, content in at_loading.items():
        assert torch_writes(content), f"{name} is no attack"
        keep(name, content, "runs code while it is loaded")

    keep(
        "another_library", source_with("torch.relu(", "ops.quantization._FloatToBfloat16Quantized("), "uses quantization::_Float"
    )
    keep("remembers_time", source_with("torch.relu(", "torch.mul(ops.prim.TimePoint(), "), "uses prim::TimePoint")
    keep("other_memory", source_with("torch.relu(", "torch.set_(x, "), "uses aten::set_")
    keep("memory_of_another", source_with("torch.relu(", "torch.set(x, "), "uses aten::set at")
    # These read and write where an index says, and do not look at the index.
    keep("rows_of_an_index", source_with("torch.relu(", "torch._convert_indices_from_csr_to_coo(x, "), "uses aten::_convert_ind")
    keep("gradient_by_name", source_with("torch.relu(", "torch.sigmoid_backward(x, "), "uses aten::sigmoid_backward")
    keep("sparse_tensor", source_with("torch.relu(", "torch.sparse_mask(x, "), "uses aten::sparse_mask")
    keep("unknown_operator", source_with("torch.relu(", "ops.my_library.f("), "Unknown builtin op: my_library::f")


def make_attacks_by_depth():
    keep("brackets", source_with("torch.relu(", "(" * 100_000 + "torch.relu("), "more than 200 deep")
    keep("minuses", source_with("torch.relu(", "- " * 100_000 + "torch.relu("), "more than 200 deep")
    keep("sums", source_with("torch.relu(", "1 + " * 100_000 + "torch.relu("), "more than 200 deep")
    keep("calls", source_with("torch.relu(", "f" + "()" * 100_000 + ".relu("), "more than 200 deep")
    keep("empty_lines", source_with("class ", "\n" * 1_000_000 + "class "), "empty lines in a row")
    keep("comments", source_with("class ", "  # a\n" * 1_000_000 + "class "), "empty lines in a row")
    doubles = "".join(
        f"  def f{i}(self, x: Tensor) -> Tensor:\n    return torch.add((self).f{i - 1}(x, ), (self).f{i - 1}(x, ))\n"
        for i in range(1, 50)
    )
    first = "  def f0(self, x: Tensor) -> Tensor:\n    return x\n"
    keep("doubles_its_code", source_with("  def forward(", first + doubles + "  def forward("), "more than 10000000 operations")


def make_attacks_by_records():
    whole = scripted(Small())
    keep("empty_record", changed(whole, "data/0", lambda _: b""), "has 0 bytes; 18 elements of FloatStorage need 72")
    keep("short_record", changed(whole, "data/0", lambda data: data[:40]), "has 40 bytes; 18 elements")
    keep("long_record", changed(whole, "data/0", lambda data: data * 2), "has 144 bytes; 18 elements")
    parts = records(whole)
    keep("missing_record", written({k: v for k, v in parts.items() if not k.endswith("data/0")}), "tensor '0' is missing")
    damaged = bytearray(written(parts))
    damaged[damaged.index(parts[next(name for name in parts if name.endswith("data/0"))])] ^= 1
    keep("wrong_checksum", bytes(damaged), "data/0 has a wrong checksum")
    folder = next(iter(parts)).split("/")[0]
    keep("two_records", written({**parts, f"{folder}/DATA.pkl": b"x"}), "is there twice")
    keep("other_folder", written({**parts, "other/data.pkl": b"x"}), "lies outside the folder")
    keep("old_form", written({**parts, f"{folder}/model.json": b"{}"}), "before 1.2")


def make_attacks_by_pickle():
    whole = scripted(Small())
    pickle = next(part for name, part in records(whole).items() if name.endswith("data.pkl"))
    shape, strides = b"(K\x03K\x06t", b"(K\x06K\x01t"
    assert shape + strides in pickle

    def with_pickle(name, content, says):
        keep(name, changed(whole, "data.pkl", lambda _: content), says)

    def other_shape(name, new):
        with_pickle(name, pickle.replace(shape + strides, new), "does not fit into its memory of 18 elements")

    big = b"\x8a\x08" + struct.pack("<q", 1 << 62)
    other_shape("larger_shape", b"(K\x04K\x06t" + strides)
    other_shape("larger_strides", shape + b"(K\x07K\x01t")
    other_shape("overflowing_shape", b"(" + big + big + b"t" + strides)
    negative = b"J" + struct.pack("<i", -6)
    with_pickle("negative_strides", pickle.replace(strides, b"(" + negative + b"K\x01t"), "the shape of a tensor is not one")
    with_pickle("huge_table", pickle.replace(b"q\x01", b"r\xf0\xff\xff\xff"), "remembers a value at")
    with_pickle("forged_function", b"\x80\x02K\x00)R.", "what is called is no function")
    with_pickle("odd_dictionary", b"\x80\x02}(Nu.", "a key has no value")
    with_pickle("no_values", b"\x80\x02(t(u.", "values are added to what takes none")
    with_pickle("deep", b"\x80\x02" + b"]" + b"(]" * 100_000 + b"e" * 100_000 + b".", "nested more than 200 deep")
    with_pickle("contains_itself", b"\x80\x02]q\x00(h\x00e.", "values are added to what takes none")
    with_pickle("other_module", b"\x80\x02cposix\nsystem\n(X\x02\x00\x00\x00lstR.", "names posix.system")
    with_pickle(
        "class_of_torch", b"\x80\x02c__torch__.torch.classes.quantized\nLinearPackedParamsBase\n)\x81}b.", "runs code of torch"
    )
    # The layer is an object of a class with fewer attributes.
    inner = pickle[pickle.index(b"c__torch__.torch.nn.modules.linear\nLinear\n") :]
    name = inner[: inner.index(b"\n", inner.index(b"\n") + 1) + 1]
    with_other = source_with(
        "class Small(", "class Other(Module):\n  __parameters__ = []\n  __buffers__ = []\n  training : bool\nclass Small("
    )
    keep(
        "other_class", changed(with_other, "data.pkl", lambda _: pickle.replace(name, b"c__torch__\nOther\n")), "attribute fc of"
    )
    number = changed(whole, "data.pkl", lambda _: pickle.replace(b"training", b"trainin_"))
    keep("other_attribute", number, "is not a TorchScript file, or is damaged")


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    make_attacks_by_code()
    make_attacks_by_depth()
    make_attacks_by_records()
    make_attacks_by_pickle()
    (FOLDER / "prints.pt").write_bytes(scripted(Prints()))
    (FOLDER / "warns.pt").write_bytes(scripted(Warns()))
    (FOLDER / "harmless.pt").write_bytes(scripted(Small()))
    (FOLDER / "rewritten.pt").write_bytes(written(records(scripted(Small()))))
    (FOLDER / "refusals.txt").write_text("".join(f"{name}\t{says}\n" for name, says in refusals.items()))
