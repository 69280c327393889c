"""Scripts under `lockstep sim`: the verdict names rank, place, step and names, however the ranks are started."""

import re
import sys
import textwrap
import unittest

import support

MISMATCH = """
    import torch
    import torch.distributed as dist


    def exchange(tensor):
        if dist.get_rank() == 1:
            dist.broadcast(tensor, 0)
        else:
            dist.all_reduce(tensor)


    dist.init_process_group("gloo")
    exchange(torch.ones(3))
"""

DEADLOCK = """
    import torch
    import torch.distributed as dist

    dist.init_process_group("gloo")
    if dist.get_rank() == 0:
        dist.barrier()
    other = torch.zeros(2)
    dist.recv(other, 1 - dist.get_rank())
"""


class Places(support.ScriptTest):
    def test_a_mismatch_names_both_calls_with_file_line_and_function(self):
        run = self.run_script(MISMATCH, ranks=3)
        self.assertEqual((run.code, run.verdict["verdict"], run.verdict["first"]), (11, "mismatch", 1), run.output)
        odd, other = run.rank(1), run.rank(2)
        self.assertEqual((odd["op"], odd["place"]["line"], odd["place"]["function"]), ("broadcast", 7, "exchange"))
        self.assertTrue(odd["place"]["file"].endswith("train.py"))
        self.assertEqual((other["op"], other["place"]["line"]), ("allreduce", 9))

    def test_a_deadlock_names_who_waits_for_whom_and_where(self):
        run = self.run_script(DEADLOCK)
        self.assertEqual((run.code, run.verdict["verdict"]), (10, "deadlock"), run.output)
        self.assertEqual(sorted(map(tuple, run.verdict["edges"])), [(0, 1), (1, 0)])
        self.assertEqual((run.rank(0)["op"], run.rank(0)["place"]["line"]), ("barrier", 6))
        self.assertEqual((run.rank(1)["op"], run.rank(1)["place"]["line"]), ("recv", 8))

    def test_where_an_asynchronous_call_is_waited_for_is_told_too(self):
        run = self.run_script("""
            import torch
            import torch.distributed as dist

            dist.init_process_group("gloo")
            if dist.get_rank() == 0:
                work = dist.all_reduce(torch.ones(2), async_op=True)
                work.wait()
            else:
                dist.recv(torch.ones(2), 0)
        """)
        self.assertEqual(run.code, 10, run.output)
        self.assertEqual(run.rank(0)["place"]["line"], 6)
        self.assertEqual(run.rank(0)["waits_at"]["line"], 7)

    def test_a_library_of_the_users_counts_as_his_and_torch_does_not(self):
        self.script("import torch.distributed as dist\n\ndef reduce(x):\n    dist.all_reduce(x)\n", "helpers.py")
        run = self.run_script("""
            import torch, helpers
            import torch.distributed as dist
            dist.init_process_group("gloo")
            helpers.reduce(torch.ones(2 + dist.get_rank()))
        """)
        self.assertEqual(run.code, 11, run.output)
        self.assertTrue(run.rank(0)["place"]["file"].endswith("helpers.py"))


