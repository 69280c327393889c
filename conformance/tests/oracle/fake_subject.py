"""A subject without torch for tests: what each rank does is named in the request, {"op": "fake", "args": {"do": ..}}.

Of the numbers n and parts it computes a sum; with the argument `wrong` on its command line that of n = 3 and more is
wrong by one, so that the smallest case that differs is known.
"""

import json
import os
import sys
import time

RANK = int(os.environ["RANK"])
WRONG = "wrong" in sys.argv


def add(args):
    n = args.get("n", 0)
    return {"sum": n + sum(args.get("parts", [])) + (1 if WRONG and n >= 3 else 0), "rank": RANK}


def answer(request):
    args = {**request.get("args", {}), **request.get("rank_args", [{}] * (RANK + 1))[RANK]}
    do = args.get("do", "add")
    if do == "hang":
        time.sleep(3600)
    if do == "crash":
        print("last words", file=sys.stderr, flush=True)
        os._exit(7)
    if do == "babble":
        return "this is no answer"
    if do == "other id":
        return json.dumps({"id": request["id"] + 1, "ok": {}})
    if do == "fail":
        return json.dumps({"id": request["id"], "error": {"kind": "ValueError", "message": "as asked"}})
    if do == "pid":
        return json.dumps({"id": request["id"], "ok": os.getpid()})
    if do != "add":
        return json.dumps({"id": request["id"], "unsupported": do})
    return json.dumps({"id": request["id"], "ok": add(args)})


def main():
    if "mute" in sys.argv:
        sys.exit(3)
    print(json.dumps({"hello": 1, "name": "fake", "version": "1", "capabilities": ["fake"]}), flush=True)
    for line in sys.stdin:
        print(answer(json.loads(line)), flush=True)


main()
