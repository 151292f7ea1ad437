"""Uses the API through its tools, with the official client, in both revisions of the Model Context Protocol.

The address of the API and the keys are in the environment, as `.ci/with-local` puts them there.
"""

import asyncio
import os
import sys
from collections.abc import Callable
from contextlib import asynccontextmanager

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

URL = f"{os.environ['API']}/api/v1/mcp"
REVISIONS = {"auto": "2026-07-28", "legacy": "2025-11-25"}
UNAUTHORIZED = 401


def expect(holds: object, message: str) -> None:
    """Ends the program with `message` unless `holds` is true."""
    if not holds:
        sys.exit(f"mcp: {message}")


@asynccontextmanager
async def connected(mode: str, key: str, *looks: Callable):
    """A client with `key`. Each function of `looks` gets every response."""
    headers, hooks = {"Authorization": f"Bearer {key}"}, {"response": list(looks)}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=40, event_hooks=hooks) as http,
        Client(streamable_http_client(URL, http_client=http), mode=mode) as client,
    ):
        yield client


async def used(mode: str) -> int:
    """Makes, reads, lists, changes and deletes a tag, and returns the number of tools."""
    async with connected(mode, os.environ["ACME"]) as client:
        version = client.session.protocol_version
        expect(version == REVISIONS[mode], f"{mode}: the version is {version}")
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        hints = tools["delete-tag"].annotations
        expect(hints.destructive_hint and not hints.read_only_hint, f"{mode}: the hints of delete-tag are {hints}")

        async def call(tool: str, *, fails: bool = False, **arguments: object) -> dict:
            """Calls the tool and returns its JSON."""
            result = await client.call_tool(tool, arguments)
            expect(result.is_error is fails, f"{mode} {tool}: {result}")
            return result.structured_content

        made = (await call("create-tag", body={"name": f"From a tool, {mode}"}))["data"]
        path = {"tag_id": made["id"]}
        read = (await call("read-tag", path=path))["data"]
        expect(read == made, f"{mode}: made {made}, read {read}")
        listed = (await call("list-tags", query={"size": 100}))["data"]["items"]
        expect(made in listed, f"{mode}: {made} is not listed")
        changed = (await call("update-tag", path=path, body={"name": "Changed"}))["data"]
        expect(changed["name"] == "Changed", f"{mode}: changed {changed}")
        wrong = (await call("create-tag", fails=True, body={"name": 7}))["detail"]
        expect([issue["loc"] for issue in wrong] == [["body", "name"]], f"{mode}: {wrong}")
        await call("delete-tag", path=path)
        gone = (await call("read-tag", fails=True, path=path))["detail"]
        expect(gone[0]["type"] == "not_found", f"{mode}: after the delete {gone}")
        return len(tools)


async def read_only(mode: str) -> int:
    """Checks that a read-only key gets only reading tools, and returns their number."""
    async with connected(mode, os.environ["ACME_READ_ONLY"]) as client:
        tools = (await client.list_tools()).tools
        writing = [tool.name for tool in tools if not tool.annotations.read_only_hint]
        expect(tools and not writing, f"{mode}: a read-only key is shown {writing}")
        refused = await client.call_tool("create-tag", {"body": {"name": "x"}})
        kind = refused.structured_content["detail"][0]["type"]
        expect(refused.is_error and kind == "forbidden", f"{mode}: a read-only key may call create-tag: {refused}")
        return len(tools)


async def refused(mode: str) -> None:
    """Checks that a wrong key gets 401. The client's error has no status, so the responses are recorded."""
    statuses = []

    async def look(response: httpx2.Response) -> None:
        """Records the status."""
        statuses.append(response.status_code)

    try:
        async with connected(mode, os.environ["ACME"][:-1] + "x", look) as client:
            await client.list_tools()
    except Exception as error:
        expect(statuses and set(statuses) == {UNAUTHORIZED}, f"{mode}: a wrong key is answered {statuses}: {error!r}")
    else:
        sys.exit(f"mcp: {mode}: a wrong key is shown tools")


async def main() -> None:
    """Tries both revisions."""
    for mode, version in REVISIONS.items():
        everything, reading = await used(mode), await read_only(mode)
        expect(reading < everything, f"{mode}: {reading} of {everything} tools read")
        await refused(mode)
        print(
            f"{version}: {everything} tools, {reading} of them read. A tag was made, read, listed, changed and deleted."
        )


asyncio.run(main())
