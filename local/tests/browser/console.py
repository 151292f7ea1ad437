"""Tries the console of `cargo local` in a browser.

The pages follow every change, the buttons work, and a message is only text. The address of the API and the keys are in
the environment, as `.ci/with-local` sets them.
"""

import json
import os
import re
import time
import urllib.error
import urllib.request

from playwright.sync_api import Browser, Locator, Page, expect, sync_playwright

from docs import AXE, CHROMIUM, PATIENCE, ROOT, Watch, check

API = os.environ["API"]
HOSTILE = "<script>document.title = 'run'</script><img src=x onerror=\"document.title = 'run'\">"
WIDE, PHONE = {"width": 1440, "height": 900}, {"width": 380, "height": 844}


def ask(method: str, path: str, key: str, body: object = None) -> dict:
    """Asks the API and returns the data of its answer."""
    headers = {"authorization": f"Bearer {os.environ[key]}"}
    request = urllib.request.Request(f"{API}{path}", json.dumps(body or {}).encode(), headers, method=method)
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)["data"]


def ask_list(path: str, key: str) -> list:
    """The records of a list."""
    request = urllib.request.Request(f"{API}{path}", headers={"authorization": f"Bearer {os.environ[key]}"})
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)["data"]["items"]


def refused(method: str, path: str, key: str, body: object) -> int:
    """The status of a failure."""
    try:
        ask(method, path, key, body)
    except urllib.error.HTTPError as error:
        return error.code
    return 0


def closings(page: Page, key: str) -> Locator:
    """The rows of the events of closed conversations of this key's organisation."""
    return page.get_by_role("row").filter(has_text=f"{key.lower()}/webhook-").filter(has_text="conversation.closed")


def follows(page: Page, key: str, conversation: str) -> None:
    """The open page shows the verified event of a conversation that is closed by the API, and leads to its request."""
    page.goto(f"{API}/console/events")
    path = f"/api/v1/conversation/{conversation}"
    ask("POST", f"{path}/message", key, {"sender_type": "user", "text": HOSTILE})
    ask("POST", f"{path}/close", key)
    begun = time.monotonic()
    arrived = closings(page, key)
    expect(arrived.get_by_text("verified")).to_be_visible()
    print(f"   the event of a closed conversation is shown after {time.monotonic() - begun:.1f} s")
    arrived.locator("summary").click()
    expect(arrived.get_by_text("<script>document.title")).to_be_visible()
    # An update of the page keeps opened rows open.
    ask("POST", f"/api/v1/outbound_webhook/{webhook(key)}/test", key)
    expect(page.locator("#events tbody tr").first.get_by_text("webhook.test", exact=True)).to_be_visible()
    expect(arrived.get_by_text("<script>document.title")).to_be_visible()
    arrived.get_by_role("link", name="close-conversation").click()
    expect(page.get_by_role("heading", name="close-conversation")).to_be_visible()
    expect(page.locator("#calls").get_by_text("PutItem").first).to_be_visible()
    expect(page.locator("#consequences").get_by_role("link", name="conversation.closed").first).to_be_visible()
    copies(page, path)
    # The event leads back to itself.
    page.locator("#consequences").get_by_role("link", name="conversation.closed").first.click()
    expect(closings(page, key)).to_have_count(1)


def copies(page: Page, path: str) -> None:
    """The page of a request copies it in three forms."""
    page.get_by_role("link", name="Copy as curl").click()
    expect(page.get_by_text("Copied.")).to_be_visible()
    command = page.evaluate("navigator.clipboard.readText()")
    check(command.startswith("curl --globoff --request 'POST' ") and f"{path}/close" in command, f"copied: {command}")
    with page.expect_download() as download:
        page.get_by_role("link", name="Save as recorded event").click()
    event = json.loads(download.value.path().read_text())
    check(download.value.suggested_filename == "close-conversation.json", download.value.suggested_filename)
    check(event["path"] == f"{path}/close", f"saved: {event}")
    with page.expect_response("**/mcp"):
        page.get_by_role("link", name="Copy as MCP call").click()
    page.wait_for_function("navigator.clipboard.readText().then((text) => text.includes('tools/call'))")


