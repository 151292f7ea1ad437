"""Uses the packed client against a running service. `.ci/clients` checks its types and runs it."""

import asyncio
import http.client
import json
import os
import subprocess
import threading
import time
import traceback
import unittest
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import islice
from unittest.mock import patch
from urllib.parse import urlsplit
from uuid import UUID

import httpx

from assistants_client import ApiError, AsyncClient, Client, WebhookEvent, WebhookVerificationError, verify_webhook
from assistants_client.calls import wait
from assistants_client.models import (
    ConversationClosedEvent,
    ManyTagIds,
    NewAssistant,
    NewConversation,
    NewMessage,
    NewTag,
    NewWebhook,
    SenderType,
    Tag,
    TagChanges,
    TagChangesAttributesType0,
    TagCreatedEvent,
)

URL, KEY = os.environ["ASSISTANTS_URL"], os.environ["ASSISTANTS_API_KEY"]
client = Client(URL, KEY)
unittest.addModuleCleanup(client.close)


class Server(ThreadingHTTPServer):
    """A server for the time of a test. It passes every request on to the API, and loses its first answer."""

    def __init__(self, lost: int | None, *, forwards: bool = True) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.lost = lost
        self.forwards = forwards
        self.received: list[tuple[dict[str, str], bytes]] = []
        threading.Thread(target=self.serve_forever).start()

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.server_port}"

    def stop(self) -> None:
        """End it."""
        self.shutdown()
        self.server_close()


class Handler(BaseHTTPRequestHandler):
    """Answers a request."""

    server: Server

    def do_POST(self) -> None:
        """Answer a request."""
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        self.server.received.append((dict(self.headers), body))
        status, answer = 200, b"{}"
        if self.server.forwards:
            api = http.client.HTTPConnection(urlsplit(URL).netloc)
            api.request(self.command, self.path, body, dict(self.headers))
            response = api.getresponse()
            status, answer = response.status, response.read()
            api.close()
        if len(self.server.received) == 1:
            if self.server.lost is None:
                return
            status, answer = self.server.lost or status, b"busy" if self.server.lost else answer
        self.send_response(status)
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


class Check(unittest.TestCase):
    """The checks of the client."""

    def server(self, lost: int | None, *, forwards: bool = True) -> Server:
        """Start a server that ends with the test."""
        server = Server(lost, forwards=forwards)
        self.addCleanup(server.stop)
        return server

    def test_a_tag_is_made_changed_read_and_removed(self) -> None:
        """An update changes only the fields that it names."""
        made: Tag = client.tags.create(NewTag(name="From Python"))
        attributes = TagChangesAttributesType0.from_dict({"rank": 1})
        client.tags.update(made.id, TagChanges(color_code="#aa0000", attributes=attributes))
        client.tags.update(made.id, TagChanges(name="Renamed"))
        read = client.tags.read(made.id)
        assert (read.name, read.color_code, read.attributes["rank"]) == ("Renamed", "#aa0000", 1)
        assert read.created_at == made.created_at
        client.tags.delete(made.id)
        with self.assertRaises(ApiError) as caught:
            client.tags.read(made.id)
        assert (caught.exception.status, caught.exception.issues[0].type_) == (404, "not_found")

    def test_a_loop_takes_the_records_of_every_page(self) -> None:
        """In synchronous and in asynchronous code."""
        made = [client.tags.create(NewTag(name=f"Page {rank}")).id for rank in range(5)]
        small = [tag.id for tag in client.tags.list(size=2)]
        assert small == [tag.id for tag in client.tags.list(size=100)]
        assert set(made) <= set(small)

        async def in_turn() -> list[UUID]:
            async with AsyncClient(URL, KEY) as api:
                return [tag.id async for tag in api.tags.list(size=2)]

        assert asyncio.run(in_turn()) == small
        client.tags.delete_many(ManyTagIds(tag_ids=made))

    def test_a_loop_follows_the_cursor_of_a_list(self) -> None:
        """The entries of the tests before, which appear after some seconds."""
        entries: list[UUID] = []
        while len(entries) < 3:
            entries = [entry.id for entry in islice(client.audit.list(size=1), 3)]
        assert len(set(entries)) == 3

    def test_an_issue_says_where_and_what(self) -> None:
        """For people and for programs."""
        with self.assertRaisesRegex(ApiError, r"body\.name: .*256") as caught:
            client.tags.create(NewTag(name="x" * 257))
        issue = caught.exception.issues[0]
        assert (caught.exception.status, issue.loc, issue.type_) == (422, ["body", "name"], "string_too_long")
        assert caught.exception.request_id

    def test_a_wrong_key_is_refused_and_no_error_has_it(self) -> None:
        """Neither its text nor the lines of its trace."""
        with self.assertRaises(ApiError) as caught, Client(URL, "wrong-key-of-this-test") as stranger:
            stranger.tags.create(NewTag(name="Never"))
        assert caught.exception.status == 401
        assert not any("wrong-key" in line for line in traceback.format_exception(caught.exception)[1:])
        assert "wrong-key" not in str(vars(caught.exception))

    def test_a_request_whose_answer_is_lost_has_one_effect(self) -> None:
        """A status that is temporary, and a connection that ends; in synchronous and in asynchronous code."""
        for number, lost in enumerate([503, None]):
            for is_async in [False, True]:
                server = self.server(lost)
                new = NewTag(name=f"Lost {number} {is_async}")

                async def made(address: str = server.url, new: NewTag = new) -> Tag:
                    async with AsyncClient(address, KEY) as api:
                        return await api.tags.create(new)

                with Client(server.url, KEY) as api:
                    tag = asyncio.run(made()) if is_async else api.tags.create(new)
                keys = [
                    {name.lower(): value for name, value in headers.items()}["idempotency-key"]
                    for headers, _ in server.received
                ]
                assert len(keys) == 2
                assert keys[0] == keys[1] == str(UUID(keys[0]))
                assert [other.id for other in client.tags.list() if other.name == new.name] == [tag.id]
                client.tags.delete(tag.id)

    def test_a_request_is_repeated_as_often_as_its_client_says(self) -> None:
        """Without repetitions, the first failure counts."""
        server = self.server(503, forwards=False)
        with self.assertRaises(ApiError) as caught, Client(server.url, KEY, retries=0) as impatient:
            impatient.tags.create(NewTag(name="Not repeated"))
        assert len(server.received) == 1
        assert (caught.exception.status, caught.exception.issues) == (503, [])
        with self.assertRaises(httpx.TransportError), Client("http://127.0.0.1:1", KEY, retries=1) as unreached:
            unreached.tags.read(UUID(int=0))

    def test_the_wait_for_the_next_attempt(self) -> None:
        """A 409 is repeated only if it says when, and a wait has a limit."""
        assert wait(httpx.Response(409), 0) is None
        assert wait(httpx.Response(409, headers={"retry-after": "2"}), 0) == 2
        assert wait(httpx.Response(429, headers={"retry-after": "3600"}), 0) == 60
        assert wait(httpx.Response(422), 0) is None
        assert all(0 <= (wait(None, failed) or 0) <= min(0.5 * 2**failed, 8) for failed in range(9))

    def test_the_event_of_a_closed_conversation_is_verified(self) -> None:
        """A changed one is refused. An event of an unknown kind is a `dict`."""
        server = self.server(HTTPStatus.NO_CONTENT, forwards=False)
        webhook = client.webhooks.create(NewWebhook(endpoint=f"{server.url}/events"))
        assistant = client.assistants.create(NewAssistant(webhook_id=webhook.id))
        conversation = client.conversations.open(NewConversation(assistant_id=assistant.id, device_type="desktop"))
        said = NewMessage(sender_type=SenderType.USER, text="Good morning, ¿qué tal?")
        client.conversations.add_message(conversation.id, said)
        client.conversations.close(conversation.id)
        while not server.received:
            time.sleep(0.1)
        headers, body = server.received[0]
        event = verify_webhook(webhook.secret, headers, body)
        assert isinstance(event, ConversationClosedEvent)
        assert event.data.conversation_id == conversation.id
        assert event.data.transcript[0].text == said.text
        with self.assertRaises(WebhookVerificationError):
            verify_webhook(webhook.secret, headers, body.replace(b"morning", b"evening"))
        with patch.dict("assistants_client.resources.EVENTS", clear=True):
            assert isinstance(verify_webhook(webhook.secret, headers, body), dict)

        client.conversations.delete(conversation.id)
        client.assistants.delete(assistant.id)
        client.webhooks.delete(webhook.id)


