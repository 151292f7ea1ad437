// Keeps the page up to date: its live sections are fetched again when something has changed. Sends what its forms say. The server escapes all that it writes.
const notice = document.querySelector("#notice");
const shown = new Map();
let fetching = false;
let changed = false;
let hides = 0;

function show(message) {
  notice.textContent = message;
  clearTimeout(hides);
  hides = setTimeout(() => { notice.textContent = ""; }, 8000);
}

// The clock of the server, which may be ahead of this machine.
let ahead = 0;
const units = [[60, 1, "s"], [3600, 60, "min"], [86400, 3600, "h"], [2592000, 86400, "d"]];

function relate(now) {
  if (now) ahead = Date.parse(now) - Date.now();
  for (const time of document.querySelectorAll("time[datetime]")) {
    const seconds = Math.round((Date.now() + ahead - Date.parse(time.dateTime)) / 1000);
    const unit = units.find(([most]) => Math.abs(seconds) < most);
    if (!unit) continue;
    const count = `${Math.floor(Math.abs(seconds) / unit[1])} ${unit[2]}`;
    time.textContent = Math.abs(seconds) < 3 ? "now" : seconds < 0 ? `in ${count}` : `${count} ago`;
  }
}

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
      relate(page.documentElement.dataset.now);
      // Many changes at once are fetched together.
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
  } finally {
    // Also where the server has gone: the next change comes when it is back.
    fetching = false;
  }
}

// What a link leads to is open.
function reveal() {
  const aim = document.getElementById(location.hash.slice(1));
  if (aim?.tagName === "DETAILS") aim.open = true;
}

reveal();
addEventListener("hashchange", reveal);
relate(document.documentElement.dataset.now);
setInterval(relate, 5000);
new EventSource("/console/changes").onmessage = update;

function isUnchanged(input) {
  if (input.type === "checkbox") return input.checked === input.defaultChecked;
  if (input.tagName !== "SELECT") return input.value === input.defaultValue;
  const before = [...input.options].find((option) => option.defaultSelected) ?? input.options[0];
  return input.value === (before?.value ?? "");
}

// The issues of an answer stand at their fields, and an answer without another page below the form.
function showAnswer(form, says) {
  for (const input of form.elements) {
    const issues = (says.issues ?? []).filter((issue) => issue.field === input.name).map((issue) => issue.says);
    const place = input.id && document.getElementById(`${input.id}-issue`);
    if (!place) continue;
    place.textContent = issues.join(" ");
    if (issues.length > 0) input.setAttribute("aria-invalid", "true");
    else input.removeAttribute("aria-invalid");
  }
  form.querySelector("[aria-invalid]")?.focus();
  const shownAnswer = form.querySelector("pre.answer");
  if (!shownAnswer) return;
  shownAnswer.hidden = !says.answer;
  shownAnswer.textContent = says.answer ?? "";
}

document.addEventListener("submit", async (event) => {
  const form = event.target;
  // Any other form leads to a page, and needs no script.
  if (!form.dataset.method) return;
  event.preventDefault();
  if (form.dataset.confirm && !confirm(form.dataset.confirm)) return;
  const fields = {};
  for (const input of form.elements) {
    // What is left empty is not said, and of a record that is changed only what is new.
    if (!input.name || ("changes" in form.dataset ? input.type !== "hidden" && isUnchanged(input) : input.value === "")) continue;
    if (input.type === "checkbox") fields[input.name] = input.checked;
    else if (input.value === "") fields[input.name] = null;
    else fields[input.name] = input.type === "number" || "number" in input.dataset ? Number(input.value) : input.value;
  }
  notice.textContent = "";
  const answer = await fetch(form.getAttribute("action"), { method: form.dataset.method, body: JSON.stringify(fields) });
  const says = await answer.json();
  showAnswer(form, says);
  if (says.to) {
    location.assign(says.to);
    return;
  }
  show(says.error ?? says.message ?? form.dataset.done);
  if (!says.error) form.reset();
  else if (says.issues?.length) show(`${says.error} ${says.issues.length} of the fields are not accepted.`);
});

// A filter applies as soon as it is chosen.
document.addEventListener("change", (event) => {
  if (event.target.form?.classList.contains("filters")) event.target.form.requestSubmit();
});

document.addEventListener("click", async (event) => {
  const copied = event.target.closest("a.copy, button[data-copy]");
  // Without a clipboard, as on another machine's page, a link leads to the text.
  if (!copied || !navigator.clipboard) return;
  event.preventDefault();
  const text = copied.href ? await (await fetch(copied.href)).text() : copied.dataset.copy || copied.parentElement.querySelector("pre").textContent;
  await navigator.clipboard.writeText(text);
  show("Copied.");
});