class Names(support.ScriptTest):
    def test_a_bucket_is_known_by_its_parameters_and_its_step(self):
        run = self.run_script("""
            import torch
            import torch.distributed as dist

            dist.init_process_group("gloo")
            model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 1))
            model = torch.nn.parallel.DistributedDataParallel(model)
            optimizer = torch.optim.SGD(model.parameters(), 0.1)
            for step in range(5):
                loss = model(torch.ones(2, 3)).sum()
                if dist.get_rank() == 1 and step == 3:
                    dist.all_reduce(torch.ones(2))
                loss.backward()
                optimizer.step()
        """)
        self.assertEqual((run.code, run.verdict["verdict"]), (11, "mismatch"), run.output)
        bucket = run.rank(0)
        self.assertEqual(sorted(bucket["label"]), ["0.bias", "0.weight", "1.bias", "1.weight"])
        self.assertEqual((bucket["step"], bucket["phase"], bucket["place"]["line"]), (3, "backward", 12))

    def test_named_tensors_of_equal_shape_are_told_apart(self):
        run = self.run_script("""
            import lockstep
            import torch
            import torch.distributed as dist

            dist.init_process_group("gloo")
            a, b = torch.ones(2), torch.full((2,), 100.0)
            lockstep.name(a, "a")
            lockstep.name(b, "b")
            lockstep.step(7)
            for tensor in (a, b) if dist.get_rank() == 0 else (b, a):
                dist.all_reduce(tensor)
        """)
        self.assertEqual((run.code, run.verdict["verdict"]), (11, "mismatch"), run.output)
        self.assertEqual((run.rank(0)["label"], run.rank(1)["label"], run.rank(0)["step"]), (["a"], ["b"], 7))

    def test_groups_are_known_by_their_ranks(self):
        run = self.run_script("""
            import torch
            import torch.distributed as dist

            dist.init_process_group("gloo")
            group = dist.new_group([0, 2])
            if dist.get_rank() == 2:
                dist.all_reduce(torch.ones(2), group=group)
            if dist.get_rank() == 0:
                dist.all_reduce(torch.ones(3), group=group)
        """, ranks=3)
        self.assertEqual(run.code, 11, run.output)
        self.assertIn("(ranks 0, 2)", run.rank(0)["group"])


class Endings(support.ScriptTest):
    def test_an_exception_is_the_verdict_with_its_line(self):
        run = self.run_script("""
            import torch
            import torch.distributed as dist

            def load(i):
                return [1, 2][i + 2 * dist.get_rank()]

            dist.init_process_group("gloo")
            load(0)
            dist.barrier()
        """)
        self.assertEqual((run.code, run.verdict["verdict"], run.verdict["first"]), (12, "rank_failed", 1), run.output)
        failed = run.rank(1)
        self.assertEqual((failed["kind"], failed["message"]), ("IndexError", "list index out of range"))
        self.assertEqual(failed["failed_at"]["line"], 5)

    def test_an_exit_code_is_the_verdict(self):
        run = self.run_script("""
            import sys
            import torch.distributed as dist

            dist.init_process_group("gloo")
            if dist.get_rank() == 1:
                sys.exit(3)
            dist.barrier()
        """)
        self.assertEqual((run.code, run.verdict["verdict"], run.verdict["first"]), (12, "rank_failed", 1), run.output)

    def test_who_leaves_early_is_named(self):
        run = self.run_script("""
            import torch.distributed as dist

            dist.init_process_group("gloo")
            for i in range(3):
                if dist.get_rank() == 1 and i == 2:
                    break
                dist.barrier()
        """)
        self.assertEqual((run.code, run.verdict["verdict"], run.verdict["first"]), (10, "deadlock", 1), run.output)

    def test_a_key_that_nobody_sets(self):
        run = self.run_script("""
            import torch.distributed as dist

            dist.init_process_group("gloo")
            store = dist.distributed_c10d._get_default_store()
            if dist.get_rank() == 0:
                store.set("chekpoint", "ready")
                dist.barrier()
            else:
                store.get("checkpoint")
        """)
        self.assertEqual((run.code, run.verdict["verdict"]), (10, "deadlock"), run.output)
        self.assertIn("checkpoint", run.rank(1)["key"])
        self.assertEqual(run.rank(1)["place"]["line"], 9)

    def test_a_progress_bar_does_not_delay_the_verdict(self):
        run = self.run_script("""
            import torch
            import torch.distributed as dist
            from tqdm import tqdm

            tqdm.monitor_interval = 1
            dist.init_process_group("gloo")
            for i in tqdm(range(3)):
                dist.barrier()
                if dist.get_rank() == 1 and i == 1:
                    dist.recv(torch.ones(1), 0)
        """)
        self.assertEqual((run.code, run.verdict["verdict"]), (10, "deadlock"), run.output)
        self.assertLess(run.verdict["since_stall_s"], 15)  # threads that nobody knows are waited for 30 s

    def test_two_worlds_one_after_the_other(self):
        run = self.run_script("""
            import os
            import torch
            import torch.distributed as dist

            for world in range(2):
                os.environ["MASTER_PORT"] = str(int(os.environ["MASTER_PORT"]) + world)
                dist.init_process_group("gloo")
                dist.all_reduce(torch.ones(2))
                dist.destroy_process_group()
        """)
        self.assertEqual((run.code, run.verdict["verdict"]), (0, "ok"), run.output)


    def test_a_file_as_the_store_may_be_waited_at(self):
        run = self.run_script("""
            import os
            import sys
            import time
            import torch
            import torch.distributed as dist

            rank = int(os.environ["RANK"])
            if rank == 1:
                time.sleep(3)
            dist.init_process_group("gloo", init_method=f"file://{sys.path[0]}/store", rank=rank, world_size=2)
            dist.all_reduce(torch.ones(2))
        """)
        self.assertEqual((run.code, run.verdict["verdict"]), (0, "ok"), run.output)


