// What the package offers.

export { WebhookVerificationError } from "standardwebhooks";
export type { components } from "./api.js";
export { ApiError, Pages, type Issue, type Options, type Settings } from "./calls.js";
export * from "./resources.js";
export { verifyWebhook, type WebhookEvent } from "./webhooks.js";
