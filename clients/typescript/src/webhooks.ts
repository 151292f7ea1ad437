// Verifies the events that the service sends to your server.

import { Webhook } from "standardwebhooks";
import type { webhooks } from "./api.js";

/** An event of any kind: its member `event` says which, and so what is in its `data`. */
export type WebhookEvent = webhooks[keyof webhooks]["post"]["requestBody"]["content"]["application/json"];

/**
 * The event in a request to your server, whose body nothing has parsed yet. A wrong signature is a `WebhookVerificationError`.
 * A verified event has the form that the document describes, so its type is not checked again.
 */
export function verifyWebhook(secret: string, headers: Headers | Record<string, string | string[] | undefined>, body: string): WebhookEvent {
  const entries = headers instanceof Headers ? [...headers] : Object.entries(headers);
  const texts = entries.map(([name, value]) => [name, String(value)]);
  return new Webhook(secret).verify(body, Object.fromEntries(texts)) as WebhookEvent;
}
