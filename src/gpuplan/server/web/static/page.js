// The page works without this file: it makes sliders, sorting, live answers and files comfortable.
"use strict";

const QUICK_MS = 60, FULL_MS = 700;
const byId = (name) => document.getElementById(name);

// Theme: as the system says, or as the reader chose.
const themes = ["auto", "light", "dark"];
function setTheme(name) {
  const root = document.documentElement, button = byId("theme");
  if (name === "auto") root.removeAttribute("data-theme");
  else root.dataset.theme = name;
  if (button) {
    button.hidden = false;
    button.textContent = `Theme: ${name}`;
    button.setAttribute("aria-label", `Colour theme: ${name}`);
  }
  try { localStorage.setItem("theme", name); } catch { /* private windows keep nothing */ }
}
let theme = "auto";
try { theme = localStorage.getItem("theme") || "auto"; } catch { /* private windows keep nothing */ }
setTheme(themes.includes(theme) ? theme : "auto");
byId("theme")?.addEventListener("click", () => {
  theme = themes[(themes.indexOf(theme) + 1) % themes.length];
  setTheme(theme);
});

// Tables: a click on a heading sorts, another one turns it round.
function sortBy(heading) {
  const table = heading.closest("table"), place = [...heading.parentNode.children].indexOf(heading);
  const up = heading.getAttribute("aria-sort") !== "ascending";
  for (const other of heading.parentNode.children) other.removeAttribute("aria-sort");
  heading.setAttribute("aria-sort", up ? "ascending" : "descending");
  const value = (row) => row.children[place].dataset.sort ?? row.children[place].textContent.trim();
  const compare = (a, b) => {
    const x = value(a), y = value(b);
    const order = isNaN(x) || isNaN(y) ? x.localeCompare(y) : Number(x) - Number(y);
    return up ? order : -order;
  };
  const body = table.tBodies[0];
  body.append(...[...body.rows].sort(compare));
  sorted = [place, up];
}
let sorted = null;
document.addEventListener("click", (event) => {
  const heading = event.target.closest?.("table.sortable thead th");
  if (heading && event.target.closest("button")) sortBy(heading);
});
function sortAgain() {
  const heading = sorted && document.querySelectorAll("table.sortable thead th")[sorted[0]];
  if (!heading) return;
  const up = sorted[1];
  sortBy(heading);
  if (!up) sortBy(heading);
}

// Jobs that run on: follow their events, then show what they found.
function follow(shown) {
  const box = document.querySelector(".waiting[data-job]");
  if (!box) return;
  const events = new EventSource(`/v1/jobs/${box.dataset.job}/events`);
  const bar = box.querySelector("progress"), text = box.querySelector(".progress-text");
  const show = (event) => {
    const { progress, state } = JSON.parse(event.data);
    if (!progress) return;
    if (progress.usual_s) bar.value = Math.min(0.95, progress.elapsed_s / progress.usual_s);
    const ahead = state === "queued" && progress.n_ahead ? `, ${progress.n_ahead} jobs ahead` : "";
    const usual = progress.usual_s ? ` (usually ${progress.usual_s.toFixed(1)} s)` : "";
    const stage = progress.stage ? `${progress.stage[0].toUpperCase()}${progress.stage.slice(1)}` : "Computing";
    text.textContent = `${stage}: ${progress.elapsed_s.toFixed(0)} s${usual}${ahead} …`;
  };
  events.addEventListener("queued", show);
  events.addEventListener("running", show);
  for (const end of ["done", "failed", "cancelled"]) {
    events.addEventListener(end, () => { events.close(); shown(); });
  }
  window.addEventListener("pagehide", () => events.close());
}

// Sliders: the first lines follow at once, the comparison a moment later; the address keeps the state.
const details = byId("details"), live = byId("live");
let quickTimer, fullTimer, running, isAsking = false, isStale = false;

function question() {
  const found = new URLSearchParams();
  for (const field of details.elements) {
    if (!field.name || (field.type === "checkbox" && !field.checked)) continue;
    const value = field.value.trim();
    if (value && value !== field.dataset.base) found.append(field.name, value);
  }
  return found;
}

