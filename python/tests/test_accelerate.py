"""Accelerate's own checks (accelerate.test_utils.scripts) under the simulator end as they do without it."""

import sys
import unittest

import support


class Checks(unittest.TestCase):
    def run_check(self, name):
        return support.simulate([sys.executable, "-m", f"accelerate.test_utils.scripts.{name}"])

    def expect_ok(self, name):
        run = self.run_check(name)
        self.assertEqual((run.code, run.verdict["verdict"]), (0, "ok"), f"{run.verdict}\n{run.output[-3000:]}")

    def test_script(self):
        self.expect_ok("test_script")

    def test_sync(self):
        self.expect_ok("test_sync")

    def test_ops(self):
        self.expect_ok("test_ops")

    def test_distributed_data_loop(self):
        # It joins uneven inputs, which Accelerate does on GPUs alone: on the CPU it hangs, with us or without. One rank
        # has left the loop and is in a barrier, the other one's next batch broadcasts the model's buffers.
        run = self.run_check("test_distributed_data_loop")
        self.assertEqual((run.code, run.verdict["verdict"]), (11, "mismatch"), run.output[-3000:])
        self.assertEqual(sorted((rank["op"] for rank in run.verdict["ranks"])), ["barrier", "broadcast"])
        self.assertEqual(run.rank(0)["place"]["function"], "test_can_join_uneven_inputs")

    def test_ddp_comm_hook(self):
        # It asks for a GPU by number, which torch refuses, with us or without.
        run = self.run_check("test_ddp_comm_hook")
        self.assertEqual((run.code, run.verdict["verdict"]), (12, "rank_failed"), run.output[-3000:])
        self.assertIn("device_ids and output_device arguments only work with", run.verdict["cause"])


if __name__ == "__main__":
    unittest.main()
