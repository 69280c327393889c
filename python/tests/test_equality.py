"""The same bits with and without Lockstep."""

import re
import sys
import unittest

import support


def digests(text):
    return sorted(re.findall(r"\w+ (?:ddp|fsdp2) rank \d loss \S+ [0-9a-f]{64}", text))


class Equality(unittest.TestCase):
    def check(self, ranks):
        script = support.SCRIPTS / "equality.py"
        without = support.plain(support.torchrun(ranks, script))
        self.assertEqual(without.returncode, 0, without.stdout)
        watched = support.simulate([sys.executable, script], ranks)
        self.assertEqual((watched.code, watched.verdict["verdict"]), (0, "ok"), watched.output)
        self.assertEqual(len(digests(watched.output)), 6 * ranks)
        self.assertEqual(digests(watched.output), digests(without.stdout))

    def test_three_models_by_ddp_and_fsdp2_on_2_ranks(self):
        self.check(2)

    def test_three_models_by_ddp_and_fsdp2_on_4_ranks(self):
        self.check(4)


if __name__ == "__main__":
    unittest.main()
