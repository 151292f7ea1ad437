"""Tries the page of the API in a browser: it shows every operation, sends a request, and calls no other host.

The API has the demo set. With `--deployed` the page has no key, so the test types one. With `--prefix` the test reaches
the page through a proxy, at that path of another address, as behind a stage; the proxy removes the key from the page.
Dark colours, each operation and accessibility are the same at every address, so they are tried without both options.
"""

import argparse
import contextlib
import http.client
import itertools
import json
import re
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

from playwright.sync_api import BrowserContext, Locator, Page, Route, expect, sync_playwright

ROOT = Path(__file__).resolve().parents[3]
AXE = ROOT / "target/tools/node/node_modules/axe-core/axe.min.js"
DEMO = (ROOT / "local/demo.yaml").read_text()
KEY = re.findall(r"key: (\S+), role: admin", DEMO)[0]
# The demo set makes all users of an organisation from one line.
EMAIL = re.findall(r'"user\{n\}(@.*)"', DEMO)[0]
KNOWN = Path(__file__).with_name("accessibility.json")
PATH = "/api/v1/docs"
# The longest wait, in milliseconds, for a busy machine.
PATIENCE = 120_000
CHROMIUM = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
# Reports a violation of the policy to the console, even if a script has caught the error.
TELL = "addEventListener('securitypolicyviolation', e => console.error('policy', e.violatedDirective, e.blockedURI))"

# Colours change at once: during a transition, axe finds low contrasts that last only a moment.
STILL = """const still = new CSSStyleSheet()
still.replaceSync("*, ::before, ::after { transition: none !important }")
document.adoptedStyleSheets = [still]"""


def check(condition: object, message: str) -> None:
    """Ends the run with `message` unless `condition` is true."""
    if not condition:
        sys.exit(f"page: {message}")


