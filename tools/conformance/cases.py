"""The cases that tools/make_conformance_cases writes, one function per family."""
import itertools

import case_ml
import case_microsoft
import case_newest


def all_cases():
    return itertools.chain(case_newest.cases(), case_ml.cases(), case_microsoft.cases())
