"""Reads the site of the documents in a browser: it calls no other host, fits a telephone, and its search finds a word.

`.ci/site` has made the site in `target/site`. Each page of the table of contents is opened, in light and in dark
colours, and looked at by axe.
"""

import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urljoin

from playwright.sync_api import Browser, Page, expect, sync_playwright

from docs import AXE, CHROMIUM, PATIENCE, ROOT, STILL, check

SITE = ROOT / "target/site"
# A page with a diagram, and a word that is in the documents.
DIAGRAM, WORD = "docs/STATES.html", "idempotency"


class Files(SimpleHTTPRequestHandler):
    """Serves the site."""

    def log_message(self, *_: object) -> None:
        """Nothing is logged."""


class Server(ThreadingHTTPServer):
    """Reports errors, but not that the browser has left a page before all of it had arrived."""

    def handle_error(self, request: object, client_address: object) -> None:
        """Prints the error that is being handled."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


def open_page(page: Page, address: str, width: int) -> list[str]:
    """Opens a page, and returns what is wrong with it."""
    page.goto(address)
    page.add_script_tag(path=AXE)
    page.evaluate(STILL)
    wide = page.evaluate("document.documentElement.scrollWidth")
    found = page.evaluate("axe.run('.vp-doc', {resultTypes: ['violations'], runOnly: ['wcag2a', 'wcag2aa']})")[
        "violations"
    ]
    wrong = [f"{rule['id']}: {rule['nodes'][0]['html'][:200]}" for rule in found]
    return wrong + ([f"{wide} pixels wide"] if wide > width else [])


def searches(page: Page, address: str) -> None:
    """The search leads to a page with the word."""
    page.goto(address)
    expect(page.locator(".vp-doc")).not_to_contain_text(WORD, ignore_case=True)
    # The page takes keys when its program has been loaded.
    page.wait_for_load_state("networkidle")
    page.keyboard.press("Control+k")
    page.locator(".VPLocalSearchBox input").fill(WORD)
    first = page.locator(".VPLocalSearchBox .result").first
    first.wait_for()
    first.click()
    page.wait_for_url(f"{address}docs/**")
    # The address changes first, and the page when its program has been loaded.
    expect(page.locator(".vp-doc")).to_contain_text(WORD, ignore_case=True)


def visit(browser: Browser, address: str) -> None:
    """Opens all pages, at two widths and in two colours."""
    for width, colours in ((1280, "light"), (380, "dark")):
        context = browser.new_context(color_scheme=colours, viewport={"width": width, "height": 900})
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        asked: list[str] = []
        errors: list[str] = []
        page.on("request", lambda request, asked=asked: asked.append(request.url))
        page.on("pageerror", lambda error, errors=errors: errors.append(str(error)))
        page.on("console", lambda line, errors=errors: line.type == "error" and errors.append(line.text))
        page.goto(f"{address}docs/")
        links = page.locator(".vp-doc a").evaluate_all("links => links.map(link => link.getAttribute('href'))")
        pages = sorted({urljoin(f"{address}docs/", link.split("#")[0]) for link in links if ".txt" not in link})
        check(len(pages) > 20, f"the table of contents has {len(pages)} pages")
        wrong = {opened: found for opened in pages if (found := open_page(page, opened, width))}
        check(not wrong, f"{colours}: {wrong}")
        page.goto(address + DIAGRAM)
        shown = page.locator(".vp-doc img:visible").count()
        check(shown == 2, f"{colours}: {shown} diagrams are shown")
        page.screenshot(path=ROOT / f"target/site-{colours}.png")
        searches(page, address)
        others = [url for url in asked if not url.startswith((address, "data:", "blob:"))]
        check(not others and not errors, f"other hosts: {others}, errors: {errors}")
        print(f"   {len(pages)} pages in {colours} colours, {width} pixels wide")


def main() -> None:
    """Serves the site, and starts the browser."""
    expect.set_options(timeout=PATIENCE)
    server = Server(("127.0.0.1", 0), partial(Files, directory=SITE))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path="/usr/bin/chromium", args=CHROMIUM)
        visit(browser, f"http://127.0.0.1:{server.server_port}/")
        browser.close()


if __name__ == "__main__":
    main()
