"""Runs ONNX's backend tests on tenon.backend, for every case that the command passes.

    tools/python tests/python/onnx_backend.py [--filter=TEXT]
"""

import argparse
import sys
import unittest
from pathlib import Path

import numpy as np
import onnx.backend.test

import tenon.backend

# Names that ONNX 1.12 uses and numpy has removed since.
for _name, _type in (("object", object), ("bool", bool), ("int", int), ("float", float)):
    if _name not in np.__dict__:
        setattr(np, _name, _type)

# Cases that ONNX's runner cannot compare, regardless of the backend.
INCOMPARABLE = {
    "test_loop16_seq_none": "it takes the length of the scalars in a sequence",
}

ROOT = Path(__file__).resolve().parent.parent.parent


def expected_failures():
    lines = (ROOT / "tests/conformance/expected_failures.txt").read_text().splitlines()
    return {line.split()[0] for line in lines if line.strip() and not line.startswith("#")}


def cases(text, step):
    """Returns every `step`-th case of the suite, without expected failures and without models to download."""
    runner = onnx.backend.test.BackendTest(tenon.backend, __name__)
    listed = expected_failures()
    found = []
    for kind, case in runner.test_cases.items():
        if "Real" in kind:
            continue
        for name in unittest.TestLoader().getTestCaseNames(case):
            if name.endswith("_cuda") or text not in name:
                continue
            plain = name[:-len("_cpu")] if name.endswith("_cpu") else name
            if plain not in listed and plain not in INCOMPARABLE:
                found.append(case(name))
    return unittest.TestSuite(found[::step])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--filter", default="")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="every Nth case alone: what they compute the command is held to")
    options = parser.parse_args()
    suite = cases(options.filter, options.every)
    result = unittest.TextTestRunner(verbosity=0, stream=sys.stdout, buffer=True).run(suite)
    failed = len(result.failures) + len(result.errors)
    print(f"{result.testsRun - failed - len(result.skipped)} passed, {failed} failed")
    return 1 if failed or not result.testsRun else 0


sys.exit(main())
