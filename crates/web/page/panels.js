// Key figures, events, and the record of the machine.

import { byId, make, text } from "./dom.js";
import { count, latencyWords, seconds, share, si, words } from "./format.js";
import { DELIVERED, EXPECTED, TIME } from "./store.js";
import { quantile } from "./latency.js";

const EVENTS_SHOWN = 200;
const BAD = new Set(["gap", "warning", "error"]);

/** The large figures at the top. */
export class Tiles {
  constructor() { this.parts = new Map(); }

  clear() {
    this.parts.clear();
    byId("tiles").replaceChildren();
  }

  set(name, label, value, note = "", state = "") {
    if (!this.parts.has(name)) {
      const parts = { value: make("b"), note: make("small"), label: make("span", { class: "label" }) };
      parts.box = make("div", { class: "tile", "data-tile": name }, parts.label, parts.value, parts.note);
      this.parts.set(name, parts);
      byId("tiles").append(parts.box);
    }
    const parts = this.parts.get(name);
    text(parts.label, label);
    text(parts.value, value);
    text(parts.note, note);
    parts.box.dataset.state = state;
  }

  update(store, scope) {
    const { status, total, ledger, sending } = store;
    if (!status) return;
    if (store.ledgers.length) {
      const rate = slope(ledger, DELIVERED), expected = slope(ledger, EXPECTED);
      const label = sending ? "transmitted" : "delivered", given = si(expected, "S/s", 4);
      if (status.ended) this.set("rate", label, si(total.delivered / status.elapsed_s, "S/s"), "mean of the run");
      else this.set("rate", label, si(rate, "S/s"), expected === null ? "" : sending ? `${given} sent` : `of ${given}`);
      const lost = total.lostTotal, now = expected !== null && rate !== null && expected - rate > expected * 1e-4;
      const part = lost ? `${share(lost / total.expected)} of all` : "of all samples";
      this.set("lost", "lost", count(lost), part, lost ? (now ? "bad" : "warn") : "good");
    }
    const seen = scope.share();
    if (scope.stream) this.set("seen", "spectrum saw", share(seen), "of the samples");
    const signal = status.signals?.[0];
    if (signal) {
      const ratio = Number.isFinite(signal.mer_db) ? `${signal.mer_db.toFixed(1)} dB` : "–";
      this.set("mer", "MER", ratio, words(signal.state), signal.state === "locked" ? "good" : "warn");
    }
    // Of several streams, the greatest values.
    const latencies = (status.latencies ?? []).filter(({ unit }) => unit === "s");
    for (const name of new Set(latencies.map((latency) => latency.name))) {
      const same = latencies.filter((latency) => latency.name === name && latency.count > 0);
      const late = same.map(({ bounds, counts, max }) => Math.min(quantile(bounds, counts, 0.99), max));
      const most = Math.max(0, ...same.map(({ max }) => max));
      this.set(`latency ${name}`, latencyWords(name),
        seconds(late.length ? Math.max(...late) : null, 2), `p99, most ${seconds(most, 2)}`);
    }
    const cores = this.cores(status);
    const own = this.dashboard === null ? "" : `dashboard ${share(this.dashboard)}`;
    this.set("cpu", "processor", cores === null ? "–" : `${cores.toFixed(2)} cores`, own);
    const time = status.elapsed_s < 120 ? `${status.elapsed_s.toFixed(0)} s` : seconds(status.elapsed_s);
    this.set("time", status.ended ? "ended after" : "running", time, `${status.server?.clients ?? 0} watching`);
  }

  /** Cores in use over the last second or so. */
  cores(status) {
    this.dashboard ??= null;
    const now = { at: status.elapsed_s, all: status.cpu_s, own: status.server?.cpu_s ?? 0 };
    this.uses ??= [];
    if (this.uses.length && now.at < this.uses.at(-1).at) this.uses.length = 0;
    this.uses.push(now);
    if (this.uses.length > 8) this.uses.shift();
    const time = now.at - this.uses[0].at;
    if (!(time > 0)) return null;
    this.dashboard = (now.own - this.uses[0].own) / time;
    return (now.all - this.uses[0].all) / time;
  }
}

/** Growth of a column in a second, over the last two. */
function slope(history, column) {
  const last = history.length - 1, first = Math.max(0, last - 8);
  const time = last > first ? history.get(last, TIME) - history.get(first, TIME) : 0;
  return time > 0 ? (history.get(last, column) - history.get(first, column)) / time : null;
}