def webhook(key: str) -> str:
    """The id of an enabled webhook."""
    listed = ask_list("/api/v1/outbound_webhook/list", key)
    return next(webhook["id"] for webhook in listed if webhook["enabled"])


def finds(page: Page, key: str) -> None:
    """The filters of the requests are in the address, and a request is sent again with another body."""
    check(refused("POST", "/api/v1/tag", key, {"name": 1}) == 422, "a name that is a number")
    page.goto(f"{API}/console/requests?org={key.lower()}")
    rows = page.locator("#requests tbody tr")
    expect(rows.get_by_text("Input should be a valid string")).to_be_visible()
    page.locator("[name=status]").select_option("4")
    expect(page).to_have_url(f"{API}/console/requests?org={key.lower()}&search=&status=4&operation=")
    expect(rows).to_have_count(1)
    rows.get_by_role("link", name="create-tag").click()
    page.locator("textarea[name=body]").fill('{"name": "Edited"}')
    page.get_by_role("button", name="Send", exact=True).click()
    expect(page.locator(".facts").get_by_text("201")).to_be_visible()
    expect(page.locator(".facts").get_by_role("link", name="Edited")).to_be_visible()
    first = page.url
    page.get_by_role("button", name="Send again").click()
    page.wait_for_url(lambda url: "/console/requests/" in url and url != first)


def opens_menu(page: Page) -> None:
    """On a narrow screen the side bar opens from its button, and its links lead to the pages."""
    page.goto(f"{API}/")
    menu = page.get_by_role("navigation", name="Pages")
    expect(menu).to_be_hidden()
    page.get_by_role("button", name="Menu").click()
    expect(menu).to_be_visible()
    page.keyboard.press("Escape")
    expect(menu).to_be_hidden()
    page.get_by_role("button", name="Menu").click()
    menu.get_by_role("link", name="Requests").click()
    expect(page.get_by_role("heading", name="Requests")).to_be_visible()


def begins(page: Page) -> None:
    """The start page ticks the steps that were done."""
    page.goto(f"{API}/")
    expect(page.locator("#steps li.done")).to_have_count(3)
    expect(page.locator("#timeline tbody tr").first).to_be_visible()


def talks(page: Page, key: str) -> None:
    """The page's forms open, continue and close a conversation, with the keyboard alone."""
    page.goto(f"{API}/console/conversations?org={key.lower()}")
    conversations = page.locator("#conversations li")
    before = conversations.count()
    page.get_by_role("button", name="Open a conversation").press("Enter")
    expect(conversations).to_have_count(before + 1)
    conversations.first.get_by_role("link").press("Enter")
    for number, (sender, text) in enumerate([("user", HOSTILE), ("bot", "Hello!")], 1):
        page.locator("[name=sender_type]").select_option(sender)
        page.locator("[name=text]").fill(text)
        page.locator("[name=text]").press("Enter")
        expect(page.locator("#transcript .bubble")).to_have_count(number)
        expect(page.get_by_text("is typing")).to_have_count(1 if sender == "user" else 0)
    expect(page.locator("#transcript").get_by_text(HOSTILE)).to_be_visible()
    page.get_by_role("button", name="Close the conversation").press("Enter")
    expect(conversations.first.get_by_text("closed")).to_be_visible()
    page.get_by_role("button", name="Close the conversation").press("Enter")
    expect(page.get_by_text("Answered 409")).to_be_visible()
    # The event of the other conversation arrives too, so that the next failing event is another one.
    page.goto(f"{API}/console/events")
    expect(closings(page, key)).to_have_count(2)


def skips(page: Page, seconds: str) -> None:
    """Skips time."""
    page.goto(f"{API}/console/time")
    page.get_by_role("button", name=seconds).click()
    expect(page.locator("#notice").get_by_text("came due.")).to_be_visible()


