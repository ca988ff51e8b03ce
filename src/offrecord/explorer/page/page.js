// The page: asks, and shows what is answered. All numbers and pictures come from the API.
"use strict";

const FIELDS = ["alpha", "beta", "n", "private", "epsilon", "mechanism", "about", "seed"];
const TEXTS = new Set(["private", "mechanism"]); // all others are numbers
const SLIDERS = ["alpha", "beta", "n", "private", "epsilon"];
const LARGEST_MODEL = 1 << 20;
const QUIET = 300; // milliseconds without a move before curves are asked for

// Where the sliders of probabilities stop: small ones count most.
const DIGITS = [1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8];
const PROBABILITIES = [
  ...[0.001, 0.01].flatMap((power) => DIGITS.map((digit) => Number((digit * power).toPrecision(2)))),
  ...Array.from({ length: 46 }, (_, at) => Number((0.1 + 0.02 * at).toFixed(2))),
];
const STOPS = { alpha: PROBABILITIES, beta: PROBABILITIES };

const $ = (id) => document.getElementById(id);
const MECHANISMS = [...$("mechanism").options].map((one) => one.value);

let model = null; // the content of a model file
let move = 0; // counts what a person changed

// ---- state

/** A field as the API takes it; what is no number is left to the API to refuse. */
function written(name) {
  const value = $(name).value.trim();
  return TEXTS.has(name) || value === "" || Number.isNaN(Number(value)) ? value : Number(value);
}

function state() {
  const fields = Object.fromEntries(FIELDS.map((name) => [name, written(name)]));
  return model === null ? fields : { ...fields, model };
}

function keepInAddress() {
  const query = new URLSearchParams(FIELDS.map((name) => [name, $(name).value.trim()]));
  history.replaceState(null, "", `?${query}`);
}

function takeFromAddress() {
  const query = new URLSearchParams(location.search);
  for (const name of FIELDS) if (query.has(name)) put(name, query.get(name));
}

/** Set a field, its slider with it. What a list does not offer is added, for the API to refuse. */
function put(name, value) {
  const field = $(name);
  if (field.tagName === "SELECT" && ![...field.options].some((one) => one.value === value)) {
    field.add(new Option(value, value));
  }
  field.value = value;
  slide(name);
}

function slide(name) {
  if (!SLIDERS.includes(name)) return;
  if (name === "n") $("private-slider").max = Number($("n").value) || 1;
  const value = name === "private" ? $(name).value.split(/[,-]/)[0] : $(name).value;
  const slider = $(`${name}-slider`);
  const near = (best, one, at, stops) => (Math.abs(one - value) < Math.abs(stops[best] - value) ? at : best);
  slider.value = name in STOPS ? STOPS[name].reduce(near, 0) : value;
  slider.setAttribute("aria-valuetext", value);
  if (name === "n") slide("private");
}

function complain(errors) {
  for (const place of document.querySelectorAll(".wrong")) {
    const name = place.id.replace(/-wrong$/, "");
    const known = (one) => (one.field !== null && $(`${one.field}-wrong`) ? one.field : "all");
    const said = errors.filter((one) => known(one) === name).map((one) => one.message);
    if (place.textContent !== said.join("; ")) place.textContent = said.join("; ");
    if (FIELDS.includes(name)) $(name).setAttribute("aria-invalid", String(said.length > 0));
  }
}

// ---- asking

