// Uses the packed client against a running service. `.ci/clients` compiles and runs it.

import assert from "node:assert/strict";
import { createServer, type IncomingMessage, type RequestListener } from "node:http";
import { buffer, text } from "node:stream/consumers";
import { test, type TestContext } from "node:test";
import { ApiError, Client, verifyWebhook, WebhookVerificationError, type components, type WebhookEvent } from "assistants-client";

type Schemas = components["schemas"];

/** A variable of the environment. */
function variable(name: string): string {
  const value = process.env[name];
  assert.ok(value, `the variable ${name} is not set`);
  return value;
}

const url = variable("ASSISTANTS_URL");
const key = variable("ASSISTANTS_API_KEY");
const client = new Client({ url, key });

/** The address of a server for the time of a test. */
async function serve(context: TestContext, listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  context.after(() => server.close());
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  assert.ok(address !== null && typeof address === "object");
  return `http://127.0.0.1:${address.port}`;
}

/** The headers of a request, without those of its connection. */
function passed({ headers: { authorization, "content-type": type, "idempotency-key": key } }: IncomingMessage): Headers {
  const named = Object.entries({ authorization, "content-type": type, "idempotency-key": key });
  return new Headers(named.filter((one): one is [string, string] => typeof one[1] === "string"));
}

/** A server in front of the API. It passes on every request, and `lose` says whether the caller does not get the answer. */
async function proxy(context: TestContext, lose: (request: IncomingMessage) => 503 | "close" | undefined): Promise<string> {
  return serve(context, async (request, response) => {
    const body = await buffer(request);
    const sent = { method: request.method ?? "GET", headers: passed(request), ...(body.length ? { body: new Uint8Array(body) } : {}) };
    const answer = await fetch(url + request.url, sent);
    const answered = await answer.text();
    const lost = lose(request);
    if (lost === "close") request.socket.destroy();
    else response.writeHead(lost ?? answer.status, lost ? {} : Object.fromEntries(answer.headers)).end(lost ? "busy" : answered);
  });
}

/** The failure of a request. */
async function failure(request: Promise<unknown>): Promise<ApiError> {
  const error = await request.then(() => null, (error: unknown) => error);
  assert.ok(error instanceof ApiError, String(error));
  return error;
}

await test("a tag is made, changed, read and removed", async () => {
  const made: Schemas["Tag"] = await client.tags.create({ name: "From TypeScript" });
  const coloured = { color_code: "#aa0000", attributes: { rank: 1 } };
  await client.tags.update(made.id, coloured);
  // An update changes only the fields that it names.
  await client.tags.update(made.id, { name: "Renamed" });
  const read = await client.tags.read(made.id);
  assert.deepEqual(read, { ...made, ...coloured, name: "Renamed", updated_at: read.updated_at });
  await client.tags.delete(made.id);
  const { status, issues } = await failure(client.tags.read(made.id));
  assert.deepEqual([status, issues[0]?.type], [404, "not_found"]);
});

await test("a loop takes the records of every page", async () => {
  const made = await Promise.all([1, 2, 3, 4, 5].map((rank) => client.tags.create({ name: `Page ${rank}` })));
  const small: string[] = [];
  for await (const tag of client.tags.list({ size: 2 })) small.push(tag.id);
  const large: string[] = [];
  for await (const tag of client.tags.list({ size: 100 })) large.push(tag.id);
  assert.deepEqual(small, large);
  assert.ok(made.every(({ id }) => small.includes(id)));
  await client.tags.deleteMany({ tag_ids: made.map(({ id }) => id) });
});

await test("a loop follows the cursor of a list", async () => {
  // The entries of the tests before, which appear after some seconds.
  const entries = new Set<string>();
  while (entries.size < 3) {
    for await (const { id } of client.audit.list({ size: 1 })) if (entries.add(id).size === 3) break;
  }
});

await test("an issue says where and what, for people and for programs", async () => {
  const error = await failure(client.tags.create({ name: "x".repeat(257) }));
  const [issue] = error.issues;
  assert.deepEqual([error.status, issue?.loc, issue?.type], [422, ["body", "name"], "string_too_long"]);
  assert.match(error.message, /body\.name: .*256/);
  assert.match(error.requestId ?? "", /./);
});