def retries(page: Page, key: str) -> None:
    """An event that fails twice has three attempts when time is skipped, and a fourth when it is redelivered."""
    deliveries = f"{API}/console/deliveries?org={key.lower()}"
    page.goto(deliveries)
    page.get_by_label("Answer the next").fill("2")
    page.get_by_role("button", name="Set").click()
    expect(page.locator("#notice").get_by_text("answered so.")).to_be_visible()
    enabled = page.locator("#webhooks tbody tr").filter(has_text="yes").first
    enabled.get_by_role("button", name="Send a test event").click()
    delivery = page.locator("#deliveries tbody tr").filter(has_text="webhook.test").first
    delivery.locator("summary").first.click()
    expect(delivery.locator("li.attempt")).to_have_count(1)
    for attempts, seconds in [(2, "Skip 5 minutes"), (3, "Skip 1 hour")]:
        skips(page, seconds)
        page.goto(deliveries)
        delivery.locator("summary").first.click()
        expect(delivery.locator("li.attempt")).to_have_count(attempts)
    delivery.get_by_role("button", name="Redeliver").click()
    expect(delivery.locator("li.attempt")).to_have_count(4)
    expect(delivery.get_by_text("verified")).to_have_count(4)
    expect(delivery.get_by_text("answered 503")).to_have_count(2)


def pauses(page: Page, key: str) -> None:
    """The page resumes, pauses and cancels a campaign."""
    page.goto(f"{API}/console/campaigns?org={key.lower()}")
    campaign = page.locator("#campaigns tbody tr").filter(has_text="We open an hour earlier")
    for button, status in [("Resume", "queued"), ("Pause", "paused"), ("Cancel", "cancelled")]:
        campaign.get_by_role("button", name=button).click()
        expect(campaign.locator(".badge", has_text=status)).to_be_visible()
    expect(campaign.get_by_role("progressbar", name="3 of 3")).to_be_visible()
    campaign.get_by_role("link").first.click()
    expect(page.get_by_role("img", name="Contacts by status over time")).to_be_visible()
    expect(page.locator("#contacts tbody tr")).to_have_count(3)


def keeps(page: Page, key: str) -> None:
    """A record is made, changed, tagged and deleted by its pages. An issue stands at its field."""
    page.goto(f"{API}/console/records?org={key.lower()}")
    page.locator("a.card[href^='/console/records/assistant?']").click()
    page.get_by_text("Create assistant", exact=True).click()
    form = page.locator("#create-assistant-")
    form.get_by_label("Name", exact=True).fill(HOSTILE)
    form.get_by_label("Voice languages").fill('["x"]')
    form.get_by_role("button", name="Create").click()
    expect(form.locator("#create-assistant--voice_languages-issue")).to_contain_text("should match")
    form.get_by_label("Voice languages").fill('["en-GB"]')
    form.get_by_role("button", name="Create").click()
    expect(page.locator("#members").get_by_text(HOSTILE)).to_be_visible()
    page.get_by_text("Update assistant", exact=True).click()
    page.get_by_label("Use tools").check()
    page.get_by_label("Name", exact=True).fill("A new one")
    page.get_by_role("button", name="Change").click()
    expect(page.locator("#record-name")).to_have_text("A new one")
    expect(page.locator("#members > div").filter(has_text="Use tools")).to_contain_text("yes")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.locator("#tags .badge")).to_have_count(1)
    page.locator("#tags").get_by_role("button").click()
    expect(page.locator("#tags .badge")).to_have_count(0)
    page.get_by_text("Delete assistant …").click()
    page.get_by_role("button", name="Delete assistant").click()
    expect(page.locator("#list-assistant")).to_be_visible()
    expect(page.locator("#list-assistant").get_by_text("A new one")).to_have_count(0)


def charges(page: Page, key: str, letter: str) -> None:
    """The payment provider sends a checkout, and the user gets its customer."""
    page.goto(f"{API}/console/payments?org={key.lower()}")
    agency = f"01900000-0000-7000-8000-{letter}00a00000001"
    row = page.locator("#agencies tbody tr").filter(has=page.locator(f"[title='{agency}']"))
    row.get_by_role("button", name="Set up").click()
    expect(row.locator(".good")).to_be_visible()
    page.locator("[name=type]").select_option("checkout.session.completed")
    page.locator("select[name=agency_id]").select_option(agency)
    page.locator("[name=customer_id]").fill(f"cus_{key.lower()}")
    page.get_by_role("button", name="Send").click()
    expect(page.locator("#notice").get_by_text("applied")).to_be_visible()
    expect(page.locator("#users").get_by_text(f"cus_{key.lower()}")).to_be_visible()


