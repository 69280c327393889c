"""What becomes of a request on each rank, and of the world after it."""

import os
import pathlib
import sys
import unittest

from conformance.runner.subject import Subject
from conformance.runner.world import GRACE_S, World, WorldFailed

ONE_SECOND = 1.0 - GRACE_S  # the time-out with which that much passes in all
FAKE = [sys.executable, str(pathlib.Path(__file__).with_name("fake_subject.py"))]


def request(*do, timeout_s=10):
    return {"op": "fake", "rank_args": [{"do": what} for what in do], "timeout_s": timeout_s}


def gone(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


class WorldTest(unittest.TestCase):
    def ask(self, *do, **options):
        world = World(FAKE, len(do))
        self.addCleanup(world.kill)
        world.send(request(*do, **options))
        return world.collect()

    def test_each_rank_has_its_own_answer(self):
        self.assertEqual(self.ask("add", "fail", "something"), [
            {"ok": {"sum": 0, "rank": 0}}, {"error": "ValueError", "message": "as asked"},
            {"unsupported": "something"}])

    def test_no_answer_in_time_is_a_hang_of_that_rank_alone(self):
        outcomes = self.ask("hang", "add", timeout_s=ONE_SECOND)
        self.assertEqual(outcomes, [{"hang": True}, {"ok": {"sum": 0, "rank": 1}}])

    def test_the_end_of_a_process_is_a_crash_with_its_last_words(self):
        outcomes = self.ask("add", "crash")
        self.assertEqual(outcomes[1], {"crash": "exit code 7", "stderr": "last words\n"})

    def test_a_line_that_is_no_answer_or_has_another_id_breaks_the_protocol(self):
        babble, other = self.ask("babble", "other id")
        self.assertEqual(babble, {"protocol": "this is no answer"})
        self.assertIn("protocol", other)

    def test_requests_are_answered_one_after_another_by_the_same_processes(self):
        world = World(FAKE, 2)
        self.addCleanup(world.kill)
        pids = []
        for _ in range(2):
            world.send(request("pid", "pid"))
            pids.append([outcome["ok"] for outcome in world.collect()])
        self.assertEqual(pids[0], pids[1])

    def test_the_end_of_input_ends_the_ranks_well(self):
        world = World(FAKE, 2)
        world.close()
        self.assertEqual([rank.process.returncode for rank in world.ranks], [0, 0])

    def test_a_world_whose_rank_says_no_hello_does_not_start(self):
        with self.assertRaisesRegex(WorldFailed, "rank 0 of 1 ended with exit code 3 before its hello"):
            World([*FAKE, "mute"], 1)


class SubjectTest(unittest.TestCase):
    def setUp(self):
        self.subject = Subject("fake", FAKE)
        self.addCleanup(self.subject.__exit__)

    def pids(self):
        return [outcome["ok"] for outcome in self.subject.ask({"world": 2, **request("pid", "pid")})]

    def test_a_good_case_leaves_the_world_alive(self):
        before = self.pids()
        self.subject.ask({"world": 2, **request("fail", "fail")})
        self.assertEqual(self.pids(), before)

    def test_after_a_bad_outcome_or_unequal_ones_the_world_is_a_new_one_and_the_old_one_gone(self):
        for do in (("hang", "add"), ("crash", "crash"), ("babble", "babble"), ("fail", "add")):
            with self.subTest(do=do):
                before = self.pids()
                self.subject.ask({"world": 2, **request(*do, timeout_s=ONE_SECOND)})
                self.assertFalse(set(before) & set(self.pids()))
                self.assertTrue(all(gone(pid) for pid in before))

    def test_what_is_no_capability_is_not_supported(self):
        self.assertTrue(self.subject.supports({"world": 1, "op": "fake"}))
        self.assertFalse(self.subject.supports({"world": 1, "op": "comm.barrier"}))
