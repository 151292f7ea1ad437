// Keeps the page up to date: its live sections are fetched again when something has changed. Sends what its forms say. The server escapes all that it writes.
const told = document.querySelector("#told");
const shown = new Map();
let fetching = false;
let changed = false;

function replace(section, html) {
  const open = new Set([...section.querySelectorAll("details[open]")].map((details) => details.id));
  const active = document.activeElement;
  const focused = section.contains(active) && active !== section ? [active.closest("[id]").id, active.tagName] : null;
  section.innerHTML = html;
  for (const details of section.querySelectorAll("details")) details.open = open.has(details.id);
  // What had the focus has it again.
  if (focused) document.getElementById(focused[0])?.querySelector(focused[1])?.focus();
}

async function update() {
  changed = true;
  if (fetching) return;
  fetching = true;
  try {
    while (changed) {
      changed = false;
      const answer = await fetch(location.href);
      if (!answer.ok) continue;
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      for (const section of document.querySelectorAll(".live")) {
        const html = page.getElementById(section.id)?.innerHTML;
        if (html === undefined || html === shown.get(section.id)) continue;
        shown.set(section.id, html);
        replace(section, html);
      }
    }
  } finally {
    // Also where the server has gone: the next change comes when it is back.
    fetching = false;
  }
}

new EventSource("/console/changes").onmessage = update;

document.addEventListener("submit", async (event) => {
  const form = event.target;
  event.preventDefault();
  const fields = {};
  for (const input of form.elements) {
    // What is left empty is not said.
    if (!input.name || input.value === "") continue;
    fields[input.name] = input.type === "number" || "number" in input.dataset ? Number(input.value) : input.value;
  }
  told.textContent = "";
  const answer = await fetch(form.getAttribute("action"), { method: form.dataset.method, body: JSON.stringify(fields) });
  const says = await answer.json();
  told.textContent = says.error ?? says.told ?? form.dataset.done;
  if (!says.error) form.reset();
});

document.addEventListener("click", async (event) => {
  const link = event.target.closest("a.copy");
  // Without a clipboard, as on another machine's page, the link leads to the text.
  if (!link || !navigator.clipboard) return;
  event.preventDefault();
  await navigator.clipboard.writeText(await (await fetch(link.href)).text());
  told.textContent = "Copied.";
});