async function ask(path, body) {
  try {
    const response = await fetch(`/api/${path}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    return await response.json();
  } catch {
    return { errors: [{ field: null, message: "the explorer does not answer: has it been stopped?" }] };
  }
}

let asking = false;
let quiet = 0;

/** Something changed: ask for it, and only for the latest state while an answer is under way. */
async function changed() {
  move += 1;
  document.body.dataset.settled = "false";
  clearTimeout(quiet);
  if (asking) return;
  asking = true;
  let done = 0;
  let found = null;
  setBusy("release", true);
  while (done !== move) {
    done = move;
    keepInAddress();
    found = await ask("answer", state());
    if (done === move) show(found);
  }
  setBusy("release", false);
  asking = false;
  document.body.dataset.settled = "true";
  if (!found.errors) quiet = setTimeout(() => drawCurves(move), QUIET);
}

function show(found) {
  complain(found.errors ?? []);
  if (!found.errors) draw(found);
}

/** One mechanism more with each request, so that a move of a slider ends it soon. */
async function drawCurves(turn) {
  const key = JSON.stringify({ ...state(), about: 1, seed: 1 });
  if (document.body.dataset.curves === key) return;
  setBusy("utility-figure", true);
  for (let count = 1; count <= MECHANISMS.length && turn === move; count += 1) {
    const mechanisms = MECHANISMS.slice(-count);
    const found = await ask("curves", { ...state(), mechanisms });
    if (turn !== move || found.errors) break;
    picture("utility", found.picture);
    text("utility-why", Object.entries(found.why).map(([name, why]) => `${name}: ${why}`).join("; "));
    if (count === MECHANISMS.length) document.body.dataset.curves = key;
  }
  setBusy("utility-figure", false);
}

// ---- showing

function setBusy(id, busy) {
  $(id).querySelector(".busy").hidden = !busy;
}

const percent = (share) => `${(100 * share).toFixed(2)} %`;
const short = (number) => (number === "inf" ? "∞" : Number(number.toPrecision(4)).toString());
const factor = (ratio) => (ratio === "inf" ? "without bound" : `by a factor of ${short(Math.exp(ratio))}`);

function text(id, said) {
  if ($(id).textContent !== said) $(id).textContent = said;
}

/** The server's own drawing; labels in it are escaped, and no script of it runs. */
function picture(name, { svg }) {
  $(`${name}-picture`).innerHTML = svg;
}

function draw(found) {
  text("question", found.question);
  text("mechanism-hint", $("mechanism").selectedOptions[0]?.dataset.said ?? "");
  $("about-field").hidden = found.secrets.length < 2;
  $("about").replaceChildren(...found.secrets.map((name, at) => new Option(name, String(at + 1))));
  $("about").value = String(found.about);
  text("utility", percent(found.utility));
  text("leakage", short(found.leakage));
  text("leakage-of", `of ε = ${short(found.epsilon)}${found.within ? "" : ": NOT within ε"}`);
  text("factor", found.leakage === "inf" ? "∞" : short(Math.exp(found.leakage)));
  for (const name of ["influence", "profile"]) picture(name, found[name]);
  for (const [name, content] of Object.entries(found.copies)) text(`copy-${name}`, content);
  drawSample(found.sample);
}

function drawSample(sample) {
  $("strip").replaceChildren(...sample.records.map(cell));
  const outside = Number($("n").value) - sample.records.length;
  text("beyond", `${sample.redacted} of ${$("n").value} are withheld here${outside > 0 ? `; ${outside} further away are not shown` : ""}.`);
  $("beliefs").replaceChildren(...sample.beliefs.map(belief));
  const moved = sample.ratio === null ? "" : `This release moves the odds ${factor(sample.ratio)}.`;
  text("words", moved);
  clearTimeout(draw.timer);
  draw.timer = setTimeout(() => text("status", `${$("utility").textContent} released on average. ${moved}`), 700);
}

function element(name, content, kind) {
  const made = document.createElement(name);
  if (content !== undefined) made.textContent = content;
  if (kind) made.className = kind;
  return made;
}

function cell(one) {
  const made = element("li");
  const gone = !one.released;
  const kind = one.private ? "secret" : gone ? "gone" : "out";
  const words = { secret: `private, was ${one.value}`, gone: `withheld, was ${one.value}`, out: one.value };
  const seen = { secret: "?", gone: "⊥", out: one.value }[kind];
  const parts = [element("span", one.record, "at"), element("span", seen, `cell ${kind}${seen.length > 3 ? " long" : ""}`), element("span", gone ? one.value : "", "was")];
  for (const part of parts) part.setAttribute("aria-hidden", "true");
  made.append(element("span", `record ${one.record}: ${words[kind]}`, "unseen"), ...parts);
  return made;
}

function belief(one) {
  const made = element("div", undefined, "belief");
  const bars = element("div", undefined, "bars");
  for (const [said, share] of [["before", one.prior], ["after", one.posterior]]) {
    const bar = element("div", undefined, `bar ${said}`);
    const length = element("i");
    length.style.width = `${100 * share}%`;
    bar.append(length, element("span", `${said}: ${percent(share)}`));
    bars.append(bar);
  }
  made.append(element("b", `${one.value}${one.was ? " ✓" : ""}`), bars);
  if (one.was) made.title = "✓: the value that it has in this sample";
  return made;
}

// ---- a model file

function useModel(content) {
  model = content;
  for (const name of ["alpha", "beta"]) $(name).disabled = $(`${name}-slider`).disabled = content !== null;
  $("model-remove").hidden = content === null;
  if (content === null) $("model-file").value = "";
  changed();
}

async function takeFile(file) {
  if (!file) return;
  if (file.size > LARGEST_MODEL) {
    complain([{ field: "model", message: `${file.name} must have at most ${LARGEST_MODEL} bytes, got ${file.size}` }]);
    return;
  }
  try {
    useModel(JSON.parse(await file.text()));
  } catch {
    complain([{ field: "model", message: `${file.name} is not JSON, or is truncated` }]);
  }
}

// ---- beginning

for (const name of Object.keys(STOPS)) $(`${name}-slider`).max = STOPS[name].length - 1;
takeFromAddress();
for (const name of SLIDERS) {
  slide(name);
  $(`${name}-slider`).addEventListener("input", () => {
    const at = $(`${name}-slider`).value;
    $(name).value = name in STOPS ? STOPS[name][at] : at;
    slide(name);
    changed();
  });
}
for (const name of FIELDS) {
  $(name).addEventListener("input", () => {
    slide(name);
    changed();
  });
}
$("controls").addEventListener("submit", (event) => event.preventDefault());
$("another").addEventListener("click", () => {
  $("seed").value = String((Number($("seed").value) || 0) + 1);
  changed();
});
for (const button of document.querySelectorAll("[data-copy]")) {
  button.addEventListener("click", async () => {
    const name = button.textContent;
    await navigator.clipboard.writeText($(`copy-${button.dataset.copy}`).textContent);
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = name; }, 1500);
  });
}
$("model-file").addEventListener("change", (event) => takeFile(event.target.files[0]));
$("model-remove").addEventListener("click", () => useModel(null));
$("chain").addEventListener("dragover", (event) => event.preventDefault());
$("chain").addEventListener("drop", (event) => {
  event.preventDefault();
  takeFile(event.dataTransfer.files[0]);
});
window.addEventListener("popstate", () => { takeFromAddress(); changed(); });
changed();
