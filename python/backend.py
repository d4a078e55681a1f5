"""Builds the package for pip: the wheel that CMake's target `wheel` makes (PEP 517 and PEP 660)."""

# SPDX-License-Identifier: Apache-2.0
import base64
import hashlib
import os
import re
import stat
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SUFFIX = sysconfig.get_config_var("EXT_SUFFIX")  # of compiled modules: one for each version
METADATA = """Metadata-Version: 2.1
Name: interlock
Version: {version}
Summary: Predicts step time, memory and utilisation of model-parallel training
License: Apache-2.0
Requires-Python: >=3.10
Provides-Extra: tables
Requires-Dist: pandas; extra == "tables"
"""
WHEEL = """Wheel-Version: 1.0
Generator: interlock
Root-Is-Purelib: false
Tag: {tag}
"""


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """Makes a wheel in `wheel_directory`. Returns its name."""
    build = _build("wheel")
    name = _wheel_name()
    (Path(wheel_directory) / name).write_bytes((build / name).read_bytes())
    return name


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    """Writes what pip asks for before anything is built. Returns the folder of it."""
    info = Path(metadata_directory) / f"interlock-{_version()}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(METADATA.format(version=_version()))
    return info.name


prepare_metadata_for_build_editable = prepare_metadata_for_build_wheel


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    """Makes a wheel that leads to the sources: changes of them hold at once."""
    build = _build("interlock_core")
    files = {"interlock.pth": f"{build / 'python'}\n".encode()}
    return write_wheel(Path(wheel_directory), files).name


def build_sdist(sdist_directory, config_settings=None):
    """Refuses: the package is built from a whole checkout."""
    raise SystemExit("interlock has no source distribution; type: pip wheel ./python")


def _build(target):
    """Builds a target for this Python. Returns the build folder.

    That is build/, or $INTERLOCK_BUILD, where ./run and ./test have compiled most of it, if it is
    for this version of Python; else a folder of its own.
    """
    build = Path(os.environ.get("INTERLOCK_BUILD") or ROOT / "build")
    module = build / "python" / "module"
    if not module.exists() or module.read_text() != f"_core{SUFFIX}":
        build = ROOT / f"build-{_tag()}"
        python = Path(sys.executable).resolve()  # a venv may be gone when this folder is used again
        _run(
            "cmake", "-S", ROOT, "-B", build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
            "-DINTERLOCK_CCACHE=ON", "-DINTERLOCK_CUDA=OFF", "-DINTERLOCK_TESTS=OFF",
            "-DINTERLOCK_PYTHON=ON", f"-DPython_EXECUTABLE={python}",
        )  # fmt: skip
    _run("cmake", "--build", build, "--target", target)
    return build


def _run(*command):
    try:
        subprocess.run([str(word) for word in command], check=True)
    except FileNotFoundError:
        tools = "cmake ninja-build g++"
        raise SystemExit(f"interlock is built by CMake; type: apt install {tools}") from None
    except subprocess.CalledProcessError as failed:
        raise SystemExit(f"{command[0]} failed ({failed.returncode}); ./run installs what it needs")


def _version():
    text = (ROOT / "CMakeLists.txt").read_text()
    return re.search(r"project\(interlock VERSION ([0-9.]+)", text)[1]


def _tag():
    version = f"cp{sys.version_info.major}{sys.version_info.minor}"
    return f"{version}-{version}-{sysconfig.get_platform().translate(str.maketrans('-.', '__'))}"


def _wheel_name():
    return f"interlock-{_version()}-{_tag()}.whl"


def write_wheel(folder, files, programs=frozenset()):
    """Writes a wheel of `files`, contents by path; `programs` can be run. Returns its path."""
    version = _version()
    info = f"interlock-{version}.dist-info"
    files[f"{info}/METADATA"] = METADATA.format(version=version).encode()
    files[f"{info}/WHEEL"] = WHEEL.format(tag=_tag()).encode()
    record = ""
    for path, contents in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(contents).digest()).rstrip(b"=").decode()
        record += f"{path},sha256={digest},{len(contents)}\n"
    files[f"{info}/RECORD"] = (record + f"{info}/RECORD,,\n").encode()
    wheel = folder / _wheel_name()
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, contents in files.items():
            entry = zipfile.ZipInfo(path)  # without a date, so that equal files are equal wheels
            entry.compress_type = zipfile.ZIP_DEFLATED
            mode = 0o755 if path in programs else 0o644
            entry.external_attr = (stat.S_IFREG | mode) << 16  # pip asks whether it is a file
            archive.writestr(entry, contents)
    return wheel


if __name__ == "__main__":  # backend.py FOLDER WHERE, as CMake calls it
    staged = Path(sys.argv[1]).resolve()
    paths = [path for path in sorted(staged.rglob("*")) if path.is_file()]
    # A wheel has no links: what a link leads to is there once, under the link's name.
    once = set(paths) - {path.resolve() for path in paths if path.is_symlink()}
    contents = {str(path.relative_to(staged)): path.read_bytes() for path in paths if path in once}
    programs = {name for name in contents if os.access(staged / name, os.X_OK)}
    print(write_wheel(Path(sys.argv[2]), contents, programs))
