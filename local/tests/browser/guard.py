"""Attacks `cargo local` from a page of another site in a browser, and finds that nothing has changed.

The page scans and writes the database, issues a key, makes a tag with the key of the demo set, sets up a webhook,
writes an object, and registers an endpoint at the payment provider. A browser sends some of these requests without a
preflight, and hides the answers from the page. So the test looks at what is stored. At the end the same requests come
from the console's own page and from programs, and have their effects. The addresses and the keys are in the
environment, as `.ci/with-local` sets them.
"""

import json
import os
import threading
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

import boto3
from botocore.config import Config
from playwright.sync_api import Browser, Page, sync_playwright

from docs import CHROMIUM, PATIENCE, check

API, DYNAMODB, S3, KMS, PAYMENTS = (os.environ[name] for name in ("API", "DYNAMODB", "S3", "KMS", "PAYMENTS"))
KEY = os.environ["ACME"]
ORG = "01900000-0000-7000-8000-a00000000001"
AGENCY = "01900000-0000-7000-8000-a00a00000001"
TABLE, BUCKET = "assistants-local", "assistants-local-files"
MARK = "made by a page"
INVOCATIONS = "/2015-03-31/functions/{}/invocations"
SETUP = f"{API}/api/v1/agency/billing/{AGENCY}/setup_payment_webhook?api_key={KEY}"
# A signature that the embedded database does not check.
UNCHECKED = {
    "authorization": "AWS4-HMAC-SHA256 Credential=a/1/a/dynamodb/aws4_request, SignedHeaders=host, Signature=0",
    "x-amz-date": "20260101T000000Z",
}
# The page's host, whose name leads to this machine: as after DNS rebinding.
EVIL = "evil.example"

# Sends each request with and without CORS, as a form, as an image and in a frame. Returns what the page can read.
ATTACK = """async ({requests, get}) => {
  const read = [];
  for (const [url, options] of requests)
    for (const mode of ["cors", "no-cors"]) {
      try {
        const answer = await fetch(url, {...options, mode});
        if (answer.type !== "opaque") read.push([url, answer.status]);
      } catch {}
    }
  const loaded = (element) => new Promise((done) => {
    element.onload = element.onerror = done;
    document.body.append(element);
  });
  await loaded(Object.assign(new Image(), {src: get}));
  await loaded(Object.assign(document.createElement("iframe"), {src: get}));
  for (const [url, {body = ""}] of requests.filter(([, {body}]) => body?.includes('"'))) {
    const frame = Object.assign(document.createElement("iframe"), {name: "answer"});
    const fields = {action: url, method: "post", enctype: "text/plain", target: "answer"};
    const form = Object.assign(document.createElement("form"), fields);
    // A form of this type sends NAME=VALUE. The last string of the JSON gets the equals sign.
    const end = body.lastIndexOf('"');
    const input = Object.assign(document.createElement("input"), {name: body.slice(0, end), value: body.slice(end)});
    form.append(input);
    document.body.append(frame, form);
    const answered = new Promise((done) => { frame.onload = frame.onerror = done; });
    form.submit();
    await answered;
    frame.remove();
    form.remove();
  }
  return read;
}"""


def aws(service: str, endpoint: str):
    """A client of the local service."""
    keys = {"aws_access_key_id": "local", "aws_secret_access_key": "local", "region_name": "local"}
    return boto3.client(service, endpoint_url=endpoint, config=Config(proxies={}, signature_version="v4"), **keys)


def ask(method: str, url: str, body: object = None, **headers: str) -> tuple[int, object]:
    """Status and JSON of an answer."""
    data = None if body is None else json.dumps(body).encode()
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data, headers, method=method)) as answer:
            return answer.status, json.loads(answer.read() or b"null")
    except urllib.error.HTTPError as error:
        return error.code, None


def state() -> dict:
    """What a page could have changed."""
    keys = ask("POST", API + INVOCATIONS.format("ListApiKeysFunction"), {"org_id": ORG})[1]
    tags = ask("GET", f"{API}/api/v1/tag/list?size=100", authorization=f"Bearer {KEY}")[1]
    pages = aws("dynamodb", DYNAMODB).get_paginator("scan").paginate(TableName=TABLE)
    items = [item for page in pages for item in page["Items"]]
    check(len(items) > 1000, f"the scan finds {len(items)} items")
    objects = aws("s3", S3).list_objects_v2(Bucket=BUCKET).get("Contents", [])
    return {
        "keys": [key["name"] for key in keys],
        "tags": [tag["name"] for tag in tags["data"]["items"]],
        "items": [item for item in items if MARK in str(item)],
        "objects": sorted(entry["Key"] for entry in objects),
        "endpoint": ask("GET", f"{PAYMENTS}/v1/webhook_endpoints/we_local_0001", authorization="Bearer sk_1")[0],
    }


