"""Takes the pictures of the console for the documents, and a recording of the first minute.

It needs a fresh `cargo local`. Without `--renew` it compares: each picture in `docs/console` must have the size of the
page, and `docs/console/pictures.json` its text. So a picture does not grow old when the console changes.
"""

import difflib
import io
import json
import os
import re
import shutil
import sys
import urllib.request

from PIL import Image, ImageDraw, ImageFont
from playwright.sync_api import Page, expect, sync_playwright

from docs import CHROMIUM, PATIENCE, ROOT, check

API, FOLDER = os.environ["API"], ROOT / "docs/console"
RECORDING, TEXTS = FOLDER / "first-minute.png", FOLDER / "pictures.json"
SIZE, CAPTION, COLOURS = {"width": 1100, "height": 660}, 36, 128
LARGEST, SETTLES, WORK = 2_000_000, 1000, ROOT / "target/page/documents"
CONVERSATION = "01900000-0000-7000-8000-a00f00000001"
# What differs from one run to the next: durations, times and days, ports, digits of ids, sizes of what has these, and
# the calls of a request whose process has read its key already.
VARIABLE = re.compile(
    r"\d+(\.\d+)?\s(µs|ms|s|min|h)( ago)?|\bnow\b|\d{4}-\d\d-\d\d([T ]\d\d:\d\d:\d\d(\.\d+)?Z?)?"
    r"|(\t\d+){4}\t|\d\d:\d\d(:\d\d(\.\d+)?)?|127\.0\.0\.1:\d+|\d+ bytes"
    r"|v1,[\w+/=]+|(timestamp|length): \d+|(AUDIT|COUNTS#\w+)#\d+|\d+ items? in \d+ partitions?"
    r"|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|…[0-9a-f]{8}"
)


def ask(method: str, path: str, body: object = None) -> None:
    """Sends a request to the API with the first key of the demo set."""
    headers = {"authorization": f"Bearer {os.environ['ACME']}"}
    request = urllib.request.Request(f"{API}{path}", json.dumps(body or {}).encode(), headers, method=method)
    with urllib.request.urlopen(request) as answer:
        answer.read()


class Film:
    """The frames of the recording, each with the text of its page."""

    def __init__(self, page: Page):
        self.page, self.frames, self.lengths, self.texts = page, [], [], {}
        self.font = ImageFont.load_default(size=17)

    def take(self, caption: str, milliseconds: int) -> None:
        """Adds what the page shows, with a line that says what is seen."""
        self.texts[f"{len(self.frames) + 1}. {caption}"] = text_of(self.page)
        shot = Image.open(io.BytesIO(self.page.screenshot())).convert("RGB")
        frame = Image.new("RGB", (shot.width, shot.height + CAPTION), "#4338ca")
        frame.paste(shot, (0, 0))
        place = (shot.width / 2, shot.height + CAPTION / 2)
        ImageDraw.Draw(frame).text(place, caption, "white", self.font, anchor="mm")
        self.frames.append(frame.quantize(COLOURS, dither=Image.Dither.NONE))
        self.lengths.append(milliseconds)

    def save(self) -> None:
        """Writes the animated PNG."""
        first, *others = self.frames
        settings = {"save_all": True, "append_images": others, "duration": self.lengths, "optimize": True}
        first.save(RECORDING, **settings)


def text_of(page: Page) -> list[str]:
    """The lines that the page shows when it has stopped to change, without what differs from run to run."""
    shown, before = page.locator("body").inner_text(), ""
    while shown != before:
        page.wait_for_timeout(SETTLES)
        shown, before = page.locator("body").inner_text(), shown
    lines = [VARIABLE.sub("…", line).strip() for line in shown.splitlines()]
    # The first request of a key on a day notes the day. The recording skips an hour, which may begin a day.
    return [line for line in lines if line and not line.startswith("modify RATE#")]


