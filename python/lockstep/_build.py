"""Builds the extension for the torch and the Python that run, once, and loads it."""

import concurrent.futures
import fcntl
import hashlib
import importlib.machinery
import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from lockstep import _environment
from lockstep._cpp_files import CORE, SOURCE_FOLDERS, TEST_ENDINGS, WITH_TORCH

_PACKAGE = Path(__file__).resolve().parent


def load():
    """The extension module, built first if need be. Raises RuntimeError with the reason and what to do."""
    path = _extension_path()
    if not path.exists():
        _build_once(path)
    loader = importlib.machinery.ExtensionFileLoader("lockstep._core", str(path))
    spec = importlib.util.spec_from_loader("lockstep._core", loader)
    try:
        module = importlib.util.module_from_spec(spec)
        loader.exec_module(module)
    except ImportError as error:
        raise RuntimeError(f"its extension {path} cannot be loaded ({error}); remove the file to have it built anew") from error
    sys.modules["lockstep._core"] = module
    return module


def _source_root():
    """The folder with sim/ and reference/: in the repository two levels up, in an installed package inside it."""
    for root in (_PACKAGE / "_sources", _PACKAGE.parents[1]):
        if (root / "sim" / "lockstep" / "sim" / "check").is_dir():
            return root
    raise RuntimeError("the sources of its extension are missing; install Lockstep's package again")


def _sources(root):
    core = []
    for entry in CORE:
        path = root / entry
        core += sorted(p for p in path.glob("*.cpp") if not _is_test(p)) if path.is_dir() else [path]
    with_torch = [root / entry for entry in WITH_TORCH] + sorted((_PACKAGE / "csrc").glob("*.cpp"))
    return core, with_torch


def _is_test(path):
    return path.name.endswith(TEST_ENDINGS) or "test_support" in path.parts


def _all_files(root):
    folders = [*(root / folder for folder in SOURCE_FOLDERS), _PACKAGE / "csrc"]
    return sorted(p for folder in folders for p in folder.rglob("*") if p.suffix in (".h", ".cpp") and not _is_test(p))


def _extension_path():
    import torch

    digest = hashlib.sha256()
    for part in (torch.__version__, str(torch.version.git_version), sysconfig.get_config_var("SOABI") or ""):
        digest.update(part.encode())
    for path in [*_all_files(_source_root()), _PACKAGE / "_cpp_files.py", Path(__file__)]:
        digest.update(path.read_bytes())
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    name = f"torch-{torch.__version__}-python-{version}-{digest.hexdigest()[:16]}"
    return _environment.cache_folder() / "python-extension" / name / "_core.so"


def _build_once(path):
    """Several ranks come here at once: one builds, the others wait for it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path.parent / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            _build(path)


def _compiler():
    """The command that compiles, as a list: CXX may hold words after the program, such as `ccache g++`."""
    given = shlex.split(os.environ.get("CXX", ""))
    for command in [given] if given else [["c++"], ["g++"], ["clang++"]]:
        if shutil.which(command[0]):
            return command
    if given:
        raise RuntimeError(f"CXX is '{os.environ['CXX']}', and no program {given[0]} is there to build its extension; "
                           "name a C++ compiler in CXX, or unset it")
    raise RuntimeError("no C++ compiler is there to build its extension; install one "
                       "(apt-get install g++ python3-dev), or name it in CXX")


def _flags(root):
    import torch

    include = Path(sysconfig.get_path("include"))
    if not (include / "Python.h").exists():
        raise RuntimeError(f"Python's headers are missing ({include}/Python.h); install them (apt-get install python3-dev)")
    torch_folder = Path(torch.__file__).parent
    # Types of torch's own module are known to ours only if pybind11 names its internals alike in both.
    abi = [f'-DPYBIND11_{name}="{value}"' for name in ("COMPILER_TYPE", "STDLIB", "BUILD_ABI")
           if (value := getattr(torch._C, f"_PYBIND11_{name}", None)) is not None]
    common = ["-std=c++20", "-O2", "-g1", "-fPIC", "-fno-omit-frame-pointer", "-fvisibility=hidden", "-w",
              f"-I{root / 'sim'}", f"-I{root / 'reference'}"]
    with_torch = [f"-I{_PACKAGE / 'csrc'}", f"-I{_PACKAGE / 'csrc/gloo_declarations'}",
                  "-isystem", str(torch_folder / "include"),
                  "-isystem", str(torch_folder / "include/torch/csrc/api/include"), "-isystem", str(include),
                  f"-D_GLIBCXX_USE_CXX11_ABI={int(torch._C._GLIBCXX_USE_CXX11_ABI)}",
                  "-DUSE_DISTRIBUTED", "-DUSE_C10D_GLOO", *abi]
    link = [f"-L{torch_folder / 'lib'}", "-ltorch_python", "-ltorch_cpu", "-lc10"]
    return common, with_torch, link


def _build(path):
    import torch

    root = _source_root()
    compiler = _compiler()
    common, with_torch, link = _flags(root)
    print(f"lockstep: building its extension for torch {torch.__version__} and Python "
          f"{sys.version_info.major}.{sys.version_info.minor}: once, a minute or two", file=sys.stderr, flush=True)
    core_sources, torch_sources = _sources(root)
    # What is compiled stays until all is: a build that was interrupted goes on where it was.
    folder = path.parent / "objects"
    folder.mkdir(exist_ok=True)
    unit = folder / "with_torch.cpp"
    unit.write_text("".join(f'#include "{source}"\n' for source in torch_sources))
    jobs = [(unit, [*common, *with_torch])] + [(source, common) for source in core_sources]
    objects = [folder / f"{number}.o" for number in range(len(jobs))]
    with concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        list(pool.map(lambda job, made: _make(made, [*compiler, *job[1], "-c", str(job[0])]), jobs, objects))
    _make(path, [*compiler, "-shared", *map(str, objects), *link])
    shutil.rmtree(folder)


def _make(path, command):
    """Runs a command that writes the file; it has its name only when it is whole."""
    if not path.exists():
        unfinished = path.with_suffix(".part")
        _run([*command, "-o", str(unfinished)])
        os.replace(unfinished, path)


def _run(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if "error" in line] or done.stderr.splitlines()
        raise RuntimeError(f"its extension cannot be built ({' '.join(lines[:2]) or command[0] + ' failed'}); "
                           "a compiler with C++20 is needed (g++ 11, clang 14 or later)")