def requests(signed: str) -> list:
    """The requests of the page: addresses and options."""
    text = {"content-type": "text/plain"}
    item = {"pk": {"S": "KEY#page"}, "sk": {"S": "KEY"}, "name": {"S": MARK}}

    def post(url: str, body: object, headers: dict | None = None) -> list:
        return [url, {"method": "POST", "body": json.dumps(body), "headers": headers or text}]

    def call(action: str, body: dict) -> list:
        names = {"x-amz-target": f"DynamoDB_20120810.{action}", "content-type": "application/x-amz-json-1.0"}
        return post(DYNAMODB, {"TableName": TABLE, **body}, names | UNCHECKED)

    return [
        post(API + INVOCATIONS.format("IssueApiKeyFunction"), {"org_id": ORG, "name": MARK}),
        post(f"{API}/api/v1/tag?api_key={KEY}", {"name": MARK}),
        [SETUP, {}],
        [f"{API}/api/v1/tag/list?api_key={KEY}", {}],
        call("Scan", {}),
        call("PutItem", {"Item": item}),
        [signed, {"method": "PUT", "body": MARK, "headers": text}],
        post(f"{PAYMENTS}/v1/webhook_endpoints", {}, {"authorization": "Bearer sk_1"}),
        post(f"{PAYMENTS}/send", {"type": "invoice.paid"}),
    ]


def served() -> ThreadingHTTPServer:
    """A server of an empty page."""

    class Blank(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(b"<!doctype html><title>Another site</title>")

        def log_message(self, *_: object) -> None:
            """Nothing is logged."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Blank)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def attacks(page: Page, origin: str, signed: str) -> None:
    """A page of `origin` sends everything, and is sent to an operation, without an effect."""
    before = state()
    page.goto(origin)
    read = page.evaluate(ATTACK, {"requests": requests(signed), "get": SETUP})
    check(not read, f"{origin} reads {read}")
    with page.expect_navigation() as navigation:
        page.evaluate("url => { location = url; }", SETUP)
    check(navigation.value.status == 403, f"{origin} is sent to an operation: {navigation.value.status}")
    after = state()
    check(after == before, f"{origin} has changed {before} to {after}")
    print(f"   a page of {urlsplit(origin).hostname} reads and changes nothing")


def rebinds(page: Page) -> None:
    """A page whose name leads to the port has the port's own origin, and gets 403 only."""
    for url in (API, DYNAMODB, S3, KMS, PAYMENTS):
        opened = page.goto(f"http://{EVIL}:{urlsplit(url).port}/")
        refused = opened.status == 403 and EVIL in opened.json()["error"]
        check(refused, f"{url} serves a page of {EVIL}: {opened.status}")
    page.goto(f"http://{EVIL}:{urlsplit(API).port}/")
    status = page.evaluate("async (path) => (await fetch(path)).status", f"/api/v1/tag/list?api_key={KEY}")
    check(status == 403, f"a rebound page reads the tags: {status}")


def works(page: Page, signed: str) -> None:
    """The same requests have their effects when they come from the page of the console, or from a program."""
    page.goto(API)
    before = state()
    own = [request for request in requests(signed) if request[0].startswith(API)]
    statuses = page.evaluate(
        "requests => Promise.all(requests.map(async ([url, options]) => (await fetch(url, options)).status))", own
    )
    check(statuses == [200, 201, 200, 200], f"the console's page gets {statuses}")
    put = urllib.request.Request(signed, MARK.encode(), {"content-type": "text/plain"}, method="PUT")
    urllib.request.urlopen(put).close()
    after = state()
    for kind in ("keys", "tags", "objects"):
        check(len(after[kind]) == len(before[kind]) + 1, f"{kind}: {before[kind]} and {after[kind]}")
    check(before["endpoint"] == 404 and after["endpoint"] == 200, f"the endpoint: {after['endpoint']}")
    check(len(after["items"]) > len(before["items"]) == 0, f"stored: {after['items']}")


def visit(browser: Browser) -> None:
    """Attacks from another host, and from another port of the same host."""
    page = browser.new_page()
    page.set_default_timeout(PATIENCE)
    signed = aws("s3", S3).generate_presigned_url("put_object", {"Bucket": BUCKET, "Key": "page"})
    port = served().server_port
    for host in (EVIL, "127.0.0.1"):
        attacks(page, f"http://{host}:{port}/", signed)
    rebinds(page)
    works(page, signed)


def main() -> None:
    """Starts the browser."""
    with sync_playwright() as play:
        rules = f"--host-resolver-rules=MAP {EVIL} 127.0.0.1"
        browser = play.chromium.launch(executable_path="/usr/bin/chromium", args=(*CHROMIUM, rules))
        visit(browser)
        browser.close()


if __name__ == "__main__":
    main()
