"""Uses the generated client, and the example of docs/CLIENTS.md, against a running service.

`.ci/clients` checks its types and runs it.
"""

import os
import unittest
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TypeVar

from standardwebhooks import WebhookVerificationError

from assistants_client.api.assistant import create_assistant, delete_assistant
from assistants_client.api.conversation import add_message, close_conversation, delete_conversation, open_conversation
from assistants_client.api.tag import create_tag, delete_tag, read_tag, update_tag
from assistants_client.api.webhook import create_webhook, delete_webhook, read_webhook, update_webhook
from assistants_client.models import (
    ConversationClosedEvent,
    Failure,
    Issue,
    NewAssistant,
    NewConversation,
    NewMessage,
    NewTag,
    NewWebhook,
    SenderType,
    Tag,
    TagAnswer,
    TagChanges,
    TagChangesAttributesType0,
    WebhookChanges,
)
from example import add_tag, connect, first_tags, read_event

Answer = TypeVar("Answer")

api = connect(os.environ["API"], os.environ["ACME"])


def answered(answer: Answer | Failure | None) -> Answer:
    """Returns the answer of a successful request."""
    assert answer is not None
    assert not isinstance(answer, Failure), answer
    return answer


class Receiver(HTTPServer):
    """A server that keeps the last request that it got."""

    received: tuple[dict[str, str], bytes]


class Handler(BaseHTTPRequestHandler):
    """Takes an event."""

    server: Receiver

    def do_POST(self) -> None:
        """Takes an event."""
        self.server.received = dict(self.headers), self.rfile.read(int(self.headers["content-length"]))
        self.send_response(HTTPStatus.NO_CONTENT)
        self.end_headers()


class Check(unittest.TestCase):
    """The checks of the client."""

    def test_tags(self) -> None:
        """Makes a tag, and reads, lists, changes and removes it."""
        made: Tag = add_tag(api, "From Python")
        assert made.name == "From Python"
        assert made.id in [tag.id for tag in first_tags(api)]

        attributes = TagChangesAttributesType0.from_dict({"rank": 1})
        answered(update_tag.sync(made.id, client=api, body=TagChanges(color_code="#aa0000", attributes=attributes)))
        # An update changes only the fields that it names.
        answered(update_tag.sync(made.id, client=api, body=TagChanges(name="Renamed")))
        read = answered(read_tag.sync(made.id, client=api)).data
        assert (read.name, read.color_code, read.attributes["rank"]) == ("Renamed", "#aa0000", 1)
        assert read.created_at == made.created_at

        answered(delete_tag.sync(made.id, client=api))
        gone = read_tag.sync_detailed(made.id, client=api)
        assert gone.status_code == HTTPStatus.NOT_FOUND
        assert isinstance(gone.parsed, Failure)
        assert gone.parsed.detail[0].type_ == "not_found"

    def test_validation_error(self) -> None:
        """A tag whose name is too long: the error says where, for people and for programs."""
        answer = create_tag.sync_detailed(client=api, body=NewTag(name="x" * 257))
        assert answer.status_code == HTTPStatus.UNPROCESSABLE_ENTITY
        assert isinstance(answer.parsed, Failure)
        issue: Issue = answer.parsed.detail[0]
        assert issue.loc == ["body", "name"]
        assert "256" in issue.msg
        assert issue.type_ == "string_too_long"
        with self.assertRaisesRegex(ValueError, r"^body\.name: "):
            add_tag(api, "x" * 257)

    def test_event(self) -> None:
        """Closes a conversation, and takes the event of it."""
        server = Receiver(("127.0.0.1", 0), Handler)
        self.addCleanup(server.server_close)
        endpoint = f"http://127.0.0.1:{server.server_port}/events"
        webhook = answered(create_webhook.sync(client=api, body=NewWebhook(endpoint=endpoint))).data
        # An update changes only the fields that it names: the webhook stays disabled until it is enabled.
        answered(update_webhook.sync(webhook.id, client=api, body=WebhookChanges(enabled=False)))
        answered(update_webhook.sync(webhook.id, client=api, body=WebhookChanges(name="Events")))
        assert not answered(read_webhook.sync(webhook.id, client=api)).data.enabled
        answered(update_webhook.sync(webhook.id, client=api, body=WebhookChanges(enabled=True)))

        assistant = answered(create_assistant.sync(client=api, body=NewAssistant(webhook_id=webhook.id))).data
        opened = NewConversation(assistant_id=assistant.id, device_type="desktop")
        conversation = answered(open_conversation.sync(client=api, body=opened)).data
        said = NewMessage(sender_type=SenderType.USER, text="Good morning, ¿qué tal?")
        answered(add_message.sync(conversation.id, client=api, body=said))
        answered(close_conversation.sync(conversation.id, client=api))

        server.handle_request()
        headers, body = server.received
        event: ConversationClosedEvent = read_event(webhook.secret, headers, body)
        assert str(event.id) == headers["webhook-id"]
        assert event.data.conversation_id == conversation.id
        assert event.data.transcript[0].text == said.text
        changed = body.replace(b"morning", b"evening")
        assert changed != body
        with self.assertRaises(WebhookVerificationError):
            read_event(webhook.secret, headers, changed)

        answered(delete_conversation.sync(conversation.id, client=api))
        answered(delete_assistant.sync(assistant.id, client=api))
        answered(delete_webhook.sync(webhook.id, client=api))


def refused(answer: TagAnswer, issue: Issue, event: ConversationClosedEvent) -> None:
    """Code that mypy must refuse, because the types forbid it. It is never called."""
    NewTag()  # type: ignore[call-arg]
    print(answer.data.colour)  # type: ignore[attr-defined]
    print(issue.location)  # type: ignore[attr-defined]
    print(event.data.messages)  # type: ignore[attr-defined]


if __name__ == "__main__":
    unittest.main()
