"""The differential test: the same generated cases on two subjects of the conformance protocol, their answers compared.

    world.py, subject.py   ranks as processes that stay alive; what became of a request on each of them
    generate/              cases as a function of (seed, index)
    compare.py, orders.py  when two answers are the same, and where they are not
    shrink.py              a differing case made as small as it gets
    corpus.py              cases with the answers of one subject, in a file
    main.py                the command line, ci/oracle

An *outcome* is an object with one field, as in the `expect` of a case: {"ok": RESULT}, {"error": KIND}, {"hang": true},
and besides those {"unsupported": reason}, {"crash": how it ended}, {"protocol": the line that was no answer}.
"""