async function answer(isQuick) {
  const asked = question(), pin = byId("answer")?.dataset.pin;
  if (isQuick && (!pin || asked.has("power_kw"))) return;
  running?.abort();
  const mine = running = new AbortController();
  const begun = performance.now();
  history.replaceState(null, "", `/?${asked}`);
  if (isQuick) asked.set("pin", pin);
  live.setAttribute("aria-busy", "true");
  try {
    const response = await fetch(`/answer?${asked}`, { signal: mine.signal, headers: { Accept: "text/html" } });
    const found = new DOMParser().parseFromString(await response.text(), "text/html");
    const name = isQuick ? "summary" : "answer";
    const part = found.getElementById(name);
    if (part) byId(name).replaceWith(part);
    else if (!isQuick) byId("summary").replaceChildren(...found.querySelectorAll(".problem"));
    live.dataset[isQuick ? "quickMs" : "fullMs"] = Math.round(performance.now() - begun);
    live.dataset.serial = Number(live.dataset.serial || 0) + 1;
    if (!isQuick) { live.setAttribute("aria-busy", "false"); prepare(); sortAgain(); follow(() => answer(false)); }
  } catch (error) {
    if (error.name !== "AbortError") byId("summary").textContent = "The server did not answer: is it running?";
  }
}

// One question at a time: what moves meanwhile is asked when the last answer is there.
async function quick() {
  isStale = isAsking;
  if (isAsking) return;
  isAsking = true;
  await answer(true);
  isAsking = false;
  if (isStale) quick();
  else fullTimer = setTimeout(() => answer(false), FULL_MS);
}

function changed() {
  clearTimeout(quickTimer);
  clearTimeout(fullTimer);
  quickTimer = setTimeout(quick, QUICK_MS);
}

// Long tables begin with their best rows.
const FIRST_ROWS = 10;
let isWhole = false;
function shorten() {
  const table = document.querySelector("table.sortable"), button = byId("all-rows");
  if (!table || !button || table.tBodies[0].rows.length <= FIRST_ROWS) return;
  const show = () => {
    table.classList.toggle("short", !isWhole);
    button.textContent = isWhole ? `Show the first ${FIRST_ROWS}` : `Show all ${table.tBodies[0].rows.length}`;
    button.setAttribute("aria-expanded", String(isWhole));
  };
  button.hidden = false;
  button.addEventListener("click", () => { isWhole = !isWhole; show(); });
  show();
}

function prepare() {
  shorten();
  for (const name of ["copy", "print"]) if (byId(name)) byId(name).hidden = false;
  byId("print")?.addEventListener("click", () => window.print());
  byId("copy")?.addEventListener("click", async (event) => {
    try { await navigator.clipboard.writeText(location.href); event.target.textContent = "Copied"; }
    catch { event.target.textContent = "Copy it from the address bar"; }
  });
}

if (details) {
  for (const range of details.querySelectorAll("input[type=range]")) {
    const number = byId(range.dataset.for);
    range.hidden = false;
    range.addEventListener("input", () => { number.value = range.value; changed(); });
    number.addEventListener("input", () => { range.value = number.value || range.max; changed(); });
  }
  for (const field of details.querySelectorAll("select, input[type=checkbox]")) field.addEventListener("change", changed);
  details.addEventListener("submit", (event) => { event.preventDefault(); answer(false); });
  if (matchMedia("(max-width: 60rem)").matches) details.querySelector("details").open = false;
}
prepare();
follow(() => location.reload());

// Files: read here, sent as text.
const file = byId("file");
if (file) {
  file.hidden = false;
  document.querySelector("label[for=file]").hidden = false;
  file.addEventListener("change", async () => {
    const [chosen] = file.files;
    if (!chosen) return;
    if (chosen.size > 8e6) { file.setCustomValidity("The file is longer than 8 MB."); file.reportValidity(); return; }
    file.setCustomValidity("");
    byId("text").value = await chosen.text();
  });
}
