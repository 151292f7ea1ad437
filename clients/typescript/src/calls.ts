// Sends requests, repeats them, reads their answers, and follows the pages of lists.

import { setTimeout as pause } from "node:timers/promises";
import type { components, operations } from "./api.js";

type Operations = keyof operations;
type Json<T> = T extends { content: { "application/json": infer Content } } ? Content : never;
type Success<O extends Operations> = Json<operations[O]["responses"][keyof operations[O]["responses"] & (200 | 201)]>;
/** The body of a request. */
export type Body<O extends Operations> = Json<NonNullable<operations[O]["requestBody"]>>;
/** The filters and the place of a list. */
export type Query<O extends Operations> = NonNullable<operations[O]["parameters"]["query"]>;
/** What a request returns. */
export type Data<O extends Operations> = Success<O> extends { data: infer Value } ? Value : never;
/** A record of a list. */
export type Item<O extends Operations> = Data<O> extends { items: (infer One)[] } ? One : never;
/** What is wrong with a request: where, a sentence for people, and a code for programs. */
export type Issue = components["schemas"]["Issue"];

/** Where the API is, and how a client calls it. */
export interface Settings {
  /** The address of the API, without `/api/v1`. */
  url: string;
  key: string;
  /** How often a request is repeated at most. */
  retries?: number;
  /** The milliseconds that an attempt may take. */
  timeout?: number;
}

/** What a caller can set for one request. */
export interface Options {
  /** In place of the random key of a POST: whoever sends it again gets the first answer. */
  idempotencyKey?: string;
  /** Ends the request, and the wait for its next attempt. */
  signal?: AbortSignal;
}

/** The API refused a request, or failed. */
export class ApiError extends Error {
  override name = "ApiError";
  readonly status: number;
  readonly issues: Issue[];
  /** The id of the request, which the operators of the API can look up. */
  readonly requestId: string | null;

  constructor(status: number, issues: Issue[], requestId: string | null) {
    const lines = issues.map(({ loc, msg }) => `${loc.join(".")}: ${msg}`);
    super([`status ${status}, request ${requestId ?? "without id"}`, ...lines].join("\n"));
    this.status = status;
    this.issues = issues;
    this.requestId = requestId;
  }
}

/** The records of a list. A loop takes them all, and requests each page when it needs it. */
export class Pages<T> implements AsyncIterable<T> {
  readonly #page: (place: Place) => Promise<Page<T>>;

  constructor(page: (place: Place) => Promise<Page<T>>) {
    this.#page = page;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T, void> {
    for (let place: Place | undefined = {}; place; ) {
      const { items, next, next_page } = await this.#page(place);
      yield* items;
      place = next ? { after: next } : next_page ? { page: next_page } : undefined;
    }
  }
}

interface Page<T> {
  items: T[];
  next?: string | null;
  next_page?: number | null;
}

interface Place {
  after?: string;
  page?: number;
}

interface Answer {
  response: Response;
  text: string;
}

interface Parts {
  body?: unknown;
  query?: object | undefined;
  options?: Options | undefined;
}

/** The milliseconds that an answer can make a client wait. */
const LONGEST_WAIT = 60_000;

/** A path whose parameters are encoded. */
export function path(words: TemplateStringsArray, ...values: string[]): string {
  return String.raw({ raw: words }, ...values.map(encodeURIComponent));
}

/** The requests of a client. */
export class Calls {
  readonly #settings: Required<Settings>;

  constructor(settings: Settings) {
    this.#settings = { retries: 3, timeout: 30_000, ...settings };
  }

  /** The records of a list, from the place in `query` on. */
  list<O extends Operations>(path: string, query: object = {}, options?: Options): Pages<Item<O>> {
    const page = (place: Place): Promise<unknown> => this.#send("GET", path, { query: { ...query, ...place }, options });
    return new Pages(page as (place: Place) => Promise<Page<Item<O>>>);
  }

  /** Sends a request. The document says what is in the answer to each operation, so its type is not checked again. */
  send<O extends Operations>(method: string, path: string, parts: Parts): Promise<Data<O>> {
    return this.#send(method, path, parts) as Promise<Data<O>>;
  }

  async #send(method: string, path: string, { body, query = {}, options = {} }: Parts): Promise<unknown> {
    const { url, key, timeout } = this.#settings;
    const address = new URL(url.replace(/\/$/, "") + path);
    for (const [name, value] of Object.entries(query)) {
      if (value !== undefined) address.searchParams.append(name, String(value));
    }
    const headers = new Headers({ authorization: `Bearer ${key}` });
    if (method === "POST") headers.set("idempotency-key", options.idempotencyKey ?? crypto.randomUUID());
    if (body !== undefined) headers.set("content-type", "application/json");
    const json = body === undefined ? null : JSON.stringify(body);
    const attempt = async (): Promise<Answer> => {
      const signals = [AbortSignal.timeout(timeout), ...(options.signal ? [options.signal] : [])];
      const response = await fetch(address, { method, headers, body: json, signal: AbortSignal.any(signals) });
      return { response, text: await response.text() };
    };
    const { response, text } = await this.#repeated(attempt, options.signal);
    if (!response.ok) throw new ApiError(response.status, issues(text), response.headers.get("x-request-id"));
    return (JSON.parse(text) as { data: unknown }).data;
  }

  /** Sends a request until it has an answer that stays the same, or was sent too often. */
  async #repeated(attempt: () => Promise<Answer>, signal: AbortSignal | undefined): Promise<Answer> {
    for (let failed = 0; ; failed += 1) {
      const isLast = failed >= this.#settings.retries;
      let wait: number | undefined;
      try {
        const answer = await attempt();
        if (isLast || !isTemporary(answer.response)) return answer;
        wait = Math.min(Number(answer.response.headers.get("retry-after")) * 1000, LONGEST_WAIT);
      } catch (error) {
        if (isLast || signal?.aborted) throw error;
      }
      await pause(wait || backoff(failed), undefined, signal ? { signal } : {});
    }
  }
}

/** Whether the same request may have another answer soon. The only such 409, of a request that is still running, says when. */
function isTemporary({ status, headers }: Response): boolean {
  return [429, 500, 502, 503, 504].includes(status) || (status === 409 && headers.has("retry-after"));
}

/** The milliseconds before the next attempt: a random part of a time that doubles. */
function backoff(failed: number): number {
  return Math.random() * Math.min(500 * 2 ** failed, 8_000);
}

/** The issues of a failure. An answer of another server, such as a proxy, has none. */
function issues(text: string): Issue[] {
  try {
    const { detail } = JSON.parse(text) as components["schemas"]["Failure"];
    return Array.isArray(detail) ? detail : [];
  } catch {
    return [];
  }
}
