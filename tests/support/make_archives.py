"""Archives made by Python's own writers, for the readers of ours.

FOLDER/{ustar,gnu,pax}.tar, plain.tar.gz, plain.zip, and nested.zip with plain.zip inside.

Each holds short.txt ("short\n"), a file of 100000 bytes i % 251 and an empty one, with a name too long for a plain header.
"""

import io
import sys
import tarfile
import zipfile

folder = sys.argv[1]
long_name = "folder/" + "x" * 120 + "/" + "y" * 90 + ".bin"
files = {
    "short.txt": b"short\n",
    "folder/numbers.bin": bytes(i % 251 for i in range(100000)),
    "folder/empty": b"",
    long_name: b"long\n",
}


def write_tar(name, mode, form):
    with tarfile.open(f"{folder}/{name}", mode, format=form) as archive:
        directory = tarfile.TarInfo("folder/")
        directory.type = tarfile.DIRTYPE
        archive.addfile(directory)
        for path, data in files.items():
            member = tarfile.TarInfo(path)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))


write_tar("ustar.tar", "w", tarfile.USTAR_FORMAT)
write_tar("gnu.tar", "w", tarfile.GNU_FORMAT)
write_tar("pax.tar", "w", tarfile.PAX_FORMAT)
write_tar("plain.tar.gz", "w:gz", tarfile.USTAR_FORMAT)

with zipfile.ZipFile(f"{folder}/plain.zip", "w") as archive:
    archive.mkdir("folder") if hasattr(archive, "mkdir") else archive.writestr("folder/", b"")
    for path, data in files.items():
        stored = path == "short.txt"
        archive.writestr(path, data, zipfile.ZIP_STORED if stored else zipfile.ZIP_DEFLATED)
    archive.comment = b"a comment after the directory"
with zipfile.ZipFile(f"{folder}/nested.zip", "w", zipfile.ZIP_DEFLATED) as archive:
    archive.write(f"{folder}/plain.zip", "inner/plain.zip")