await test("a wrong key is refused, and no error has it", async () => {
  const wrong = "wrong-key-of-this-test";
  const error = await failure(new Client({ url, key: wrong }).tags.create({ name: "Never" }));
  assert.equal(error.status, 401);
  assert.ok(![error.message, error.stack, JSON.stringify(error)].some((text) => text?.includes(wrong)));
});

for (const lost of [503, "close"] as const) {
  await test(`a request whose answer is lost (${lost}) has one effect`, async (context) => {
    const keys: unknown[] = [];
    const lose = (request: IncomingMessage) => (keys.push(request.headers["idempotency-key"]) === 1 ? lost : undefined);
    const made = await new Client({ url: await proxy(context, lose), key }).tags.create({ name: `Lost ${lost}` });
    assert.equal(keys.length, 2);
    assert.match(String(keys[0]), /^[0-9a-f-]{36}$/);
    assert.equal(keys[1], keys[0]);
    const found: string[] = [];
    for await (const { id, name } of client.tags.list()) if (name === `Lost ${lost}`) found.push(id);
    assert.deepEqual(found, [made.id]);
    await client.tags.delete(made.id);
  });
}

await test("a request is repeated as often as the settings say", async (context) => {
  let requests = 0;
  const address = await serve(context, (_, response) => {
    requests += 1;
    response.writeHead(429, { "retry-after": "0" }).end();
  });
  assert.equal((await failure(new Client({ url: address, key, retries: 1 }).tags.list()[Symbol.asyncIterator]().next())).status, 429);
  assert.equal(requests, 2);
  assert.equal((await failure(client.tags.read("01900000-0000-7000-8000-000000000000"))).status, 404);
  const slow = new Client({ url: await serve(context, () => undefined), key, retries: 0, timeout: 50 });
  await assert.rejects(slow.tags.read("x"), { name: "TimeoutError" });
});

await test("a 409 is repeated only if it says when", async (context) => {
  let requests = 0;
  const address = await serve(context, (_, response) => {
    requests += 1;
    response.writeHead(409, requests === 1 ? { "retry-after": "0" } : {}).end();
  });
  assert.equal((await failure(new Client({ url: address, key }).tags.read("x"))).status, 409);
  assert.equal(requests, 2);
});

await test("the event of a closed conversation is verified, and a changed one is refused", async (context) => {
  let arrive: (received: { headers: IncomingMessage["headers"]; body: string }) => void;
  const arrival = new Promise<Parameters<typeof arrive>[0]>((resolve) => (arrive = resolve));
  const endpoint = await serve(context, async (request, response) => {
    arrive({ headers: request.headers, body: await text(request) });
    response.end();
  });
  const webhook = await client.webhooks.create({ endpoint });
  const assistant = await client.assistants.create({ webhook_id: webhook.id });
  const conversation = await client.conversations.open({ assistant_id: assistant.id, device_type: "desktop" });
  const said = { sender_type: "user", text: "Good morning, ¿qué tal?" } as const;
  await client.conversations.addMessage(conversation.id, said);
  await client.conversations.close(conversation.id);

  const received = await arrival;
  const event = verifyWebhook(webhook.secret, received.headers, received.body);
  assert.equal(event.id, received.headers["webhook-id"]);
  // The kind of the event is known from here on, and so are its data.
  assert.ok(event.event === "conversation.closed");
  assert.equal(event.data.conversation_id, conversation.id);
  assert.equal(event.data.transcript[0]?.text, said.text);
  const changed = received.body.replace("morning", "evening");
  assert.notEqual(changed, received.body);
  assert.throws(() => verifyWebhook(webhook.secret, received.headers, changed), WebhookVerificationError);

  await client.conversations.delete(conversation.id);
  await client.assistants.delete(assistant.id);
  await client.webhooks.delete(webhook.id);
});

/** Code that must not compile, because the types forbid it. It is never called. */
export function refused(tag: Schemas["Tag"], event: WebhookEvent, error: ApiError): unknown[] {
  return [
    // @ts-expect-error A tag has a name.
    client.tags.create({}),
    // @ts-expect-error There is no such method.
    client.tags.close(tag.id),
    // @ts-expect-error There is no such filter.
    client.tags.list({ colour: "red" }),
    // @ts-expect-error There is no such member.
    tag.colour,
    // @ts-expect-error There is no such member.
    error.issues[0]?.location,
    // @ts-expect-error Another event has other data.
    event.event === "tag.created" && event.data.transcript,
  ];
}
