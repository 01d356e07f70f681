"""Writes the seeds of the fuzz targets: corpus/<target>/good_* are well formed, bad_* are not.

usage: make_corpus.py            (needs numpy, onnx, Pillow and torch; the files it writes are committed)
"""

import gzip
import io
import json
import pathlib
import struct
import tarfile
import zipfile
import zlib

import numpy as np
import onnx
import torch
from PIL import Image

CORPUS = pathlib.Path(__file__).parent / "corpus"


def write(target, name, content):
    folder = CORPUS / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)


def truncated(target, name, content):
    write(target, f"good_{name}", content)
    write(target, f"bad_truncated_{name}", content[: len(content) * 2 // 3])


def npy(array):
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, array)
    return buffer.getvalue()


def npy_with_header(header):
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode()


def make_arff():
    head = "@relation small\n@attribute age numeric\n@attribute class {no, 'yes, sure'}\n"
    write("arff", "good_quoted.arff", head + "@DATA\n31,no\n47,'yes, sure'\n")
    write("arff", "bad_no_data.arff", head)
    write("arff", "bad_no_rows.arff", head + "@data\n")
    write("arff", "bad_fields.arff", head + "@data\n31,no,1\n")


def make_npy():
    grid = np.arange(6, dtype=np.float32).reshape(2, 3)
    truncated("npy", "float32.npy", npy(grid))
    truncated("npy", "fortran.npy", npy(np.asfortranarray(grid)))
    truncated("npy", "big_endian.npy", npy(grid.astype(">i4")))
    write("npy", "good_bool.npy", npy(np.array([True, False])))
    write("npy", "good_scalar.npy", npy(np.array(3.5)))
    write("npy", "good_empty.npy", npy(np.zeros((0, 4), dtype=np.int64)))
    write("npy", "bad_huge.npy", npy_with_header("{'descr': '<f8', 'fortran_order': False, 'shape': (1152921504606846976,), }\n"))
    write(
        "npy",
        "bad_overflow.npy",
        npy_with_header("{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296), }\n"),
    )
    write("npy", "bad_object.npy", npy_with_header("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }\n"))
    write("npy", "bad_magic.npy", b"\x93NUMPX\x01\x00")


def safetensors(header, content):
    text = json.dumps(header, separators=(",", ":")).encode()
    return struct.pack("<Q", len(text)) + text + content


def make_safetensors():
    weight = {"dtype": "F32", "shape": [2, 1], "data_offsets": [0, 8]}
    both = {"__metadata__": {"epoch": "3"}, "w": weight, "b": {"dtype": "I64", "shape": [1], "data_offsets": [8, 16]}}
    truncated("safetensors", "two.safetensors", safetensors(both, bytes(16)))
    write("safetensors", "good_none.safetensors", safetensors({}, b""))
    write("safetensors", "bad_header_size.safetensors", struct.pack("<Q", 1 << 60) + b"{}")
    write("safetensors", "bad_offsets.safetensors", safetensors({"w": {**weight, "data_offsets": [8, 0]}}, bytes(8)))
    write("safetensors", "bad_shape.safetensors", safetensors({"w": {**weight, "shape": [1 << 40, 1 << 40]}}, bytes(8)))
    write("safetensors", "bad_dtype.safetensors", safetensors({"w": {**weight, "dtype": "F12"}}, bytes(8)))
    write("safetensors", "bad_json.safetensors", struct.pack("<Q", 4) + b"{{{{")


def make_csv():
    write("csv", "good_plain.csv", "a,b,c\n1,2,3\n4,5,6\n")
    write("csv", "good_quoted.csv", 'name,"the, value"\r\n"say ""hi""","two\nlines"\r\n\r\n  x , y \r\n')
    write("csv", "good_header_only.csv", "a,b")
    write("csv", "good_late_byte_order_mark.csv", b"\n\xef\xbb\xbf\nx\n")
    write("csv", "bad_row.csv", "a,b\n1\n")
    write("csv", "bad_quote.csv", 'a,b\n"1,2\n')
    write("csv", "bad_after_quote.csv", 'a\n"1"2\n')
    write("csv", "bad_nul.csv", b"a\n\0\n")
    write("csv", "bad_empty.csv", "")


def make_idx():
    truncated("idx", "bytes.idx", b"\0\0\x08\x03" + struct.pack(">III", 2, 2, 2) + bytes(range(8)))
    write("idx", "good_doubles.idx", b"\0\0\x0e\x01" + struct.pack(">Id", 1, 2.5))
    write("idx", "good_none.idx", b"\0\0\x08\x02" + struct.pack(">II", 0, 28))
    write("idx", "bad_huge.idx", b"\0\0\x0e\x04" + b"\xff" * 16)
    write("idx", "bad_dimensions.idx", b"\0\0\x08\xff" + bytes(8))
    write("idx", "bad_type.idx", b"\0\0\x0a\x01" + struct.pack(">IB", 1, 1))


def make_images():
    y, x = np.mgrid[0:9, 0:11]
    rgb = Image.fromarray(np.stack([x * 20, y * 25, x * y * 2], axis=-1).astype(np.uint8))
    alpha = rgb.copy()
    alpha.putalpha(128)

    def saved(image, kind, **options):
        buffer = io.BytesIO()
        image.save(buffer, kind, **options)
        return buffer.getvalue()

    truncated("ppm", "rgb.ppm", saved(rgb, "PPM"))
    truncated("ppm", "grey.pgm", saved(rgb.convert("L"), "PPM"))
    write("ppm", "good_comment.ppm", b"P6 # comment\n1 1\n#another\n15\n\x01\x02\x0f")
    write("ppm", "bad_huge.ppm", "P6 99999999 99999999 255\n")
    write("ppm", "bad_maximum.ppm", b"P5 1 1 3\n\x04")
    write("ppm", "bad_no_height.ppm", "P6 4 #")

    truncated("png", "rgb.png", saved(rgb, "PNG"))
    truncated("png", "palette.png", saved(rgb.quantize(5), "PNG"))
    truncated("png", "alpha.png", saved(alpha, "PNG"))
    truncated("png", "bilevel.png", saved(rgb.convert("1"), "PNG"))
    truncated("png", "grey16.png", saved(rgb.convert("L").convert("I;16"), "PNG"))
    damaged = bytearray(saved(rgb, "PNG"))
    damaged[-20] ^= 0xFF
    write("png", "bad_checksum.png", bytes(damaged))
    header = bytearray(saved(rgb, "PNG"))
    header[16:24] = struct.pack(">II", 1 << 13, 1 << 13)
    header[29:33] = struct.pack(">I", zlib.crc32(header[12:29]))
    write("png", "bad_huge.png", bytes(header))

    truncated("jpeg", "rgb.jpg", saved(rgb, "JPEG"))
    truncated("jpeg", "grey.jpg", saved(rgb.convert("L"), "JPEG"))
    truncated("jpeg", "progressive.jpg", saved(rgb, "JPEG", progressive=True))
    truncated("jpeg", "cmyk.jpg", saved(rgb.convert("CMYK"), "JPEG"))
    truncated("jpeg", "restart.jpg", saved(rgb, "JPEG", restart_marker_blocks=1))
    whole = bytearray(saved(rgb, "JPEG"))
    start = whole.index(b"\xff\xc0")
    whole[start + 5 : start + 9] = struct.pack(">HH", 65000, 65000)
    write("jpeg", "bad_huge.jpg", bytes(whole))
    write("jpeg", "bad_empty.jpg", b"\xff\xd8\xff\xd9")


def make_text():
    write(
        "config",
        "good_audit.toml",
        "seed = 1\nname = 'a'\n[attack]\nepsilon = 0.5\ntrace = true\nmetrics = ['l2', 'cosine']\nradii = [1, 2]\n"
        "[[models]]\nname = 'b'\n\0seed=2\nattack.epsilon=3\nmodels.0.name=c\n",
    )
    write("config", "good_empty.toml", "")
    write("config", "bad_unknown.toml", "sed = 1\n")
    write("config", "bad_type.toml", "seed = 'one'\n")
    write("config", "bad_range.toml", "[attack]\nepsilon = 0\n")
    write("config", "bad_syntax.toml", "seed = = 1\n")
    write("config", "bad_missing.toml", "[[models]]\n")
    write("config", "bad_override.toml", "seed = 1\n\0seed\n")
    write("config", "bad_nested.toml", "a = " + "[" * 300)
    write("config", "bad_deep.toml", "a." * 300 + "b = 1\n")

    write(
        "results", "good_empty.json", '{"title": "t", "models": [], "rows": [], "measures": [], "comparisons": [], "gates": []}'
    )
    write("results", "bad_rows.json", '{"rows": 3, "gates": [{}]}')
    write("printable", "good_text", "caf\u00e9 \u5e74 \u2028 \x1b[31m \n".encode() + b"\xff\xc0\xaf\xed\xa0\x80")

    write("method", "good_plain", "er")
    write("method", "good_options", " er( steps=5 , step_size=1e-3, pairs=next-k, layers=64x32, signed=true )")
    write("method", "good_preset", "er(preset=tabular,steps=2)")
    write("method", "good_nested", "er(of=csv( path=a.csv , label=y ),steps=2)")
    write("method", "bad_nested", "er(of=csv(path=a(b=c)))")
    write("method", "bad_open", "er(steps=5")
    write("method", "bad_value", "er(steps=0)")
    write("method", "bad_option", "er(stepz=1)")
    write("method", "bad_sizes", "er(layers=64x)")
    write("method", "bad_empty", "")

    write("json", "good_all.json", '{"a": [1, -2.5, 1e300, "x\\u00e9", true, null], "b": {}}')
    write("json", "good_number.json", "7")
    write("json", "bad_comma.json", '{"a": 1,}')
    write("json", "bad_nested.json", "[" * 2000)
    write("json", "bad_utf8.json", b'"\xff"')

    vector = {
        "layout": {"kind": "vector", "length": 3},
        "features": [{"name": "age", "low": 0, "high": 1, "step": 0.5, "original": [17, 90]}, {"name": "f"}, {"name": "m"}],
        "groups": [{"name": "sex", "columns": [1, 2]}],
        "classes": ["no", "yes"],
    }
    write("schema", "good_vector.json", json.dumps(vector))
    write("schema", "bad_layout.json", json.dumps({"layout": {"kind": "ring"}}))
    write("schema", "bad_count.json", json.dumps({**vector, "features": vector["features"][:2]}))
    write("schema", "bad_groups.json", json.dumps({**vector, "groups": [{"name": "sex", "columns": [1, 7]}]}))
    write("schema", "bad_type.json", "[]")


def make_checkpoint():
    progress = {"step": 8, "best_epoch": 1, "best_value": 0.5, "history": []}
    record = {"epoch": 1, "learning_rate": 0.1, "loss": 0.3, "parts": {"ce": 0.3}, "ranking_kept": 0.9, "seconds": 0.01}
    progress["history"] = [record, {**record, "validation": {"loss": 0.2, "accuracy": None, "auc": 0.5}}]
    weight = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}
    metadata = {"format": "holdfast training checkpoint 1", "settings": "{}"}

    def file(name="network.w", settings=metadata, **changes):
        return safetensors(
            {"__metadata__": {**settings, "progress": json.dumps({**progress, **changes})}, name: weight}, bytes(8)
        )

    truncated("checkpoint", "one.safetensors", file())
    write("checkpoint", "good_best.safetensors", file("best.w"))
    write("checkpoint", "bad_tensor.safetensors", file("other.w"))
    write("checkpoint", "bad_format.safetensors", file(settings={**metadata, "format": "?"}))
    write("checkpoint", "bad_settings.safetensors", file(settings={**metadata, "settings": "{"}))
    write("checkpoint", "bad_step.safetensors", file(step="eight"))
    write("checkpoint", "bad_history.safetensors", file(history=[7]))


