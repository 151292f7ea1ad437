"""Tries the console of `cargo local` in a browser: what happens is shown as it happens, and a message is only text.

The address of the API and the keys are in the environment, as `.ci/with-local` puts them there.
"""

import json
import os
import time
import urllib.error
import urllib.request

from playwright.sync_api import Browser, Locator, Page, expect, sync_playwright

from docs import AXE, CHROMIUM, PATIENCE, ROOT, Watch, check

API = os.environ["API"]
HOSTILE = "<script>document.title = 'run'</script><img src=x onerror=\"document.title = 'run'\">"
WIDE, PHONE = {"width": 1440, "height": 900}, {"width": 390, "height": 844}


def ask(method: str, path: str, key: str, body: object = None) -> dict:
    """What the API answers."""
    headers = {"authorization": f"Bearer {os.environ[key]}"}
    request = urllib.request.Request(f"{API}{path}", json.dumps(body or {}).encode(), headers, method=method)
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)["data"]


def refused(method: str, path: str, key: str, body: object) -> int:
    """The status of a failure."""
    try:
        ask(method, path, key, body)
    except urllib.error.HTTPError as error:
        return error.code
    return 0


def events(page: Page, key: str) -> Locator:
    """The rows of the events that the organisation with this key got."""
    return page.get_by_role("row").filter(has_text=f"{key.lower()}/webhook-").filter(has_text="conversation.closed")


def closed(page: Page, key: str, letter: str) -> str:
    """Closes a conversation in which somebody wrote something hostile; its event arrives on the open page."""
    conversation = f"/api/v1/conversation/01900000-0000-7000-8000-{letter}00f00000001"
    ask("POST", f"{conversation}/message", key, {"sender_type": "user", "text": HOSTILE})
    ask("POST", f"{conversation}/close", key)
    begun = time.monotonic()
    arrived = events(page, key)
    expect(arrived.get_by_text("verified")).to_be_visible()
    print(f"   the event of a closed conversation is shown after {time.monotonic() - begun:.1f} s")
    expect(page.get_by_text(f"POST {conversation}/close")).to_be_visible()
    arrived.locator("summary").click()
    expect(arrived.get_by_text("<script>document.title")).to_be_visible()
    # An update keeps open what is open.
    check(refused("POST", "/api/v1/tag", key, {"name": 1}) == 422, "a name that is a number")
    expect(page.get_by_text("Input should be a valid string")).to_be_visible()
    expect(arrived.get_by_text("<script>document.title")).to_be_visible()
    return conversation


def fails(page: Page, key: str) -> None:
    """The inbox fails when it is told to, and the event is repeated by hand."""
    page.get_by_label("Answer the next").fill("1")
    page.get_by_role("button", name="Set").click()
    expect(page.get_by_text("The next 1 are answered 503.")).to_be_visible()
    for webhook in ask("GET", "/api/v1/outbound_webhook/list", key)["items"]:
        if not webhook["enabled"]:
            continue
        logs = f"/api/v1/outbound_webhook/{webhook['id']}/logs"
        sent = [item for item in ask("GET", logs, key)["items"] if item["status"] == 200]
        ask("POST", f"{logs}/{sent[-1]['id']}/redeliver", key)
    arrived = events(page, key)
    expect(arrived).to_have_count(2)
    expect(arrived.first.get_by_text("503")).to_be_visible()


def visit(browser: Browser, scheme: str, size: dict, key: str, letter: str) -> None:
    """Opens the console, and tries everything."""
    context = browser.new_context(color_scheme=scheme, viewport=size)
    context.set_default_timeout(PATIENCE)
    watch = Watch(API, context, under="/")
    page = watch.page(context)
    page.goto(f"{API}/")
    conversation = closed(page, key, letter)
    fails(page, key)
    check(page.title() == "Console", f"a message has run as a script: {page.title()}")
    check("in-demo" not in page.content(), "a key is shown")
    page.screenshot(path=ROOT / f"target/page/console-{scheme}.png", full_page=True)
    page.evaluate(AXE.read_text())
    violations = page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
    check(not violations, f"{scheme}: {json.dumps(violations, indent=2)}")
    wide = page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")
    check(not wide, f"{scheme}: the page is wider than the screen")
    check(not watch.wrong, f"{scheme}: {watch.wrong}")
    print(f"   {scheme}: {conversation} is in the console")
    context.close()


def main() -> None:
    """Tries it on a large screen in the light, and on a phone in the dark."""
    expect.set_options(timeout=PATIENCE)
    (ROOT / "target/page").mkdir(parents=True, exist_ok=True)
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path="/usr/bin/chromium", args=CHROMIUM)
        visit(browser, "light", WIDE, "ACME", "a")
        visit(browser, "dark", PHONE, "GLOBEX", "b")
        browser.close()


if __name__ == "__main__":
    main()
