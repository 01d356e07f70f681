"""Writes images in every form the readers accept, and what Pillow makes of them, for image_test.cpp.

usage: pillow_reference.py FOLDER
decode.csv: file, height, width, channels, raw, tolerance      raw = the expected pixels, row-major
resize.csv: file, height, width, raw, tolerance                 and crop.csv: file, size, raw, tolerance
"""

import csv
import pathlib
import struct
import sys
import zlib

import numpy as np
import PIL
from PIL import Image


def picture(height, width, channels):
    """Smooth colours with an edge: what photographs are made of, without noise that JPEG would amplify."""
    y, x = np.mgrid[0:height, 0:width]
    planes = [127 + 120 * np.sin((c + 1) * x / 9.0 + y / (7.0 + c)) for c in range(channels)]
    pixels = np.stack(planes, axis=-1)
    pixels[height // 3 :, width // 2 :] *= 0.5
    return pixels.clip(0, 255).astype(np.uint8)


def png(width, height, bit_depth, color_type, passes, interlaced):
    """A PNG file written by hand for what Pillow cannot write; `passes` are lists of rows of bytes."""

    def chunk(name, content):
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))

    header = struct.pack(">IIBBBBB", width, height, bit_depth, color_type, 0, 0, int(interlaced))
    body = b"".join(b"\0" + row for rows in passes for row in rows)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(body)) + chunk(b"IEND", b"")


def adam7(pixels):
    starts = [(0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1)]
    return [[row.tobytes() for row in pixels[y::dy, x::dx] if row.size] for y, x, dy, dx in starts]


def main(folder):
    decode, resize, crop = [], [], []

    def add(name, expected, tolerance=0):
        expected = np.asarray(expected)
        channels = 1 if expected.ndim == 2 else expected.shape[2]
        (folder / f"{name}.raw").write_bytes(expected.tobytes())
        decode.append([name, expected.shape[0], expected.shape[1], channels, f"{name}.raw", tolerance])

    rgb = Image.fromarray(picture(47, 33, 3))
    grey = rgb.convert("L")
    palette = rgb.quantize(13)
    alpha = rgb.copy()
    alpha.putalpha(grey)

    pngs = {
        "rgb.png": (rgb, rgb),
        "grey.png": (grey, grey),
        "bilevel.png": (grey.convert("1"), grey.convert("1").convert("L")),
        "palette.png": (palette, palette.convert("RGB")),
        "rgba.png": (alpha, alpha.convert("RGB")),
        "la.png": (alpha.convert("LA"), alpha.convert("LA").convert("L")),
    }
    for name, (image, expected) in pngs.items():
        image.save(folder / name)
        add(name, expected)
    palette.save(folder / "palette_transparent.png", transparency=3)
    add("palette_transparent.png", palette.convert("RGB"))

    pixels = np.asarray(rgb)
    (folder / "interlaced.png").write_bytes(png(33, 47, 8, 2, adam7(pixels), True))
    add("interlaced.png", Image.open(folder / "interlaced.png"))
    wide = (pixels.astype(np.uint16) * 256 + 77).astype(">u2")
    (folder / "rgb16.png").write_bytes(png(33, 47, 16, 2, [[row.tobytes() for row in wide]], False))
    add("rgb16.png", pixels)
    (folder / "grey16.png").write_bytes(png(33, 47, 16, 0, [[row.tobytes() for row in wide[:, :, 0]]], False))
    add("grey16.png", pixels[:, :, 0])

    jpegs = {
        "444.jpg": (rgb, {"subsampling": 0}),
        "422.jpg": (rgb, {"subsampling": 1}),
        "420.jpg": (rgb, {"subsampling": 2}),
        "progressive.jpg": (rgb, {"progressive": True}),
        "restart.jpg": (rgb, {"restart_marker_blocks": 2}),
        "grey.jpg": (grey, {}),
        "cmyk.jpg": (rgb.convert("CMYK"), {}),
    }
    for name, (image, options) in jpegs.items():
        image.save(folder / name, quality=90, **options)
        stored = Image.open(folder / name)
        expected = stored if stored.mode in ("L", "RGB") else stored.convert("RGB")
        add(name, expected, tolerance=2 if stored.mode == "CMYK" else 1)

    rgb.save(folder / "rgb.ppm")
    add("rgb.ppm", rgb)
    grey.save(folder / "grey.pgm")
    add("grey.pgm", grey)
    (folder / "small_maximum.ppm").write_bytes(b"P6\n# a comment\n33 47\n# another\n100\n" + (pixels // 3).tobytes())
    add("small_maximum.ppm", Image.open(folder / "small_maximum.ppm"), tolerance=1)  # Python rounds halves to even

    # Pillow 13 runs along columns first where that is less work, and then rounds differently.
    tolerance = 0 if int(PIL.__version__.split(".")[0]) < 13 else 1

    def expect(image):
        name = f"expected{len(resize) + len(crop)}.raw"
        (folder / name).write_bytes(np.asarray(image).tobytes())
        return name

    for name, image in (("rgb.png", rgb), ("grey.png", grey)):
        for height, width in ((32, 32), (227, 227), (5, 201), (47, 11), (90, 33), (1, 1), (46, 34)):
            resize.append([name, height, width, expect(image.resize((width, height), Image.Resampling.BILINEAR)), tolerance])
        for size in (8, 20, 33, 64):
            # Image 33 wide, 47 high, as torchvision's Resize and CenterCrop do it.
            height, width = int(size * 47 / 33), size
            top, left = round((height - size) / 2.0), 0
            scaled = image.resize((width, height), Image.Resampling.BILINEAR)
            crop.append([name, size, expect(scaled.crop((left, top, left + size, top + size))), tolerance])

    grey_rows = [["rgb.png", expect(rgb.convert("L"))]]
    for name, header, rows in (
        ("decode", ["file", "height", "width", "channels", "raw", "tolerance"], decode),
        ("resize", ["file", "height", "width", "raw", "tolerance"], resize),
        ("crop", ["file", "size", "raw", "tolerance"], crop),
        ("to_grey", ["file", "raw"], grey_rows),
    ):
        with open(folder / f"{name}.csv", "w", newline="") as target:
            csv.writer(target).writerows([header, *rows])


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