MEMORY = """
    import torch
    import torch.distributed as dist


    def train():
        if not dist.is_initialized():  # debug_launcher has done it
            dist.init_process_group("gloo")
        held = torch.ones(256 * 1024 * (dist.get_rank() + 1))
        dist.barrier()
        if dist.get_rank() == 1:
            try:
                torch.ones(16 * 1024 * 1024)
            except torch.OutOfMemoryError:
                print("no room on rank 1")
        dist.barrier()


    if __name__ == "__main__":
"""


class Memory(support.ScriptTest):
    def check(self, main, command, ranks):
        script = self.script(textwrap.dedent(MEMORY) + "        " + main + "\n")
        run = support.simulate([*command, script], ranks, ["--device-memory", "32MiB"])
        self.assertEqual((run.code, run.verdict["verdict"]), (0, "ok"), run.output)
        self.assertIn("no room on rank 1", run.output)
        of_ranks = [float(peak) for _, peak in sorted(re.findall(r"memory of rank (\d): .*?([\d.]+) MiB", run.output))]
        self.assertEqual(len(of_ranks), 2, run.output)
        self.assertGreaterEqual(of_ranks[1] - of_ranks[0], 0.9)

    def test_of_ranks_that_we_start(self):
        self.check("train()", [sys.executable], 2)

    def test_of_torchruns_ranks_and_not_of_torchrun(self):
        self.check("train()", support.torchrun(2, "")[:-1], None)

    def test_of_processes_that_a_script_starts(self):
        self.check("from accelerate import debug_launcher; debug_launcher(train, num_processes=2)", [sys.executable], None)


class Ends(support.ScriptTest):
    def test_a_rank_may_end_right_after_its_last_call(self):
        # Gloo's threads give up the tensors of that call while the interpreter is about to end.
        script = self.script("""
            import torch
            import torch.distributed as dist

            dist.init_process_group("gloo")
            weights = torch.zeros(3)
            for step in range(3):
                dist.all_reduce(weights)
            dist.destroy_process_group()
        """)
        for _ in range(8):
            run = support.simulate([sys.executable, script], 3)
            self.assertEqual((run.code, run.verdict["verdict"]), (0, "ok"), run.output)

    def test_a_rank_that_ends_before_the_first_group(self):
        run = self.run_script("""
            import os
            import sys
            import torch.distributed as dist

            if os.environ["RANK"] == "1":
                sys.exit(0)
            dist.init_process_group("gloo")
        """, ranks=3, options=["--timeout", "60"])
        self.assertEqual((run.code, run.verdict["verdict"]), (10, "deadlock"), run.output)
        self.assertRegex(run.verdict["cause"], r"rank 2 waits in the making of group world at .*train.py:7 .*for rank 1, which has left")

    def test_the_debugger_is_left_before_the_first_group(self):
        run = self.run_script("import torch.distributed as dist; dist.init_process_group('gloo')\n",
                              options=["--pdb", "1", "--timeout", "60"])
        self.assertEqual((run.code, run.verdict["verdict"]), (130, "interrupted"), run.output)
        self.assertEqual(run.verdict["cause"], "rank 1 ended in its debugger before it made a group")


