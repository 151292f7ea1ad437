// Keeps the console up to date: each section is fetched again when something has changed. The server escapes all that it writes.
const sections = document.querySelectorAll("[data-from]");
let fetching = false;
let changed = false;

async function update() {
  changed = true;
  if (fetching) return;
  fetching = true;
  try {
    while (changed) {
      changed = false;
      for (const section of sections) {
        const answer = await fetch(section.dataset.from);
        if (!answer.ok) continue;
        const text = await answer.text();
        const open = new Set([...section.querySelectorAll("details[open]")].map((details) => details.id));
        section.innerHTML = text;
        for (const details of section.querySelectorAll("details")) details.open = open.has(details.id);
      }
    }
  } finally {
    // Also where the server has gone: the next change comes when it is back.
    fetching = false;
  }
}

new EventSource("/console/changes").onmessage = update;

document.querySelector("#fail").addEventListener("submit", async (event) => {
  event.preventDefault();
  const form = new FormData(event.target);
  const plan = { count: Number(form.get("count")), status: Number(form.get("status")) };
  const answer = await fetch("/inbox/answers", { method: "PUT", body: JSON.stringify(plan) });
  document.querySelector("#told").textContent = answer.ok ? `The next ${plan.count} are answered ${plan.status}.` : (await answer.json()).error;
});
