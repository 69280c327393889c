"""Puts the C++ sources that the extension is built from on first use into the package."""

import runpy
import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

REPOSITORY = Path(__file__).resolve().parent.parent
CPP_FILES = runpy.run_path(str(REPOSITORY / "python/lockstep/_cpp_files.py"))


class BuildWithSources(build_py):
    def run(self):
        super().run()
        into = Path(self.build_lib) / "lockstep"
        others = [*("*" + ending for ending in CPP_FILES["TEST_ENDINGS"]), "test_support", "CMakeLists.txt", "*.md"]
        for folder in CPP_FILES["SOURCE_FOLDERS"]:
            shutil.copytree(REPOSITORY / folder, into / "_sources" / folder, dirs_exist_ok=True,
                            ignore=shutil.ignore_patterns(*others))
        shutil.copytree(REPOSITORY / "python/lockstep/csrc", into / "csrc", dirs_exist_ok=True)


setup(cmdclass={"build_py": BuildWithSources})