def make_gates():
    write("gate", "good_mean", "top_k(k=8)>=0.6")
    write("gate", "good_low", " lens_precision( k = 4, w=2 ).low > 0.5 ")
    write("gate", "good_drop", "kendall.drop<=0.05")
    write("gate", "good_measure", "curvature<40")
    write("gate", "bad_none", "top_k")
    write("gate", "bad_field", "top_k.mode>=0.5")
    write("gate", "bad_limit", "top_k>=high")
    write("gate", "bad_reach", "top_k>=1.5")
    write("gate", "bad_name", "top_q>=0.5")
    write("gate", "bad_order", "top_k=>0.5")


def make_run_folder():
    """What run_folder.cpp reads of an audit of a table with three features."""
    threat = {"norm": "l2", "epsilon": 0.5}
    row = {"dataset": "d", "model": "m", "explainer": "saliency", "attack": "er", "metric": "top_k(k=1)"}
    full = {**row, "threat": threat, "direction": "higher", "arrays": "arrays/0000"}
    schema = {"layout": {"kind": "vector", "length": 3}, "features": [{"name": name} for name in "abc"], "classes": ["no", "yes"]}
    manifest = {"kind": "audit", "seed": 3, "identity": {"tile": 4}, "datasets": [{"name": "d", "schema": schema}]}
    models = [{"name": "m", "dataset": "d"}]
    results = {"kind": "audit", "title": "t", "models": models, "rows": [full], "measures": [], "comparisons": [], "gates": []}
    samples = ",".join([*row, "epsilon", "sample", "value", "first_swap"]) + "\n"
    line = ",".join(f'"{value}"' for value in row.values())
    samples += f"{line},0.5,4,1,\n{line},0.5,7,0.25,3\n"
    kept = {"sample": 7, "label": 1, "prediction": 0, "value": 0.25, "top_original": [1], "top_perturbed": [2]}

    def folder(manifest=manifest, results=results, samples=samples, kept=kept):
        return b"\0".join(
            part.encode()
            for part in (json.dumps(manifest), json.dumps(results), samples, json.dumps([kept, {**kept, "sample": 4}]))
        )

    grid = {"layout": {"kind": "grid", "channels": 1, "height": 1, "width": 3}}
    write("run_folder", "good_audit", folder())
    write("run_folder", "bad_grid", folder({**manifest, "datasets": [{"name": "d", "schema": grid}]}))
    write("run_folder", "bad_manifest", folder(manifest={}))
    write("run_folder", "bad_rows", folder(results={**results, "rows": 3}))
    write("run_folder", "bad_number", folder(samples=samples.replace(",0.25,3", ",quarter,3")))
    write("run_folder", "bad_far_number", folder(samples=samples.replace(",0.25,3", ",1e999,3")))
    write("run_folder", "bad_sample", folder(samples=samples.replace('"m"', '"other"')))
    write("run_folder", "bad_top", folder(kept={**kept, "top_original": [3]}))
    write("run_folder", "bad_negative_top", folder(kept={**kept, "top_perturbed": [-1]}))
    write("run_folder", "bad_empty", b"")


