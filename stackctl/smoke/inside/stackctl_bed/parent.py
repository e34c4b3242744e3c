"""End with whoever started us, however that ends: else a run that was killed would leave its processes behind."""

from __future__ import annotations

import ctypes
import os
import sys

_PR_SET_PDEATHSIG = 1


def end_with_parent(signum: int) -> None:
    """Have the kernel send us a signal when our parent is gone; end at once when it is gone already."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signum)
    if os.getppid() != int(os.environ["STACKCTL_BED_PARENT"]):
        sys.exit("stackctl_bed: whoever started this is gone already")