class Command(unittest.TestCase):
    """The checks of the program `assistants`."""

    def run_it(self, *words: str, status: int = 0, key: str = KEY) -> str:
        """Return what the program prints."""
        variables = {**os.environ, "ASSISTANTS_API_KEY": key}
        ended = subprocess.run(["assistants", *words], env=variables, capture_output=True, text=True, check=False)
        assert ended.returncode == status, ended
        assert "wrong-key" not in ended.stderr
        return ended.stderr if status else ended.stdout

    def test_records_are_lines_of_json(self) -> None:
        """Options become a body."""
        made = json.loads(self.run_it("tags", "create", "--name", "1", "--attributes", '{"rank": 1}'))
        assert (made["name"], made["attributes"]) == ("1", {"rank": 1})
        assert json.loads(self.run_it("tags", "update", made["id"], "--body", '{"name": "2"}'))["name"] == "2"
        assert len(self.run_it("tags", "list", "--size", "1", "--limit", "3").splitlines()) == 3
        self.run_it("tags", "delete", made["id"])
        assert "path.tag_id: " in self.run_it("tags", "delete", made["id"], status=1)

    def test_a_wrong_command_is_explained(self) -> None:
        """The status 2 is for a command, the status 1 for a refusal."""
        assert "'name' is missing" in self.run_it("tags", "create", status=2)
        assert "invalid choice: 'close'" in self.run_it("tags", "close", status=2)
        assert "invalid UUID value" in self.run_it("conversations", "close", "x", status=2)
        assert "are not set" in self.run_it("tags", "list", status=2, key="")
        assert "status 401" in self.run_it("tags", "list", status=1, key="wrong-key-of-this-test")


def refused(tag: Tag, error: ApiError, event: WebhookEvent) -> None:
    """Code that mypy must refuse, because the types forbid it. It is never called."""
    client.tags.create(NewTag())  # type: ignore[call-arg]
    client.tags.close(tag.id)  # type: ignore[attr-defined]
    client.tags.list(colour="red")  # type: ignore[call-arg]
    print(tag.colour)  # type: ignore[attr-defined]
    print(error.issues[0].location)  # type: ignore[attr-defined]
    if isinstance(event, TagCreatedEvent):
        print(event.data.transcript)  # type: ignore[attr-defined]


if __name__ == "__main__":
    unittest.main()