def first_minute(page: Page) -> Film:
    """Does what README says that a newcomer does first."""
    film = Film(page)
    page.goto(f"{API}/")
    film.take("cargo local is the entire service on one machine. Its console says what to do first.", 2500)
    ask("POST", "/api/v1/tag", {"name": "Gold"})
    expect(page.get_by_role("link", name="create-tag")).to_be_visible()
    film.take("1. Call the API. The request shows at once.", 1800)
    page.get_by_role("link", name="create-tag").click()
    expect(page.get_by_text("Calls of the database")).to_be_visible()
    film.take("Every request: its calls of the database, what came of it, and what was sent.", 2600)
    page.goto(f"{API}/console/conversations?org=acme&conversation={CONVERSATION}")
    say(page, "user", "Are you open on Sunday?")
    expect(page.get_by_text("is typing")).to_be_visible()
    film.take("2. Write as a user. A runtime answers.", 1800)
    say(page, "bot", "Yes, from ten to four.")
    expect(page.locator(".typing")).to_have_count(0)
    film.take("2. Write as a user. A runtime answers.", 1500)
    page.get_by_role("button", name="Close the conversation").click()
    expect(page.locator("#chat-head").get_by_text("closed")).to_be_visible()
    page.goto(f"{API}/console/events")
    closed = page.locator("#events details").filter(has_text="conversation.closed").first
    expect(page.get_by_text("verified").first).to_be_visible()
    closed.locator("summary").click()
    film.take("A signed event tells your server that the conversation has closed.", 2600)
    page.goto(f"{API}/")
    # The test event takes the one failure at once. What a skip of time makes due would take further ones.
    ask("PUT", "/inbox/answers", {"count": 1, "status": 503})
    page.get_by_role("button", name="Send a test event").first.click()
    expect(page.get_by_role("row").filter(has_text="webhook.test").get_by_text("503").first).to_be_visible()
    film.take("3. Let your server fail.", 2200)
    skip(page, "Skip 1 hour")
    page.goto(f"{API}/console/deliveries?org=acme")
    delivery = page.locator("#deliveries tbody tr").filter(has_text="webhook.test").first
    delivery.locator("summary").first.click()
    expect(delivery.locator("li.attempt")).to_have_count(2)
    page.locator("#deliveries").scroll_into_view_if_needed()
    film.take("Skip an hour: every attempt, with its request and its answer.", 2800)
    page.goto(f"{API}/")
    expect(page.get_by_text("You have seen the essentials")).to_be_visible()
    film.take("That was the first minute.", 1800)
    return film


def say(page: Page, sender: str, text: str) -> None:
    """Writes a message in the open conversation."""
    page.locator("[name=sender_type]").select_option(sender)
    page.locator("[name=text]").fill(text)
    page.locator("[name=text]").press("Enter")
    expect(page.locator("#transcript").get_by_text(text)).to_be_visible()


def skip(page: Page, label: str) -> None:
    """Skips time."""
    page.goto(f"{API}/console/time")
    page.get_by_role("button", name=label).click()
    expect(page.locator("#notice").get_by_text("came due.")).to_be_visible()


def pictures(page: Page) -> dict[str, list[str]]:
    """Takes the pictures of the documents. Returns the text of each."""
    of_acme = "?org=acme"
    texts = {}
    for name, address in [
        ("start", "/"),
        ("requests", "/console/requests"),
        ("request", "/console/requests?operation=create-tag"),
        ("deliveries", f"/console/deliveries{of_acme}"),
        ("conversation", f"/console/conversations{of_acme}&conversation={CONVERSATION}"),
        ("records", f"/console/records/widget{of_acme}"),
        ("campaigns", f"/console/campaigns{of_acme}"),
        ("table", f"/console/table{of_acme}"),
        ("time", "/console/time"),
    ]:
        page.goto(f"{API}{address}")
        if name == "request":
            page.get_by_role("link", name="create-tag").first.click()
            expect(page.get_by_text("What came of it")).to_be_visible()
        texts[name] = text_of(page)
        (WORK / f"{name}.png").write_bytes(page.screenshot())
    return texts


def compare(known: dict, texts: dict) -> None:
    """The documents have the pictures that were taken just now: their texts and sizes are the same."""
    check(list(known) == list(texts), f"{TEXTS.name} has {list(known)}, and there are {list(texts)}: .ci/page --renew")
    for name, lines in texts.items():
        changed = "\n".join(difflib.unified_diff(known[name], lines, "documents", "console", lineterm="", n=0))
        check(not changed, f"the picture {name} is old, .ci/page --renew takes it again:\n{changed}")
    for taken in WORK.glob("*.png"):
        sizes = [Image.open(folder / taken.name).size for folder in (WORK, FOLDER)]
        check(sizes[0] == sizes[1], f"{taken.name} has another size in the documents: {sizes}")
    with Image.open(RECORDING) as recording:
        lengths = [recording.seek(place) or recording.info["duration"] for place in range(recording.n_frames)]
    check(18_000 <= sum(lengths) <= 22_000, f"the recording takes {sum(lengths)} ms")
    check(RECORDING.stat().st_size <= LARGEST, f"the recording has {RECORDING.stat().st_size} bytes")


def main() -> None:
    """Takes everything anew, and compares it with the documents or puts it there."""
    expect.set_options(timeout=PATIENCE)
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path="/usr/bin/chromium", args=CHROMIUM)
        page = browser.new_page(viewport=SIZE, color_scheme="light", reduced_motion="reduce")
        page.set_default_timeout(PATIENCE)
        film = first_minute(page)
        texts = film.texts | pictures(page)
        browser.close()
    if "--renew" in sys.argv:
        FOLDER.mkdir(exist_ok=True)
        for taken in WORK.glob("*.png"):
            shutil.copyfile(taken, FOLDER / taken.name)
        film.save()
        TEXTS.write_text(json.dumps(texts, indent=1, ensure_ascii=False) + "\n")
    compare(json.loads(TEXTS.read_text()), texts)
    print(f"   {len(texts)} pictures are those of the documents; the recording has {RECORDING.stat().st_size} bytes")


if __name__ == "__main__":
    main()
