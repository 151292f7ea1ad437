"""Sends requests, repeats them, reads their answers, and follows the pages of lists."""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, Self, TypeVar
from uuid import UUID, uuid4

import httpx

from .client import AuthenticatedClient
from .models.failure import Failure
from .models.issue import Issue
from .types import UNSET, Response, Unset

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

# The seconds that an answer can make a client wait.
LONGEST_WAIT = 60.0


class ApiError(Exception):
    """The API refused a request, or failed. `request_id` is what its operators can look up."""

    def __init__(self, status: int, issues: list[Issue], request_id: str | None) -> None:
        lines = [f"{'.'.join(map(str, issue.loc))}: {issue.msg}" for issue in issues]
        super().__init__("\n".join([f"status {status}, request {request_id or 'without id'}", *lines]))
        self.status = status
        self.issues = issues
        self.request_id = request_id


def successful(response: httpx.Response) -> httpx.Response:
    """Return an answer that is no failure. The failure of another server, such as a proxy, has no issues."""
    if response.is_success:
        return response
    try:
        issues = Failure.from_dict(response.json()).detail
    except (AttributeError, KeyError, TypeError, ValueError):
        issues = []
    raise ApiError(response.status_code, issues, response.headers.get("x-request-id"))


def answered(response: Response[Failure | T]) -> T:
    """Return the answer to a successful request."""
    if response.parsed is None or isinstance(response.parsed, Failure):
        raise ApiError(response.status_code, [], response.headers.get("x-request-id"))
    return response.parsed


@dataclass(frozen=True)
class At:
    """The place in a list where a page begins."""

    page: int | Unset = UNSET
    after: UUID | Unset = UNSET


class Page(Protocol[T_co]):
    """A page of a list."""

    @property
    def items(self) -> Sequence[T_co]:
        """Its records."""


def following(page: Page[object]) -> At | None:
    """Where the next page begins."""
    if after := getattr(page, "next_", None):
        return At(after=after)
    if number := getattr(page, "next_page", None):
        return At(page=number)
    return None


@dataclass(frozen=True)
class Pages(Generic[T]):
    """The records of a list. A loop takes them all, and requests each page when it needs it."""

    one: Callable[[At], Page[T]]
    start: At

    def __iter__(self) -> Iterator[T]:
        """Take each record of each page."""
        at: At | None = self.start
        while at:
            page = self.one(at)
            yield from page.items
            at = following(page)


@dataclass(frozen=True)
class AsyncPages(Generic[T]):
    """The records of a list. A loop takes them all, and requests each page when it needs it."""

    one: Callable[[At], Awaitable[Page[T]]]
    start: At

    async def __aiter__(self) -> AsyncIterator[T]:
        """Take each record of each page."""
        at: At | None = self.start
        while at:
            page = await self.one(at)
            for item in page.items:
                yield item
            at = following(page)


def keyed(request: httpx.Request) -> None:
    """Give a POST the key under which a repetition has the first answer."""
    if request.method == "POST":
        request.headers.setdefault("idempotency-key", str(uuid4()))


def wait(response: httpx.Response | None, failed: int) -> float | None:
    """Return the seconds before the next attempt, or nothing if the same request would have the same answer.

    The only such 409, of a request that is still running, says when.
    """
    after = response.headers.get("retry-after", "") if response else ""
    if (
        response
        and response.status_code not in {429, 500, 502, 503, 504}
        and not (response.status_code == 409 and after)
    ):
        return None
    return min(float(after), LONGEST_WAIT) if after.isdecimal() else random.uniform(0, min(0.5 * 2**failed, 8))


class RetryingClient(httpx.Client):
    """Sends a request until it has an answer that stays the same, or was sent too often."""

    retries = 0

    def send(self, request: httpx.Request, **options: Any) -> httpx.Response:
        """Send a request."""
        keyed(request)
        for failed in range(self.retries):
            try:
                response = super().send(request, **options)
            except httpx.TransportError:
                response = None
            seconds = wait(response, failed)
            if response and seconds is None:
                return successful(response)
            time.sleep(seconds or 0)
        return successful(super().send(request, **options))


class AsyncRetryingClient(httpx.AsyncClient):
    """Sends a request until it has an answer that stays the same, or was sent too often."""

    retries = 0

    async def send(self, request: httpx.Request, **options: Any) -> httpx.Response:
        """Send a request."""
        keyed(request)
        for failed in range(self.retries):
            try:
                response = await super().send(request, **options)
            except httpx.TransportError:
                response = None
            seconds = wait(response, failed)
            if response and seconds is None:
                return successful(response)
            await asyncio.sleep(seconds or 0)
        return successful(await super().send(request, **options))


class Resource:
    """The operations of a record."""

    def __init__(self, api: AuthenticatedClient) -> None:
        self._api = api


class Base:
    """A client for synchronous code, which a `with` block closes.

    `url` is the address without `/api/v1`. A request is repeated at most `retries` times. An attempt may wait `timeout`
    seconds for an answer.
    """

    def __init__(self, url: str, key: str, *, retries: int = 3, timeout: float = 30) -> None:
        self._http = RetryingClient(base_url=url, headers={"authorization": f"Bearer {key}"}, timeout=timeout)
        self._http.retries = retries
        self._begin(AuthenticatedClient(base_url=url, token=key).set_httpx_client(self._http))

    def _begin(self, api: AuthenticatedClient) -> None:
        """Make the resources."""

    def __enter__(self) -> Self:
        """Keep the connections open until the end of the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connections."""
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()


class AsyncBase:
    """A client for asynchronous code, which an `async with` block closes. It has the arguments of the other one."""

    def __init__(self, url: str, key: str, *, retries: int = 3, timeout: float = 30) -> None:
        self._http = AsyncRetryingClient(base_url=url, headers={"authorization": f"Bearer {key}"}, timeout=timeout)
        self._http.retries = retries
        self._begin(AuthenticatedClient(base_url=url, token=key).set_async_httpx_client(self._http))

    def _begin(self, api: AuthenticatedClient) -> None:
        """Make the resources."""

    async def __aenter__(self) -> Self:
        """Keep the connections open until the end of the block."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the connections."""
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()