@contextlib.contextmanager
def behind(prefix: str, api: str):
    """The address of a proxy that forwards `prefix` to `api` and removes the key from the page."""

    class Proxy(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if not self.path.startswith(f"{prefix}/"):
                self.send_error(404)
                return
            connection = http.client.HTTPConnection(urlsplit(api).netloc)
            connection.request("GET", self.path.removeprefix(prefix), headers=dict(self.headers))
            answer = connection.getresponse()
            body = answer.read()
            if PATH in self.path:
                check(KEY.encode() in body, "the proxy finds no key in the page of `cargo local`")
                body = body.replace(KEY.encode(), b"")
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in ("connection", "content-length", "date", "transfer-encoding"):
                    self.send_header(name, value)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nothing is logged."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Proxy) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}{prefix}"
        server.shutdown()


class Watch:
    """Collects forbidden acts of the page: calls of another host, errors, and violations of the policy."""

    def __init__(self, api: str, context: BrowserContext, under: str = "/api/v1/"):
        self.api, self.under, self.wrong = api, under, []
        context.add_init_script(TELL)
        context.add_init_script(STILL)
        context.route("**/*", self.route)

    def route(self, route: Route) -> None:
        """Allows only requests to the API."""
        if route.request.url.startswith(f"{self.api}{self.under}"):
            route.continue_()
        else:
            self.wrong.append(f"a request to {route.request.url}")
            route.abort()

    def page(self, context: BrowserContext) -> Page:
        """A new page whose errors are collected."""
        page = context.new_page()
        page.on("console", lambda line: self.wrong.append(line.text) if line.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: self.wrong.append(str(error)))
        return page


def accessible(page: Page, part: str, name: str, found: dict) -> None:
    """Adds the violations of axe in `part` to `found`: for each rule the number of elements."""
    page.evaluate(AXE.read_text())
    violations = page.evaluate("part => axe.run(part, {resultTypes: ['violations']})", part)["violations"]
    found[name] = {violation["id"]: len(violation["nodes"]) for violation in violations}
    if violations:
        (ROOT / f"target/page/{name.replace(', ', '-')}.json").write_text(json.dumps(violations, indent=2))


def compare(found: dict) -> None:
    """Checks that the violations are exactly the known ones."""
    known = json.loads(KNOWN.read_text())
    known = {name: {rule: entry["elements"] for rule, entry in rules.items()} for name, rules in known.items()}
    for name, rules in sorted(found.items()):
        for rule in sorted(rules.keys() | known[name].keys()):
            now, before = rules.get(rule, 0), known[name].get(rule, 0)
            check(now <= before, f"{name}: {now} elements violate {rule}, not {before}: see target/page")
            check(now >= before, f"{name}: {now} elements violate {rule}, not {before}: take it from {KNOWN.name}")


def every_operation(page: Page, document: dict) -> None:
    """Finds each operation in the list at the side, and opens the first of each group with its test button."""
    closed = page.get_by_role("button", name="Open Group")
    while left := closed.count():
        closed.first.dispatch_event("click")
        expect(closed).to_have_count(left - 1)
    links = page.locator("aside a").evaluate_all(
        "links => links.map(link => [link.getAttribute('href'), link.innerText])"
    )
    listed, opened, shown = dict(links), set(), 0
    guides = re.findall("^# (.*)$", document["info"]["description"], re.MULTILINE)
    sections = [name for target, name in links if target.startswith("#description/")]
    check([name for name in sections if name in guides] == guides != [], f"the guides are listed as {sections}")
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            [tag], summary, shown = operation["tags"], operation["summary"], shown + 1
            target = f"#tag/{tag}/{method.upper()}{path}"
            check(listed.get(target, "").startswith(summary), f"{target} is listed as {listed.get(target)}")
            if tag not in opened:
                opened.add(tag)
                page.locator(f'aside a[href="{target}"]').dispatch_event("click")
                expect(page.get_by_role("heading", name=summary, exact=True)).to_be_attached()
                expect(page.get_by_role("button", name=f"Test Request ({method} {path})")).to_be_attached()
    print(f"   {len(guides)} guides, {shown} operations in {len(opened)} groups")
    check(shown > len(document["tags"]) == len(opened), f"the document has few operations: {shown}")


def samples(page: Page, url: str, document: dict) -> None:
    """Opens the samples of an operation one after the other, on a page that shows few other operations."""
    operation = document["paths"]["/api/v1/tag"]["post"]
    page.goto(f"{url}#tag/tag/POST/api/v1/tag")
    sends = page.get_by_role("button", name="Test Request (post /api/v1/tag)", exact=True)
    part = page.locator("section").filter(has=sends).last
    for before, sample in itertools.pairwise([{"label": "curl"}, *operation["x-codeSamples"]]):
        part.get_by_role("button", name=f"Change code sample language: {before['label']}").dispatch_event("click")
        page.get_by_role("option", name=sample["label"], exact=True).click()
        for line in sample["source"].split("\n"):
            expect(part.get_by_text(line.strip()).first).to_be_attached()
    page.close()


def send(dialog: Locator, key: str | None, status: str) -> None:
    """Sends the request, with `key` typed in if it is given, and waits for `status`."""
    if key:
        dialog.get_by_label("Bearer Token").fill(key)
    dialog.get_by_role("button", name="Send").first.click()
    expect(dialog.get_by_text(status)).to_be_visible()


def visit(context: BrowserContext, watch: Watch, url: str, arguments: argparse.Namespace) -> dict:
    """Opens the page, tries everything, and returns the violations of axe."""
    page, found, scheme = watch.page(context), {}, arguments.scheme
    page.goto(url)
    expect(page.get_by_role("heading", name="Conversational Assistant Management API", exact=True)).to_be_visible()
    filled = page.locator("body").get_attribute("data-key")
    check(filled == ("" if arguments.deployed else KEY), f"the key that is filled in: {filled!r}")
    expect(page.get_by_label("Bearer Token")).to_be_visible()
    page.screenshot(path=f"{arguments.pictures}-{scheme}.png")
    if not arguments.deployed:
        accessible(page, "body", f"page, {scheme}", found)
    document = page.evaluate("url => fetch(url).then(answer => answer.json())", f"{watch.api}/api/v1/openapi.json")
    if scheme == "light" and not arguments.deployed:
        every_operation(page, document)
        samples(watch.page(context), url, document)
    [path] = [path for path, of in document["paths"].items() if of.get("get", {}).get("operationId") == "getAgentList"]
    page.goto(f"{url}#tag/user/GET{path}")
    page.get_by_role("button", name=f"Test Request (get {path})").click()
    dialog = page.get_by_role("dialog")
    send(dialog, KEY if arguments.deployed else None, "200 OK")
    expect(dialog.get_by_text(EMAIL).first).to_be_visible()
    page.screenshot(path=f"{arguments.pictures}-request-{scheme}.png")
    if not arguments.deployed:
        accessible(page, "[role=dialog]", f"request, {scheme}", found)
    check(not watch.wrong, f"{scheme}: {watch.wrong}")
    send(dialog, "wrong", "401 Unauthorized")
    [told] = watch.wrong
    check("401" in told, f"{scheme}: the console has not the 401 alone: {told}")
    kept = page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie])")
    check("wrong" not in kept and KEY not in kept, f"the browser keeps the key: {kept}")
    return found


def main(arguments: argparse.Namespace) -> None:
    """Visits the page, without options in both colour schemes."""
    expect.set_options(timeout=PATIENCE)
    with contextlib.ExitStack() as stack:
        api, slash = arguments.api, ""
        if arguments.prefix:
            api, slash = stack.enter_context(behind(arguments.prefix, api)), "/"
            arguments.deployed = True
        arguments.pictures = ROOT / "target/page" / ("behind-a-prefix" if slash else "page")
        arguments.pictures.parent.mkdir(parents=True, exist_ok=True)
        play = stack.enter_context(sync_playwright())
        browser = play.chromium.launch(executable_path="/usr/bin/chromium", args=CHROMIUM)
        found = {}
        schemes = ["light"] if arguments.deployed else ["light", "dark"]
        for arguments.scheme in schemes:
            context = browser.new_context(
                color_scheme=arguments.scheme, reduced_motion="reduce", viewport={"width": 1440, "height": 900}
            )
            context.set_default_timeout(PATIENCE)
            watch = Watch(api, context)
            found |= visit(context, watch, f"{api}{PATH}{slash}", arguments)
            context.close()
        compare(found)
        browser.close()
    print(f"   {api}{PATH}{slash} works")


if __name__ == "__main__":
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("api", help="the address of the API, without /api/v1")
    reader.add_argument("--deployed", action="store_true", help="no key is filled in")
    reader.add_argument("--prefix", help="where the API is behind a proxy")
    main(reader.parse_args())
