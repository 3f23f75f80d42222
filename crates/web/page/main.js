// Joins the connection, what is known, and the panels; draws at most once for each frame of the screen, and not at all
// while nobody sees the page.

import { Connection } from "./net.js";
import { ControlPanel } from "./control.js";
import { byId, make, remembered, text } from "./dom.js";
import { onTheme, setTheme, theme } from "./draw.js";
import { CountersPanel, EventsPanel, Tiles, showEnvironment } from "./panels.js";
import { FlowPanel } from "./flow.js";
import { LatencyPanel } from "./latency.js";
import { LedgerPanel } from "./ledger.js";
import { Scope } from "./scope.js";
import { Store } from "./store.js";
import { TelevisionPanel } from "./television.js";
import { count, share, si } from "./format.js";

const LINES_PER_S = 30;
const BINS_LEAST = 512, BINS_MOST = 16384;
const HERE = /^(127\.[\d.]+|localhost|\[::1\])$/;
const SPANS = [5, 10, 20, 30, 60];

const store = new Store();
const seen = { lines: 0, statuses: 0 };
let shown = null;
let drawn = null;
let described = null;
const delays = [];

const scope = new Scope(() => later());
const counters = new CountersPanel(), tiles = new Tiles(), events = new EventsPanel(), flow = new FlowPanel(), latency = new LatencyPanel();
const ledger = new LedgerPanel(showDirection), television = new TelevisionPanel();
const panels = [ledger, latency, television];

const control = new ControlPanel();
const connection = new Connection({ state: showState, message: take, frame: takeFrame });
control.connection = connection;

function take(message) {
  switch (message.type) {
    case "hello": return takeHello(message);
    case "status": return takeStatus(message);
    case "events": return events.add(store.takeEvents(message.events ?? []));
    case "reply": return control.reply(message);
    case "error": return events.add([{ kind: "error", elapsed_s: store.status?.elapsed_s, text: message.text }]);
    default: return undefined;
  }
}

function takeHello(hello) {
  if (store.takeHello(hello)) {
    for (const panel of [scope, tiles, events, flow, counters, latency, television]) panel.clear();
    shown = null;
    document.body.classList.remove("ended");
  }
  text(byId("source"), `${hello.verb ?? ""} · ${hello.title ?? ""}`);
  document.title = `${hello.title ? `${hello.title} – ` : ""}Millstream`;
  const spectra = (hello.streams ?? []).filter(({ kind }) => kind === "spectrum");
  if (!spectra.some(({ stream }) => stream === shown)) shown = spectra[0]?.stream ?? null;
  const select = byId("streams");
  select.hidden = spectra.length < 2;
  select.replaceChildren(...spectra.map(({ stream, name }) => make("option", { value: stream, selected: stream === shown }, name)));
  scope.setStream(store.stream(shown), hello.verb);
  byId("scope").hidden = shown === null;
  document.body.classList.toggle("without-scope", shown === null);
  const machine = JSON.stringify([hello.environment, hello.command]);
  if (machine !== described) showEnvironment(hello);
  described = machine;
  control.show(hello);
  subscribe();
}

function takeStatus(status) {
  seen.statuses += 1;
  store.takeStatus(status);
  document.body.classList.toggle("ended", Boolean(status.ended));
  if (status.ended) showState("ended", "the run is over");
  if (document.hidden) return;
  tiles.update(store, scope);
  ledger.update(store);
  // In the last status the threads have ended: their last loads stay.
  if (!status.ended) flow.update(store);
  counters.update(store);
  latency.update(store);
  television.update(store);
  const server = status.server ?? {}, dropped = scope.frame?.dropped ?? 0;
  if (delays.length) byId("stack").dataset.delayMs = delay();
  const refused = Object.values(server.refused ?? {}).reduce((sum, one) => sum + one, 0);
  text(byId("counts"), [
    `${count(seen.lines)} lines, ${count(dropped)} dropped for this page, ${count(server.lines_dropped ?? 0)} for all`,
    ...(delays.length ? [`samples to picture ${delay().toFixed(0)} ms (p95)`] : []), `${si(connection.bytes, "B")} received`, `${server.clients ?? 0} watching`, `${count(refused)} requests refused`,
  ].join(" · "));
}

function showDirection() {
  tiles.update(store, scope);
  ledger.update(store);
}

function takeFrame(frame) {
  if (frame.type === 2) return television.take(frame);
  if (frame.stream !== shown) return undefined;
  seen.lines += 1;
  scope.take(frame);
  return undefined;
}

function showState(state, said) {
  const link = byId("link");
  if (link.dataset.state === "ended" && state !== "live") said = "the run is over";
  link.dataset.state = store.status?.ended && state !== "live" ? "ended" : state;
  text(byId("link-text"), said);
  if (state !== "live") control.forget();
}