/** Shows events, newest first; at most two hundred. */
export class EventsPanel {
  constructor() {
    byId("events-level").addEventListener("change", (event) => { byId("log").dataset.level = event.target.value; });
  }
  clear() {
    byId("log").replaceChildren();
    byId("events").dataset.empty = "yes";
  }
  add(events) {
    const log = byId("log");
    const entries = events.slice(-EVENTS_SHOWN).map((event) => {
      const lost = Object.entries(event.lost ?? {}).filter(([, samples]) => samples > 0);
      const causes = lost.map(([cause, samples]) => (lost.length === 1 ? words(cause) : `${words(cause)} ${count(samples)}`));
      const inFile = lost.length === 1 && lost[0][0] === "recording";
      const gap = inFile ? "samples missing in the recording" : `samples lost: ${causes.join(", ")}`;
      const said = event.kind === "gap" ? `${count(event.items)} ${gap}` : event.text ?? "";
      return make("li", { "data-kind": event.kind, "data-bad": BAD.has(event.kind) ? "yes" : null },
        make("time", {}, `${event.elapsed_s?.toFixed(2) ?? "–"} s`), make("span", { class: "kind" }, event.kind),
        make("span", { class: "what" }, `${event.name ? `${event.name}: ` : ""}${said}`));
    });
    log.prepend(...entries.reverse());
    while (log.childElementCount > EVENTS_SHOWN) log.lastElementChild.remove();
    byId("events").dataset.empty = log.childElementCount ? "no" : "yes";
  }
}

/** Shows the numbers that blocks publish, as far as they are not zero. */
export class CountersPanel {
  clear() { this.key = null; }

  update(store) {
    const all = (store.status?.blocks ?? []).flatMap(({ name, metrics }) => Object.entries(metrics ?? {})
      .filter(([, value]) => Number.isFinite(value) && value !== 0).map(([metric, value]) => ({ name, metric, value })));
    byId("counters").hidden = !all.length;
    const key = JSON.stringify(all.map(({ name, metric }) => [name, metric]));
    if (key !== this.key) {
      this.key = key;
      this.cells = all.map(() => make("td"));
      const rows = all.flatMap(({ name, metric }, index) => {
        const head = make("tr", {}, make("th", { scope: "rowgroup", colspan: 2 }, name));
        const row = make("tr", {}, make("th", { scope: "row" }, words(metric)), this.cells[index]);
        return all[index - 1]?.name === name ? [row] : [head, row];
      });
      byId("counters-table").replaceChildren(make("tbody", {}, rows));
    }
    all.forEach(({ value }, index) => text(this.cells[index], Number.isInteger(value) ? count(value) : value.toPrecision(4)));
  }
}

const FIRST = [
  ["cpu_model", "processor"], ["physical_cores", "cores"], ["cpus_allowed", "allowed CPUs"], ["cpus_isolated", "isolated CPUs"],
  ["memory_bytes", "memory"], ["kernel_release", "kernel"], ["preemption", "preemption"], ["governor", "governor"],
  ["clock_source", "clock"], ["hypervisor", "virtual machine"], ["millstream_version", "Millstream"], ["timestamp", "started"],
];

/** Shows the record of the machine: what matters first, the whole record on demand. */
export function showEnvironment(hello) {
  const record = hello.environment ?? {};
  byId("environment").hidden = !Object.keys(record).length;
  const value = (name, what) => {
    if (what === null || what === undefined || what === "") return "none";
    if (what === true) return "yes";
    if (what === false) return "no";
    if (name.endsWith("_bytes") && typeof what === "number") return si(what, "B");
    return typeof what === "object" ? JSON.stringify(what) : String(what);
  };
  const known = FIRST.filter(([name]) => name in record);
  const rows = known.map(([name, label]) => [make("dt", {}, label), make("dd", {}, value(name, record[name]))]);
  for (const nic of record.nics ?? []) {
    const said = [nic.driver, nic.mtu && `MTU ${nic.mtu}`, nic.speed_mbps && `${nic.speed_mbps} Mbit/s`];
    rows.push([make("dt", {}, `network ${nic.name}`), make("dd", {}, said.filter(Boolean).join(", "))]);
  }
  const rest = make("details", {}, make("summary", {}, "The whole record"));
  rest.addEventListener("toggle", () => {
    if (rest.open && rest.childElementCount === 1) rest.append(make("pre", {}, JSON.stringify(record, null, 1)));
  });
  const command = make("details", {}, make("summary", {}, "The command"), make("pre", {}, (hello.command ?? []).join(" ")));
  byId("environment-body").replaceChildren(...rows.flat());
  byId("environment").querySelectorAll("details").forEach((old) => old.remove());
  byId("environment").append(command, rest);
}
