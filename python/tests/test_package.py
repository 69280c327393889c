"""The installed package has all that its extension is built from."""

import pathlib
import subprocess
import sys
import unittest

import support

PYTHON = pathlib.Path(__file__).resolve().parents[1]


class Package(support.ScriptTest):
    def test_the_extension_is_built_from_what_is_installed(self):
        built = subprocess.run([sys.executable, "setup.py", "-q", "build_py", "--build-lib", self.folder], cwd=PYTHON,
                               capture_output=True, text=True)
        self.assertEqual(built.returncode, 0, built.stderr)
        self.script("[torch.backends]\nlockstep = lockstep._autoload:autoload\n",
                    "entry_points.txt").rename(self.information() / "entry_points.txt")
        script = self.script("""
            import lockstep
            import torch
            print(lockstep.__file__, lockstep.is_watched())
        """)
        cache = self.folder / "cache"
        done = support.plain([sys.executable, script], LOCKSTEP_SIM="1", PYTHONPATH=str(self.folder),
                             LOCKSTEP_CACHE=str(cache))
        self.assertIn(f"{self.folder}/lockstep/__init__.py True", done.stdout)
        self.assertEqual(len(list(cache.glob("python-extension/torch-*/_core.so"))), 1)

    def information(self):
        folder = self.folder / "lockstep-0.1.0.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: lockstep\nVersion: 0.1.0\n")
        return folder


if __name__ == "__main__":
    unittest.main()