class Starters(support.ScriptTest):
    def check_mismatch(self, run):
        self.assertEqual((run.code, run.verdict["verdict"]), (11, "mismatch"), run.output)
        self.assertEqual((run.rank(1)["op"], run.rank(1)["place"]["line"]), ("broadcast", 7))

    def test_torchrun(self):
        self.check_mismatch(support.simulate(support.torchrun(2, self.script(MISMATCH)), ranks=None))

    def test_accelerate_launch(self):
        launch = [sys.executable, "-m", "accelerate.commands.launch", "--multi_gpu", "--num_processes", "2"]
        self.check_mismatch(support.simulate([*launch, self.script(MISMATCH)], ranks=None))

    def test_debug_launcher(self):
        run = support.simulate([sys.executable, self.script("""
            import torch
            import torch.distributed as dist
            from accelerate import Accelerator, debug_launcher


            def train():
                accelerator = Accelerator(cpu=True)
                if accelerator.process_index == 1:
                    torch.distributed.broadcast(torch.ones(3), 0)
                else:
                    torch.distributed.all_reduce(torch.ones(3))


            if __name__ == "__main__":
                debug_launcher(train, num_processes=2)
        """)], ranks=None)
        self.assertEqual((run.code, run.verdict["verdict"]), (11, "mismatch"), run.output)
        self.assertEqual(run.rank(1)["place"]["line"], 9)

    def test_torchrun_alone_with_the_variable(self):
        done = support.plain(support.torchrun(2, self.script(MISMATCH)), LOCKSTEP_SIM="1", PYTHONPATH=str(support.PACKAGE))
        self.assertNotEqual(done.returncode, 0)
        self.assertRegex(done.stdout, r"lockstep: .*broadcast #1 of group world.*train\.py:7")
        self.assertRegex(done.stdout, r"DistBackendError: .*broadcast #1 of group world.*train\.py:7")


class Outside(support.ScriptTest):
    def test_without_the_variable_nothing_is_touched(self):
        script = self.script("""
            import sys
            import torch.distributed as dist
            import lockstep
            assert not any(name.startswith("lockstep._core") for name in sys.modules)
            assert dist.ProcessGroupGloo.__module__ == "torch.distributed.distributed_c10d"
            lockstep.step(); lockstep.name(None, "x"); lockstep.check_divergence({})
            print("watched", lockstep.is_watched())
        """)
        done = support.plain([sys.executable, script], PYTHONPATH=str(support.PACKAGE))
        self.assertEqual((done.returncode, done.stdout.strip()), (0, "watched False"))

    def test_where_the_extension_cannot_be_built_the_script_runs_and_nothing_was_checked(self):
        run = self.run_script("""
            import time
            import torch
            import torch.distributed as dist
            dist.init_process_group("gloo")
            dist.all_reduce(torch.ones(2))
            print("done")
            dist.destroy_process_group()  # torch may abort where Gloo's threads still hold tensors at the end
        """, LOCKSTEP_CACHE=str(self.folder / "cache"), CXX="/bin/false")
        self.assertEqual((run.code, run.verdict["verdict"]), (17, "unchecked"), run.output)
        self.assertEqual(len(re.findall(r"nothing is checked in this process: its extension cannot be built", run.output)), 2)
        self.assertEqual(run.output.count("done"), 2)

    def test_weights_that_diverge_are_named(self):
        run = self.run_script("""
            import lockstep
            import torch
            import torch.distributed as dist
            dist.init_process_group("gloo")
            model = torch.nn.Linear(2, 2)
            torch.nn.init.constant_(model.weight, 1.0)
            torch.nn.init.constant_(model.bias, float(dist.get_rank() == 2))
            lockstep.check_divergence(model.state_dict())
        """, ranks=3)
        self.assertEqual(run.code, 12, run.output)
        failed = next(rank for rank in run.verdict["ranks"] if rank["state"] == "failed")
        self.assertEqual(failed["kind"], "DivergenceError")
        self.assertIn("'bias' differs, and equal values are held by: ranks 0, 1; rank 2", failed["message"])


if __name__ == "__main__":
    unittest.main()
