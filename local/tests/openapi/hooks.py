"""Limits schemathesis to requests that reach a function and keep their key, and makes each idempotency key unique."""

import itertools
import re
from urllib.parse import urlencode

import schemathesis

HEADER = "Idempotency-Key"
KEY = re.compile(r"[!-~]{1,240}")
# The gateway takes at most 10,240 bytes of request line and headers together.
QUERY_BYTES = 8_192
# The last digits of the ids of the keys with which the requests are sent.
OWN_KEYS = ("a00e00000001", "b00e00000001")
numbers = itertools.count()


@schemathesis.hook
def filter_query(_context, query):
    """Leaves out queries above the limit of the gateway, whose refusal is not in the document."""
    return query is None or len(urlencode(query, doseq=True, errors="surrogatepass")) <= QUERY_BYTES


@schemathesis.hook
def filter_case(_context, case):
    """Leaves out changes of the keys that send the requests: all later requests would be refused."""
    changed = str((case.path_parameters or {}).get("api_key_id", ""))
    return not re.sub("[^0-9a-f]", "", changed.lower()).endswith(OWN_KEYS)


@schemathesis.hook
def before_call(_context, case, _kwargs):
    """Numbers the key: schemathesis repeats keys, and a repeated key with another body is refused."""
    if KEY.fullmatch(str((case.headers or {}).get(HEADER, ""))):
        case.headers[HEADER] += f"-{next(numbers)}"
