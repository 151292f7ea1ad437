// Uses the generated client, and the example of docs/CLIENTS.md, against a running service. `.ci/clients` compiles and runs it.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { WebhookVerificationError } from "standardwebhooks";
import type { components } from "./api.js";
import { addTag, connect, firstTags, readEvent } from "./example.js";

type Schemas = components["schemas"];

/** A variable of the environment. */
function variable(name: string): string {
  const value = process.env[name];
  assert.ok(value, `the variable ${name} is not set`);
  return value;
}

/** The answer of a successful request. */
function answered<T>(answer: { data?: T; error?: Schemas["Failure"] }): T {
  assert.ok(answer.data, JSON.stringify(answer.error));
  return answer.data;
}

const api = connect(variable("API"), variable("ACME"));

await test("a tag is made, listed, changed, read and removed", async () => {
  const made: Schemas["Tag"] = await addTag(api, "From TypeScript");
  assert.equal(made.name, "From TypeScript");
  assert.ok((await firstTags(api)).some((tag) => tag.id === made.id));

  const path = { tag_id: made.id };
  const coloured = { color_code: "#aa0000", attributes: { rank: 1 } };
  answered(await api.PUT("/api/v1/tag/{tag_id}", { params: { path }, body: coloured }));
  // An update changes only the fields that it names.
  answered(await api.PUT("/api/v1/tag/{tag_id}", { params: { path }, body: { name: "Renamed" } }));
  const { data: read } = answered(await api.GET("/api/v1/tag/{tag_id}", { params: { path } }));
  assert.deepEqual(read, { ...made, ...coloured, name: "Renamed", updated_at: read.updated_at });

  answered(await api.DELETE("/api/v1/tag/{tag_id}", { params: { path } }));
  const gone = await api.GET("/api/v1/tag/{tag_id}", { params: { path } });
  assert.equal(gone.response.status, 404);
  assert.equal(gone.error?.detail[0]?.type, "not_found");
});

await test("a validation error says where and what, for people and for programs", async () => {
  const name = "x".repeat(257);
  const { error, response } = await api.POST("/api/v1/tag", { body: { name } });
  assert.equal(response.status, 422);
  const issue: Schemas["Issue"] | undefined = error?.detail[0];
  assert.ok(issue);
  assert.deepEqual(issue.loc, ["body", "name"]);
  assert.match(issue.msg, /256/);
  assert.equal(issue.type, "string_too_long");
  await assert.rejects(addTag(api, name), /^Error: body\.name: /);
});

await test("the event of a closed conversation is verified, and a changed one is refused", async (context) => {
  const server = createServer();
  context.after(() => server.close());
  const arrival = new Promise<{ headers: Headers; body: string }>((resolve, reject) => {
    server.on("request", (request, response) => {
      const headers = new Headers(Object.entries(request.headers).map(([name, value]) => [name, String(value)]));
      text(request).then((body) => resolve({ headers, body }), reject);
      response.end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  assert.ok(address !== null && typeof address === "object");

  const endpoint = `http://127.0.0.1:${address.port}/events`;
  const webhook = answered(await api.POST("/api/v1/outbound_webhook", { body: { endpoint } })).data;
  const body = { webhook_id: webhook.id };
  const assistant = answered(await api.POST("/api/v1/assistant", { body })).data;
  const opened = { assistant_id: assistant.id, device_type: "desktop" };
  const conversation = answered(await api.POST("/api/v1/conversation", { body: opened })).data;
  const path = { conversation_id: conversation.id };
  const said = { sender_type: "user", text: "Good morning, ¿qué tal?" } as const;
  answered(await api.POST("/api/v1/conversation/{conversation_id}/message", { params: { path }, body: said }));
  answered(await api.POST("/api/v1/conversation/{conversation_id}/close", { params: { path } }));

  const received = await arrival;
  const event = readEvent(webhook.secret, received.headers, received.body);
  assert.equal(event.id, received.headers.get("webhook-id"));
  // The kind of the event is known from here on, and so are its data.
  assert.ok(event.event === "conversation.closed");
  assert.equal(event.data.conversation_id, conversation.id);
  assert.equal(event.data.transcript[0]?.text, said.text);
  const changed = received.body.replace("morning", "evening");
  assert.notEqual(changed, received.body);
  assert.throws(() => readEvent(webhook.secret, received.headers, changed), WebhookVerificationError);

  answered(await api.DELETE("/api/v1/conversation/{conversation_id}", { params: { path } }));
  const { id: assistant_id } = assistant;
  answered(await api.DELETE("/api/v1/assistant/{assistant_id}", { params: { path: { assistant_id } } }));
  const { id: webhook_id } = webhook;
  answered(await api.DELETE("/api/v1/outbound_webhook/{webhook_id}", { params: { path: { webhook_id } } }));
});

/** Code that must not compile, because the types forbid it. It is never called. */
export function refused(tag: Schemas["Tag"], issue: Schemas["Issue"], event: Schemas["ConversationClosedEvent"]): unknown[] {
  return [
    // @ts-expect-error A tag has a name.
    api.POST("/api/v1/tag", { body: {} }),
    // @ts-expect-error There is no such path.
    api.GET("/api/v1/tags"),
    // @ts-expect-error There is no such member.
    tag.colour,
    // @ts-expect-error There is no such member.
    issue.location,
    // @ts-expect-error There is no such member.
    event.data.messages,
  ];
}
