"""Accelerate with a fault planted: the remainder of a loader is one too many. The test sees that the fault is found."""

from accelerate.data_loader import DataLoaderStateMixin

from conformance.subjects.accelerate.__main__ import main

begin = DataLoaderStateMixin.begin


def begin_with_wrong_remainder(self):
    begin(self)
    if self.remainder >= 0:
        self.remainder += 1


DataLoaderStateMixin.begin = begin_with_wrong_remainder
main()
