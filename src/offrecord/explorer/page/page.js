// The page: asks, and shows what is answered. All numbers come from the API; nothing is computed
// here but where things stand on the screen.
"use strict";

const FIELDS = ["alpha", "beta", "n", "private", "epsilon", "mechanism", "about", "seed"];
const TEXTS = new Set(["private", "mechanism"]); // all others are numbers
const SLIDERS = ["alpha", "beta", "n", "private", "epsilon"];
const LARGEST_MODEL = 1 << 20;
const LARGEST_ADDRESS = 1 << 16; // of a model that the address holds too
const QUIET = 250; // milliseconds without a move before what takes longer is asked for
const SOON = 120; // the same where the chosen mechanism itself is still to come
const ONE_BY_ONE = "owner"; // its points take long

/** Where sliders stop that are not even: small probabilities and short tables count most. */
const DIGITS = [1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8];
const from = (first, last, step) => Array.from({ length: Math.round((last - first) / step) + 1 }, (_, at) => Number((first + at * step).toFixed(4)));
const PROBABILITIES = [
  ...[0.001, 0.01].flatMap((power) => DIGITS.map((digit) => Number((digit * power).toPrecision(2)))),
  ...from(0.1, 1, 0.02),
];
const STOPS = {
  alpha: PROBABILITIES,
  beta: PROBABILITIES,
  n: [...from(2, 30, 1), ...from(35, 100, 5), ...from(110, 200, 10), ...from(220, 500, 20), ...from(550, 1000, 50)],
};

const $ = (id) => document.getElementById(id);
const DEFAULTS = Object.fromEntries(FIELDS.map((name) => [name, $(name).value]));
const MECHANISMS = [...$("mechanism").options].map((one) => one.value);

let model = null; // the content of a model file
let modelName = "";
let good = { ...DEFAULTS }; // the last state that was answered
let goodModel = null;
let move = 0; // counts what a person changed
let shown = { regions: null, policy: null };
let curves = { key: "", points: new Map(), left: false };

// ---- state

const state = () => Object.fromEntries(FIELDS.map((name) => [name, $(name).value.trim()]));

/** A field as the API takes it; what is no number is left to the API to refuse. */
function written(name, value) {
  return TEXTS.has(name) || value === "" || Number.isNaN(Number(value)) ? value : Number(value);
}

const question = (from, content) => ({
  ...Object.fromEntries(FIELDS.map((name) => [name, written(name, from[name])])),
  ...(content === null ? {} : { model: content }),
});

function keepInAddress() {
  const now = state();
  const query = new URLSearchParams(FIELDS.map((name) => [name, now[name]]));
  let rest = "";
  if (model !== null) {
    const content = JSON.stringify(model);
    const fits = content.length <= LARGEST_ADDRESS;
    rest = fits ? "#" + new URLSearchParams({ file: modelName, model: content }) : "";
    $("model-hint").textContent = fits
      ? `${modelName}: it stays in this page and its address.`
      : `${modelName}: it stays in this page, too large for its address. Load it again after a reload.`;
  }
  history.replaceState(null, "", `?${query}${rest}`);
}

function takeFromAddress() {
  const query = new URLSearchParams(location.search);
  for (const name of FIELDS) {
    if (query.has(name)) put(name, query.get(name));
  }
  const rest = new URLSearchParams(location.hash.slice(1));
  if (rest.has("model")) readModel(rest.get("model"), rest.get("file") || "model.json");
}

/** Set a field, its slider with it. What a list does not offer is shown as what is wrong. */
function put(name, value) {
  const field = $(name);
  if (field.tagName === "SELECT" && ![...field.options].some((one) => one.value === value)) {
    field.add(new Option(value, value));
  }
  field.value = value;
  slide(name);
}

const nearest = (stops, value) => stops.reduce((best, one, at) => (Math.abs(one - value) < Math.abs(stops[best] - value) ? at : best), 0);

