"""One rank of the subject: requests on stdin, answers on stdout, everything that libraries print on stderr."""

import os
import sys
import warnings


def take_stdout():
    """The real stdout, for answers alone; what anybody else writes there goes to stderr from now on."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return answers


def main():
    answers = take_stdout()  # before torch, which prints
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    warnings.filterwarnings("ignore")

    from conformance.subjects.accelerate.operations import OPERATIONS
    from conformance.subjects.accelerate.session import Session

    Session(sys.stdin, answers, OPERATIONS).serve()
    # Without the interpreter's own ending: torch waits there for threads of a group whose peers may be gone already.
    os._exit(0)


if __name__ == "__main__":
    main()