/** Asks for as many bins as the screen can show of the part that is looked at, and for nothing while hidden. */
function subscribe() {
  if (!store.hello) return;
  const wanted = new Set();
  if (!document.hidden) {
    if (shown !== null) {
      wanted.add(shown);
      const { width } = scope.plot(scope.spectrum), knows = scope.from !== null && scope.frame;
      const part = knows ? (scope.to - scope.from) / scope.frame.span : 1;
      const needed = Math.max(BINS_LEAST, Math.min(BINS_MOST, (2 * width * scope.spectrum.scale) / part));
      const bins = 2 ** Math.ceil(Math.log2(needed) - 0.4), average = Number(byId("average").value) || 1;
      connection.subscribe({ stream: shown, bins, lines_per_s: LINES_PER_S, average, format: "u8" });
    }
    const symbols = store.hello.streams?.find(({ kind }) => kind === "symbols");
    if (symbols) {
      wanted.add(symbols.stream);
      connection.subscribe({ stream: symbols.stream, points: 1024, lines_per_s: 5 });
    }
  }
  for (const stream of connection.subscribed.keys()) if (!wanted.has(stream)) connection.unsubscribe(stream);
}

let soon = null;
function later() {
  clearTimeout(soon);
  soon = setTimeout(subscribe, 300);
}

function frame() {
  requestAnimationFrame(frame);
  if (document.hidden) return;
  if (scope.dirty) {
    scope.draw(store.gaps.get(shown)?.items ?? []);
    noteDelay();
    const part = scope.share();
    text(byId("coverage"), part === null ? "no lines" : `saw ${share(part)} of the samples`);
    const { frame: line } = scope;
    text(byId("scope-note"), line ? `${line.bins} bins${scope.held ? " · held" : ""}` : "");
  }
  for (const panel of panels) if (panel.dirty) panel.draw(store);
}

/** Notes how old the newest line is when it is drawn. Other machines have other clocks: there it is not known. */
function noteDelay() {
  const line = scope.frame;
  if (!line || line === drawn || scope.held || !HERE.test(location.hostname)) return;
  drawn = line;
  delays.push(Date.now() - line.unix * 1000);
  if (delays.length > 120) delays.shift();
}

/** The time from samples to the picture that nineteen of twenty lines keep, milliseconds. */
function delay() {
  const sorted = [...delays].sort((one, other) => one - other);
  return sorted.length ? sorted[Math.floor((sorted.length - 1) * 0.95)] : null;
}

function press(button, on) { byId(button).setAttribute("aria-pressed", on); }
function hold() {
  scope.held = !scope.held;
  scope.waterfall.hold(scope.held);
  scope.published = 0;
  press("hold", scope.held);
  scope.dirty = true;
}
function peak() {
  scope.peakHold = !scope.peakHold;
  scope.peaks?.fill(-Infinity);
  press("peak", scope.peakHold);
  scope.dirty = true;
}
function flipTheme() { setTheme(theme() === "dark" ? "light" : "dark"); }

function start() {
  onTheme(() => {
    text(byId("theme"), theme() === "dark" ? "Light" : "Dark");
    scope.waterfall.stale = true;
    for (const panel of [scope, ...panels]) panel.dirty = true;
  });
  setTheme();
  byId("span").replaceChildren(...SPANS.map((seconds) => make("option", { value: seconds }, `${seconds} s`)));
  const choose = (id, otherwise, use) => {
    byId(id).value = remembered.get(id, otherwise);
    use(byId(id).value);
    byId(id).addEventListener("change", ({ target }) => {
      remembered.set(id, target.value);
      use(target.value);
      scope.dirty = true;
    });
  };
  choose("span", "10", (value) => scope.waterfall.set({ seconds: Number(value) || 10 }));
  choose("average", "4", () => subscribe());
  choose("palette", "viridis", (value) => scope.waterfall.setPalette(value));
  byId("streams").addEventListener("change", ({ target }) => {
    shown = Number(target.value);
    scope.setStream(store.stream(shown), store.hello?.verb);
    subscribe();
  });
  const zoom = { in: () => scope.zoom(0.5), out: () => scope.zoom(2), whole: () => scope.showWhole() };
  const actions = { hold, peak, theme: flipTheme, ...zoom };
  for (const [id, action] of Object.entries(actions)) byId(id).addEventListener("click", action);
  const keys = { " ": hold, d: flipTheme, p: peak, "+": actions.in, "=": actions.in, "-": actions.out, 0: actions.whole };
  addEventListener("keydown", (event) => {
    const typed = event.target.closest?.("input, select, textarea, button, summary");
    if (typed || event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  });
  document.addEventListener("visibilitychange", () => {
    subscribe();
    for (const panel of [scope, ...panels]) panel.dirty = true;
  });
  requestAnimationFrame(frame);
}

start();
