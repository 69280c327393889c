"""The installed package has all that its extension is built from."""

import pathlib
import subprocess
import sys
import unittest

import support

PYTHON = pathlib.Path(__file__).resolve().parents[1]


class Package(support.ScriptTest):
    def test_the_extension_is_built_from_what_is_installed(self):
        # What pip installs, without the packages that it would fetch to do so.
        built = subprocess.run([sys.executable, "setup.py", "-q", "egg_info", "--egg-base", self.folder, "build_py",
                                "--build-lib", self.folder], cwd=PYTHON, capture_output=True, text=True)
        self.assertEqual(built.returncode, 0, built.stderr)
        script = self.script("""
            import lockstep
            import torch
            print(lockstep.__file__, lockstep.is_watched())
        """)
        cache = self.folder / "cache"
        done = support.plain([sys.executable, script], LOCKSTEP_SIM="1", PYTHONPATH=str(self.folder),
                             LOCKSTEP_CACHE=str(cache))
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn(f"{self.folder}/lockstep/__init__.py True", done.stdout)
        self.assertEqual(len(list(cache.glob("python-extension/torch-*/_core.so"))), 1)


if __name__ == "__main__":
    unittest.main()