def make_archives():
    truncated("gzip", "text.gz", gzip.compress(b"holdfast " * 20, mtime=0))
    write("gzip", "bad_bomb.gz", gzip.compress(bytes(1 << 17), mtime=0))
    write("gzip", "bad_magic.gz", b"\x1f\x8c" + bytes(20))

    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for name in ("a.txt", "long/" + "n" * 120 + ".txt"):
            member = tarfile.TarInfo(name)
            member.size = 5
            archive.addfile(member, io.BytesIO(b"hello"))
    content = buffer.getvalue()[:4096]
    write("tar", "good_two.tar", content)
    write("tar", "bad_truncated.tar", content[:700])
    write("tar", "bad_checksum.tar", b"b" + content[1:])

    for name, method in (("stored", zipfile.ZIP_STORED), ("deflated", zipfile.ZIP_DEFLATED)):
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", method) as archive:
            archive.writestr(zipfile.ZipInfo("a.txt"), b"hello " * 10, compress_type=method)
        truncated("zip", f"{name}.zip", buffer.getvalue())
        truncated("checked_zip", f"{name}.zip", buffer.getvalue())
    whole = buffer.getvalue()
    write("zip", "good_comment.zip", whole[:-2] + b"\x02\x00hi")
    write("checked_zip", "bad_comment.zip", whole[:-2] + b"\x02\x00hi")
    write("checked_zip", "bad_prefix.zip", b"x" + whole)
    changed = bytearray(whole)
    changed[14] ^= 1  # the checksum in the local header
    write("checked_zip", "bad_local_checksum.zip", bytes(changed))
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(zipfile.ZipInfo("a.txt"), b"one")
        archive.writestr(zipfile.ZipInfo("A.txt"), b"two")
    write("checked_zip", "bad_twice.zip", buffer.getvalue())


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.fc = torch.nn.Linear(6, 3)

    def forward(self, x):
        return self.fc(x) + torch.tensor([1.0, 2.0, 3.0])


