"""Lets every request that schemathesis makes have an `Idempotency-Key` of its own, where the key is a valid one.

It makes the same few again and again, and what comes second with another body is refused.
"""

import itertools
import re

import schemathesis

HEADER = "Idempotency-Key"
KEY = re.compile(r"[!-~]{1,240}")
numbers = itertools.count()


@schemathesis.hook
def before_call(_context, case, _kwargs):
    """Numbers the key."""
    if KEY.fullmatch(str((case.headers or {}).get(HEADER, ""))):
        case.headers[HEADER] += f"-{next(numbers)}"
