# SPDX-License-Identifier: Apache-2.0
"""Writes the wheel (PEP 517, PEP 427) with Python's standard library alone, so that installing needs no network.

A wheel is a zip of the package, and three files about it. Two builds of the same files are the same bytes.
"""
import base64
import hashlib
import io
import os
import tarfile
import tomllib
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
MODULES = ("cofferdam", "coffer_verify.py")
EPOCH = (1980, 1, 1, 0, 0, 0)


def _project():
    return tomllib.loads((HERE / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def _metadata(project):
    return (f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
            f"Summary: {project['description']}\nLicense: {project['license']['text']}\n"
            f"Requires-Python: {project['requires-python']}\n").encode()


def _sources():
    for name in MODULES:
        place = HERE / name
        files = sorted(place.rglob("*")) if place.is_dir() else [place]
        for file in files:
            if file.suffix in (".py", ".typed"):
                yield file.relative_to(HERE).as_posix(), file.read_bytes()


def _write_wheel(directory, contents):
    project = _project()
    title = f"{project['name']}-{project['version']}"
    about = f"{title}.dist-info"
    contents = [*contents, (f"{about}/METADATA", _metadata(project)),
                (f"{about}/WHEEL", b"Wheel-Version: 1.0\nGenerator: cofferdam\nRoot-Is-Purelib: true\nTag: py3-none-any\n")]
    record = ""
    name = f"{title}-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(directory, name), "w", zipfile.ZIP_DEFLATED) as wheel:
        for path, data in contents:
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record += f"{path},sha256={digest},{len(data)}\n"
            _add(wheel, path, data)
        _add(wheel, f"{about}/RECORD", (record + f"{about}/RECORD,,\n").encode())
    return name


def _add(wheel, path, data):
    entry = zipfile.ZipInfo(path, EPOCH)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o100644 << 16
    wheel.writestr(entry, data)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    return _write_wheel(wheel_directory, list(_sources()))


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    return _write_wheel(wheel_directory, [("cofferdam_editable.pth", f"{HERE}\n".encode())])


def build_sdist(sdist_directory, config_settings=None):
    project = _project()
    title = f"{project['name']}-{project['version']}"
    own = [(name, (HERE / name).read_bytes()) for name in ("pyproject.toml", "README.md", "build_backend/wheel_writer.py")]
    with tarfile.open(os.path.join(sdist_directory, f"{title}.tar.gz"), "w:gz") as archive:
        for path, data in [*own, *_sources(), ("PKG-INFO", _metadata(project))]:
            entry = tarfile.TarInfo(f"{title}/{path}")
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return f"{title}.tar.gz"