class Sizes(Layer):
    def forward(self, x):
        first, second = x.chunk(2, 1)
        return super().forward(torch.cat([second, first], 1)).reshape(x.shape[0] * 3, 1).view(-1, 3)


def archive(parts):
    """An archive by zipfile: torch writes a random number into its own."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as out:
        for name, content in parts.items():
            out.writestr(zipfile.ZipInfo(name), content)
    return buffer.getvalue()


def make_exported():
    """A program with symbolic sizes, lists and weights, without what torch notes about where each node came from."""
    buffer = io.BytesIO()
    dynamic = ({0: torch.export.Dim("batch")},)
    torch.export.save(torch.export.export(Sizes(), (torch.ones(3, 6),), dynamic_shapes=dynamic), buffer)
    with zipfile.ZipFile(buffer) as source:
        parts = {name: source.read(name) for name in source.namelist() if "sample_inputs" not in name and "serial" not in name}
    (graph,) = (name for name in parts if "/models/" in name)
    (config,) = (name for name in parts if name.endswith("weights_config.json"))
    model = json.loads(parts[graph])
    for node in model["graph_module"]["graph"]["nodes"]:
        node["metadata"] = {}

    def changed(change, name=graph):
        other = json.loads(json.dumps(model if name == graph else json.loads(parts[config])))
        change(other)
        return archive({**parts, graph: json.dumps(model), name: json.dumps(other)})

    def first_weight(content):
        return next(iter(content["config"].values()))

    def first_node(content):
        return content["graph_module"]["graph"]["nodes"][0]

    truncated("exported", "sizes.pt2", changed(lambda content: None))
    write("exported", "bad_version.pt2", changed(lambda content: content["schema_version"].update(major=9)))
    write("exported", "bad_operator.pt2", changed(lambda content: first_node(content).update(target="os.system")))
    write("exported", "bad_argument.pt2", changed(lambda content: first_node(content)["inputs"][0].update(arg={})))
    write("exported", "bad_no_graph.pt2", changed(lambda content: content.pop("graph_module")))
    write("exported", "bad_pickle.pt2", changed(lambda content: first_weight(content).update(use_pickle=True), config))
    meta = {"sizes": [{"as_int": 1 << 40}, {"as_int": 1 << 40}]}
    write("exported", "bad_sizes.pt2", changed(lambda content: first_weight(content)["tensor_meta"].update(meta), config))
    far = {"storage_offset": {"as_int": 1 << 62}}
    write("exported", "bad_offset.pt2", changed(lambda content: first_weight(content)["tensor_meta"].update(far), config))


def make_onnx():
    def node(kind, inputs, output, **attributes):
        return onnx.helper.make_node(kind, inputs, [output], **attributes)

    def numbers(name, *values):
        return onnx.numpy_helper.from_array(np.array(values, np.int64), name)

    def model(nodes):
        value = onnx.helper.make_tensor_value_info
        weight = onnx.numpy_helper.from_array(np.ones((3, 6), np.float32), "weight")
        listed = onnx.helper.make_tensor("bias", onnx.TensorProto.FLOAT, [3], [1, 2, 3])
        inputs = [value("x", onnx.TensorProto.FLOAT, ["batch", 6])]
        outputs = [value("y", onnx.TensorProto.FLOAT, ["batch", 3])]
        graph = onnx.helper.make_graph(nodes, "g", inputs, outputs, [weight, listed, numbers("first", 0), numbers("rest", -1)])
        opset = [onnx.helper.make_opsetid("", 18)]
        return onnx.helper.make_model(graph, opset_imports=opset, ir_version=8).SerializeToString()

    sizes = [node("Shape", ["x"], "s"), node("Gather", ["s", "first"], "b"), node("Concat", ["b", "rest"], "shape", axis=0)]
    layers = [node("Reshape", ["x", "shape"], "flat"), node("Gemm", ["flat", "weight", "bias"], "z", transB=1)]
    good = model([*sizes, *layers, node("Softmax", ["z"], "y")])
    truncated("onnx", "gemm.onnx", good)
    write("onnx", "bad_operator.onnx", model([node("Loop", ["x"], "y")]))
    write("onnx", "bad_no_output.onnx", model(layers))
    write("onnx", "bad_attribute.onnx", model([node("Gemm", ["x", "weight"], "y", transB="yes")]))
    write("onnx", "bad_slice.onnx", model([*sizes, node("Slice", ["s", "rest", "first"], "y")]))
    write("onnx", "bad_dims.onnx", good.replace(b"\x08\x03\x08\x06", b"\x08\x7f\x08\x7f", 1))
    write("onnx", "bad_empty.onnx", b"")


def make_torchscript():
    buffer = io.BytesIO()
    torch.jit.save(torch.jit.trace(Layer(), torch.ones(2, 6)), buffer)
    with zipfile.ZipFile(buffer) as source:
        parts = {name: source.read(name) for name in source.namelist() if "debug" not in name and "serialization" not in name}
    truncated("torchscript", "traced.pt", archive(parts))
    short = {name: content[:8] if name.endswith("data/0") else content for name, content in parts.items()}
    write("torchscript", "bad_short_record.pt", archive(short))
    write("torchscript", "bad_no_pickle.pt", archive({name: part for name, part in parts.items() if "data.pkl" not in name}))

    pickles = {name.split("/")[-1]: part for name, part in parts.items() if name.endswith(".pkl")}
    weights = pickles["data.pkl"].replace(b"K\x03tQ", b"K\x12tQ")  # every record of the target has 72 bytes
    truncated("pickle", "data", b"\0" + weights)
    write("pickle", "good_shapes", b"\1" + pickles["traced_inputs.pkl"])
    write("pickle", "good_plain", b"\2\x80\x02(K\x01X\x01\0\0\0aG" + bytes(8) + b"t.")
    write("pickle", "bad_plain", b"\2" + weights)
    write("pickle", "bad_missing_record", b"\0" + weights.replace(b"X\x01\0\0\x000", b"X\x01\0\0\0x"))
    write("pickle", "bad_table", b"\0\x80\x02Nr\xff\xff\xff\xff.")
    write("pickle", "bad_function", b"\0\x80\x02K\0)R.")


if __name__ == "__main__":
    for seed in CORPUS.glob("*/*"):  # what a fuzzer found is named otherwise and stays
        if seed.name.startswith(("good_", "bad_")):
            seed.unlink()
    make_arff()
    make_npy()
    make_safetensors()
    make_csv()
    make_idx()
    make_images()
    make_text()
    make_checkpoint()
    make_gates()
    make_run_folder()
    make_archives()
    make_torchscript()
    make_exported()
    make_onnx()