function slide(name) {
  if (!SLIDERS.includes(name)) return;
  if (name === "n") $("private-slider").max = written("n", $("n").value) || 1;
  const value = name === "private" ? $(name).value.split(/[,-]/)[0] : $(name).value;
  const slider = $(`${name}-slider`);
  slider.value = name in STOPS ? nearest(STOPS[name], Number(value)) : value;
  slider.setAttribute("aria-valuetext", value);
  if (name === "n") slide("private");
}

// ---- what is wrong

function complain(errors) {
  for (const place of document.querySelectorAll(".wrong")) {
    const name = place.id.replace(/-wrong$/, "");
    const said = errors.filter((one) => (one.field ?? "all") === name).map((one) => one.message);
    const text = said.join("; ");
    if (place.textContent !== text) place.textContent = text;
    if (FIELDS.includes(name)) $(name).setAttribute("aria-invalid", String(said.length > 0));
  }
}

// ---- asking

async function ask(path, body) {
  let response;
  try {
    response = await fetch(`/api/${path}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
  } catch {
    return { errors: [{ field: null, message: "the explorer does not answer: has it been stopped?" }] };
  }
  return response.json();
}

let asking = false;
let slowTimer = 0;

/** Something changed: ask for it, the latest state alone while an answer is under way. */
async function changed() {
  move += 1;
  document.body.dataset.settled = "false";
  clearTimeout(slowTimer);
  if (asking) return;
  asking = true;
  let done = 0;
  while (done !== move) {
    done = move;
    keepInAddress();
    await answered(done);
  }
  asking = false;
  const pending = document.body.dataset.pending === "true";
  document.body.dataset.settled = String(!pending);
  slowTimer = setTimeout(() => further(move), pending ? SOON : QUIET);
}

async function answered(turn) {
  const asked = state();
  let errors = await attempt(asked, model, turn);
  if (errors.length && shown.regions === null) {
    complain(errors);
    // nothing to keep yet: the defaults stand in for what is wrong
    const wrong = errors.map((one) => one.field);
    const instead = wrong.filter((name) => name in DEFAULTS).map((name) => [name, DEFAULTS[name]]);
    const content = wrong.includes("model") ? null : model;
    errors = errors.concat(await attempt({ ...asked, ...Object.fromEntries(instead) }, content, turn));
  }
  if (errors.some((one) => one.field === "model")) dropModel(errors);
  complain(errors);
}

/** All of a state that a policy is made for. */
const designed = (from) => JSON.stringify(FIELDS.filter((name) => !["about", "seed"].includes(name)).map((name) => from[name]));
let finished = ""; // the one whose best policy is shown

const isSlow = (body) => "model" in body || body.private.includes(",");
const PATIENCE = 50; // milliseconds that pictures of the model wait for those of the mechanism

/** Ask for a state and show it; what is wrong with it. */
async function attempt(from, content, turn) {
  const body = question(from, content);
  const slow = isSlow(body);
  const first = ask("regions", body); // they share a process: these are there at once
  const soon = designed(from) !== finished; // another sample of what is there needs no first answer
  const coming = slow ? null : ask("policy", { ...body, soon });
  const regions = await first;
  if (regions.errors) return regions.errors;
  let policy = slow ? null : await Promise.race([coming, later(PATIENCE)]);
  if (policy?.errors) return policy.errors;
  good = from;
  goodModel = content;
  shown.regions = regions;
  drawRegions(regions);
  await showPolicy(policy, turn);
  if (slow || policy !== null) return [];
  policy = await coming;
  if (policy.errors) {
    for (const id of ["release", "profile-figure"]) setBusy(id, false);
    return policy.errors;
  }
  await showPolicy(policy, turn);
  return [];
}

const later = (time) => new Promise((resolve) => setTimeout(() => resolve(null), time));

/** Show what a mechanism does, or that it, or a better one, is still being computed. */
async function showPolicy(policy, turn) {
  const final = policy?.final ?? false;
  markOld(policy === null, !final);
  if (policy !== null) {
    shown.policy = policy;
    finished = final ? designed(good) : "";
    drawPolicy(policy);
  }
  await redraw();
  document.body.dataset.drawn = String(turn);
  document.body.dataset.pending = String(!final);
  document.dispatchEvent(new CustomEvent("drawn", { detail: { turn, whole: policy !== null } }));
}

// ---- what takes longer

/** All mechanisms, then their curves, until somebody moves something. */
async function further(turn) {
  const body = question(good, goodModel);
  const stale = () => turn !== move;
  const rows = new Map([...$("mechanisms").tBodies[0].rows].map((row) => [row.dataset.mechanism, row]));
  for (const row of rows.values()) row.classList.add("old");
  $("compare-busy").hidden = false;
  const served = [];
  const chosenFirst = [body.mechanism, ...MECHANISMS.filter((one) => one !== body.mechanism)];
  for (const mechanism of chosenFirst) {
    if (stale()) return;
    const found = await ask("policy", { ...body, mechanism });
    if (stale()) return;
    fillRow(rows.get(mechanism), found);
    if (!found.errors) served.push(mechanism);
    if (mechanism === body.mechanism && document.body.dataset.pending === "true") {
      if (found.errors) {
        complain(found.errors.map((one) => ({ ...one, field: one.field ?? "mechanism" })));
        for (const id of ["release", "profile-figure"]) setBusy(id, false);
        if (shown.policy?.final === false) text("bound", "a first answer: the best took too long");
        document.body.dataset.pending = "false";
      } else {
        await showPolicy(found, turn);
      }
      document.body.dataset.settled = String(!stale());
    }
  }
  $("compare-busy").hidden = true;
  document.body.dataset.compared = String(turn);
  await furtherCurves(turn, body, MECHANISMS.filter((one) => served.includes(one)));
}

async function furtherCurves(turn, body, mechanisms) {
  const key = JSON.stringify([body.alpha, body.beta, body.n, body.private, goodModel]);
  const budgets = shown.regions.budgets;
  if (curves.key !== key) curves = { key, points: new Map(), left: false };
  const known = (mechanism, epsilon) => curves.points.has(`${mechanism} ${epsilon}`);
  setBusy("utility-figure", true);
  for (const batch of budgets) {
    for (const mechanism of mechanisms) {
      const missing = batch.filter((epsilon) => !known(mechanism, epsilon));
      const size = mechanism === ONE_BY_ONE ? 1 : missing.length;
      for (let at = 0; at < missing.length; at += size) {
        const found = await ask("curve", { ...body, mechanism, epsilons: missing.slice(at, at + size) });
        if (turn !== move) return;
        for (const point of found.points ?? []) {
          curves.points.set(`${mechanism} ${point.epsilon}`, point);
        }
        if (found.errors) at = missing.length;
      }
    }
    drawCurves();
    await redraw();
  }
  setBusy("utility-figure", false);
  document.body.dataset.curves = String(turn);
}

// ---- showing

function setBusy(id, busy, said = "computing …") {
  const mark = $(id).querySelector(".busy");
  mark.hidden = !busy;
  mark.textContent = said;
}

function markOld(old, busy) {
  for (const id of ["release", "profile-figure"]) {
    setBusy(id, busy, old ? "computing …" : "a first answer, refining …");
    $(id).querySelector(".halves, .picture").classList.toggle("old", old);
  }
  $("numbers").classList.toggle("old", old);
}

const percent = (share, digits = 2) => `${(100 * share).toFixed(digits)} %`;
const short = (number) => (number === "inf" ? "∞" : Number(number.toPrecision(4)).toString());

function text(id, said) {
  const place = $(id);
  if (place.textContent !== said) place.textContent = said;
}

function drawRegions(found) {
  text("question", found.question);
  text("mechanism-hint", $("mechanism").selectedOptions[0]?.dataset.said ?? "");
  const notes = $("notes");
  notes.hidden = found.notes.length === 0;
  notes.replaceChildren(...found.notes.map((note) => element("li", note)));
  const about = $("about");
  $("about-field").hidden = found.secrets.length < 2;
  const names = found.secrets.join("\n");
  if (about.dataset.names !== names) {
    about.dataset.names = names;
    about.replaceChildren(...found.secrets.map((name, at) => new Option(name, String(at + 1))));
  }
  about.value = String(found.about);
  for (const [name, content] of Object.entries(found.copies)) text(`copy-${name}`, content);
  fillNumbers("influence-numbers", () => [
    ["record", "value", "influence"],
    ...found.influence.map((one) => [one.record, one.value, short(one.influence)]),
  ]);
  rows("influence", { influence: found.influence, regions: found.regions, threshold: found.threshold });
}

function drawPolicy(found) {
  text("utility", percent(found.utility));
  $("utility").dataset.value = found.utility;
  text("bound", !found.final ? "or more: refining …"
    : found.utility_bound === null ? "" : `no local mechanism more than ${percent(found.utility_bound)}`);
  text("leakage-what", found.leakage_is_exact ? "exact leakage" : "leakage, at most");
  text("leakage", short(found.leakage));
  $("leakage").dataset.value = found.leakage;
  text("leakage-of", `of ε = ${short(found.epsilon)}${found.within ? "" : ": not within ε"}`);
  text("worst", found.worst_output);
  text("profile-words", found.kind === "owner"
    ? "It walks away from the private record and begins to release at a random distance: how likely each record is withheld, and how likely releasing begins there, far from other secrets and the ends."
    : "With which probability each record is withheld, by its value.");
  drawSample(found.sample, found.epsilon);
  fillNumbers("profile-numbers", () => [
    ["record", "of", "probability"],
    ...found.profile.map((one) => [one.record, one.series, short(one.probability)]),
  ]);
  rows("profile", { profile: found.profile });
  const chosen = [{ epsilon: Number(good.epsilon), mechanism: found.mechanism, utility: found.utility }];
  rows("utility", { chosen });
  say(`${found.mechanism} releases ${percent(found.utility)} of the records on average; leakage ${short(found.leakage)} of ε = ${short(found.epsilon)}. ${found.sample.words}`);
}

function drawSample(sample, epsilon) {
  const strip = $("strip");
  while (strip.children.length > sample.records.length) strip.lastChild.remove();
  while (strip.children.length < sample.records.length) strip.append(cell());
  sample.records.forEach((one, at) => fillCell(strip.children[at], one));
  const n = Number(good.n);
  const outside = n - sample.records.length;
  text("beyond", outside > 0
    ? `Of all ${n} records, ${sample.redacted} are withheld here; ${outside} that are further away are not shown.`
    : `${sample.redacted} of ${n} are withheld here.`);
  const beliefs = $("beliefs");
  const key = sample.beliefs.map((one) => one.value).join("\n");
  if (beliefs.dataset.key !== key) {
    beliefs.dataset.key = key;
    beliefs.replaceChildren(...sample.beliefs.map(belief));
  }
  sample.beliefs.forEach((one, at) => fillBelief(beliefs.children[at], one));
  text("words", sample.words);
  drawRatio(sample, epsilon);
}

/** To the right of the middle where the second half of the values became likelier. */
function drawRatio(sample, epsilon) {
  const needle = $("ratio").querySelector(".needle");
  $("ratio").hidden = sample.ratio === null || epsilon === 0;
  if (sample.ratio === null) return;
  const [last] = sample.beliefs.slice(-1);
  const sign = (last.posterior ?? last.prior) < last.prior ? -1 : 1;
  const size = sample.ratio === "inf" ? 1.2 : Math.min(sample.ratio / epsilon, 1.2);
  needle.style.left = `${50 + sign * 50 * size}%`;
}

function element(name, content, kind) {
  const made = document.createElement(name);
  if (content !== undefined) made.textContent = content;
  if (kind) made.className = kind;
  return made;
}

function cell() {
  const made = element("li");
  const unseen = element("span", "", "unseen");
  const parts = [element("span", "", "at"), element("span", "", "cell"), element("span", "", "was")];
  for (const part of parts) part.setAttribute("aria-hidden", "true");
  made.append(unseen, ...parts);
  return made;
}

function fillCell(place, one) {
  const gone = one.released === null;
  const said = one.private
    ? `record ${one.record}: private, was ${one.value}`
    : gone ? `record ${one.record}: withheld, was ${one.value}` : `record ${one.record}: ${one.released}`;
  const [unseen, at, box, was] = place.children;
  if (unseen.textContent === said) return;
  unseen.textContent = said;
  at.textContent = one.record;
  const seen = one.private ? "?" : gone ? "⊥" : one.released;
  box.textContent = seen;
  box.className = `cell ${one.private ? "secret" : gone ? "gone" : "out"}${seen.length > 3 ? " long" : ""}`;
  was.textContent = gone ? one.value : "";
}

function belief(one) {
  const made = element("div", undefined, "belief");
  const bars = element("div", undefined, "bars");
  for (const kind of ["before", "after"]) {
    const bar = element("div", undefined, `bar ${kind}`);
    bar.append(element("i"), element("span"));
    bars.append(bar);
  }
  made.append(element("b"), bars);
  return made;
}

function fillBelief(place, one) {
  place.children[0].textContent = `${one.value}${one.was ? " ✓" : ""}`;
  place.children[0].title = one.was ? "the value that it has in this sample" : "";
  const [before, after] = place.children[1].children;
  for (const [bar, share, said] of [[before, one.prior, "before"], [after, one.posterior, "after"]]) {
    bar.children[0].style.width = share === null ? "0" : `${100 * share}%`;
    bar.children[1].textContent = share === null ? `${said}: ?` : `${said}: ${percent(share)}`;
  }
}

function makeRows() {
  const body = $("mechanisms").tBodies[0];
  for (const mechanism of MECHANISMS) {
    const row = body.insertRow();
    row.dataset.mechanism = mechanism;
    const name = element("th", mechanism);
    name.scope = "row";
    row.append(name, element("td", "…", "number"), element("td", "…", "number"), element("td", "", "said"));
  }
}

function fillRow(row, found) {
  row.classList.remove("old");
  row.classList.toggle("chosen", row.dataset.mechanism === good.mechanism);
  const [, releases, leakage, worst] = row.cells;
  if (found.errors) {
    releases.textContent = leakage.textContent = "–";
    worst.textContent = found.errors.map((one) => one.message).join("; ");
    return;
  }
  releases.textContent = percent(found.utility);
  releases.dataset.value = found.utility;
  leakage.textContent = `${found.leakage_is_exact ? "" : "≤ "}${short(found.leakage)}`;
  leakage.dataset.value = found.leakage;
  worst.textContent = found.worst_output;
}

function drawCurves() {
  const points = [...curves.points.values()];
  fillNumbers("utility-numbers", () => curveTable(points));
  rows("utility", { points });
}

function curveTable(points) {
  const names = MECHANISMS.filter((one) => points.some((point) => point.mechanism === one));
  const budgets = [...new Set(points.map((point) => point.epsilon))].sort((a, b) => a - b);
  return [
    ["ε", ...names],
    ...budgets.map((epsilon) => [
      short(epsilon),
      ...names.map((name) => {
        const point = curves.points.get(`${name} ${epsilon}`);
        return point ? percent(point.utility) : "";
      }),
    ]),
  ];
}

/** The numbers of a picture as a table, made when somebody opens it. */
function fillNumbers(id, lines) {
  const place = $(id);
  place.fill = () => {
    const [head, ...body] = lines();
    const table = element("table");
    const first = table.createTHead().insertRow();
    for (const name of head) {
      const one = element("th", name);
      one.scope = "col";
      first.append(one);
    }
    const rest = table.createTBody();
    for (const line of body) {
      const row = rest.insertRow();
      for (const value of line) row.insertCell().textContent = value;
    }
    place.querySelector(".wide").replaceChildren(table);
  };
  if (place.open) place.fill();
}

let statusTimer = 0;
function say(said) {
  clearTimeout(statusTimer);
  statusTimer = setTimeout(() => text("status", said), 700);
}

// ---- pictures

const views = {};
const waiting = { influence: {}, profile: {}, utility: {} };
const dark = matchMedia("(prefers-color-scheme: dark)");

/** Rows for a picture, drawn with the next redraw. */
function rows(picture, data) {
  Object.assign(waiting[picture], data);
  waiting[picture].changed = true;
}

async function redraw() {
  const drawn = Object.entries(views).map(([picture, view]) => {
    const { changed: isNew, ...data } = waiting[picture];
    if (!isNew) return null;
    waiting[picture].changed = false;
    for (const [name, values] of Object.entries(data)) view.data(name, values);
    return view.runAsync();
  });
  await Promise.all(drawn);
}

async function makePictures() {
  const specs = await (await fetch(`/api/pictures?dark=${dark.matches}`)).json();
  for (const [picture, spec] of Object.entries(specs)) {
    views[picture]?.finalize();
    const { changed: _, ...datasets } = waiting[picture];
    spec.datasets = { points: [], chosen: [], profile: [], ...datasets };
    const options = { mode: "vega-lite", actions: false, ast: true, defaultStyle: false, renderer: "canvas", tooltip: false, logLevel: 1 };
    const inner = element("div");
    inner.setAttribute("aria-hidden", "true");
    $(`${picture}-picture`).replaceChildren(inner);
    views[picture] = (await window.vegaEmbed(inner, spec, options)).view;
    waiting[picture].changed = true;
  }
  await redraw();
  document.body.dataset.pictures = dark.matches ? "dark" : "light";
}

/** A picture is made with rows, as none has an extent without. */
const ready = new Promise((resolve) => document.addEventListener("drawn", resolve, { once: true }));

function loadVega() {
  const script = element("script");
  script.src = "/static/vega.js";
  script.type = "module";
  script.addEventListener("load", () => ready.then(makePictures));
  document.head.append(script);
}

// ---- a model file

function readModel(content, name) {
  try {
    model = JSON.parse(content);
    modelName = name;
  } catch {
    complain([{ field: "model", message: `${name} is not JSON, or is truncated` }]);
    return false;
  }
  useModel(true);
  return true;
}

function useModel(used) {
  for (const name of ["alpha", "beta"]) {
    $(name).disabled = $(`${name}-slider`).disabled = used;
  }
  $("model-remove").hidden = !used;
  if (!used) $("model-hint").textContent = "It stays in this page. At most 1 MiB.";
}

function dropModel(errors) {
  for (const one of errors) {
    if (one.field === "model") one.message = `${modelName}: ${one.message}`;
  }
  model = goodModel;
  $("model-file").value = "";
  useModel(model !== null);
  keepInAddress();
}

async function takeFile(file) {
  if (!file) return;
  if (file.size > LARGEST_MODEL) {
    complain([{ field: "model", message: `${file.name} must have at most ${LARGEST_MODEL} bytes, got ${file.size}` }]);
    return;
  }
  if (readModel(await file.text(), file.name)) changed();
}

// ---- beginning

function listen() {
  for (const name of SLIDERS) {
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
  for (const place of document.querySelectorAll("details")) {
    place.addEventListener("toggle", () => place.open && place.fill?.());
  }
  $("model-file").addEventListener("change", (event) => takeFile(event.target.files[0]));
  $("model-remove").addEventListener("click", () => {
    model = null;
    $("model-file").value = "";
    useModel(false);
    changed();
  });
  const zone = $("chain");
  zone.addEventListener("dragover", (event) => { event.preventDefault(); zone.classList.add("over"); });
  zone.addEventListener("dragleave", () => zone.classList.remove("over"));
  zone.addEventListener("drop", (event) => {
    event.preventDefault();
    zone.classList.remove("over");
    takeFile(event.dataTransfer.files[0]);
  });
  dark.addEventListener("change", makePictures);
  window.addEventListener("popstate", () => { takeFromAddress(); changed(); });
}

for (const [name, stops] of Object.entries(STOPS)) $(`${name}-slider`).max = stops.length - 1;
takeFromAddress();
for (const name of SLIDERS) slide(name);
makeRows();
listen();
loadVega();
changed();