def counts(page: Page, key: str) -> None:
    """The page has a chart of the messages, and a table with the same numbers."""
    page.goto(f"{API}/console/counts?org={key.lower()}")
    expect(page.get_by_role("img", name="messages by day")).to_be_visible()
    bars = page.locator("#chart-messages rect title").all_text_contents()
    cells = page.locator("#messages tbody td.number").all_text_contents()
    check(sum(int(bar.split(": ")[1]) for bar in bars) == sum(map(int, cells)) > 0, f"{bars} and {cells}")


def further(page: Page) -> list[str]:
    """The addresses of pages that only other pages lead to: of one record, one chat, one campaign, and so on."""
    found = ["/console/records/conversation", "/console/table?view=changes"]
    for path, links in [
        ("/console/records/widget", "#list-widget td.name a"),
        ("/console/conversations", "#conversations a"),
        ("/console/campaigns", "#campaigns td a"),
        ("/console/records/contact", "#list-contact td.name a"),
    ]:
        page.goto(f"{API}{path}")
        found.append(page.locator(links).first.get_attribute("href"))
    page.goto(f"{API}{found[2]}")
    found.append(page.get_by_role("link", name="Stored items").get_attribute("href"))
    return found


def looks(page: Page, scheme: str) -> None:
    """Every page is accessible, fits the screen, and shows no key."""
    page.goto(f"{API}/")
    links = page.locator("#menu a[href]").all()
    addresses = [link.get_attribute("href").split("?")[0] for link in links]
    paths = [path for path in addresses if path == "/" or path.startswith("/console/")]
    check("/console/table" in paths, f"{scheme}: the pages are not linked: {paths}")
    page.goto(f"{API}/console/requests")
    one = page.locator("#requests tbody tr").filter(has_text="close-conversation").first.get_by_role("link").first
    paths += [one.get_attribute("href"), *further(page)]
    for path in paths:
        page.goto(f"{API}{path}")
        name = "-".join(re.findall("[a-z]{3,}", path.split("?")[0].removeprefix("/console"))) or "start"
        page.screenshot(path=ROOT / f"target/page/console-{name}-{scheme}.png", full_page=True)
        page.evaluate(AXE.read_text())
        violations = page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
        check(not violations, f"{scheme} {path}: {json.dumps(violations, indent=2)}")
        wide = page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")
        check(not wide, f"{scheme}: {path} is wider than the screen")
        check("in-demo" not in page.content() and "whsec_" not in page.content(), f"{path} shows a key")


def visit(browser: Browser, scheme: str, size: dict, key: str, letter: str) -> None:
    """Opens the console and tries everything."""
    context = browser.new_context(color_scheme=scheme, viewport=size, permissions=["clipboard-read", "clipboard-write"])
    context.set_default_timeout(PATIENCE)
    watch = Watch(API, context, under="/")
    page = watch.page(context)
    if size == PHONE:
        opens_menu(page)
    follows(page, key, f"01900000-0000-7000-8000-{letter}00f00000001")
    finds(page, key)
    talks(page, key)
    retries(page, key)
    charges(page, key, letter)
    counts(page, key)
    begins(page)
    keeps(page, key)
    pauses(page, key)
    check(page.title() == "Campaigns · Console", f"a message has run as a script: {page.title()}")
    looks(page, scheme)
    check(not watch.wrong, f"{scheme}: {watch.wrong}")
    print(f"   {scheme}: every page of the console works")
    context.close()


def main() -> None:
    """Tries a large screen in light colours, and a phone in dark colours."""
    expect.set_options(timeout=PATIENCE)
    (ROOT / "target/page").mkdir(parents=True, exist_ok=True)
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path="/usr/bin/chromium", args=CHROMIUM)
        visit(browser, "light", WIDE, "ACME", "a")
        visit(browser, "dark", PHONE, "GLOBEX", "b")
        browser.close()


if __name__ == "__main__":
    main()
