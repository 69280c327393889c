"""The name of one test run: of its result file and, with a process id, of its job. Shared by run_one and summarize."""
import re


def test_id(command: list[str], override: str = "") -> str:
    """`binary` or `binary.Filter_Value`; LOCKSTEP_TEST_ID (the override) wins."""
    name = override
    if not name:
        name = command[0].rpartition("/")[2]
        for argument in command[1:]:
            if argument.startswith("--gtest_filter="):
                name += "." + argument.partition("=")[2]
    name = re.sub(r"[^A-Za-z0-9_.-]+", "_", name)
    if len(name) > 100:  # names of files and of shared memory have limits; keep long ones apart by a hash
        import hashlib
        name = name[:90] + "-" + hashlib.sha1(name.encode()).hexdigest()[:8]
    return name
