// Latencies as distributions: bars on a logarithmic axis of time, and the quantiles that people ask for.

import { Surface, colour } from "./draw.js";
import { byId, make, text } from "./dom.js";
import { count, latencyWords, seconds, si } from "./format.js";
import { latencyKey } from "./store.js";

const QUANTILES = [[0.5, "p50"], [0.99, "p99"], [0.999, "p99.9"]];
const BARS_MOST = 64;

/** The value below which a share of the counted values lies; within a class it is interpolated. */
export function quantile(bounds, counts, wanted) {
  const total = counts.reduce((sum, one) => sum + one, 0);
  if (!total) return null;
  let below = 0;
  for (let index = 0; index < counts.length; index += 1) {
    if (below + counts[index] >= wanted * total && counts[index] > 0) {
      if (index >= bounds.length) return bounds.at(-1);
      const low = index > 0 ? bounds[index - 1] : bounds[index] / 2;
      return low + ((bounds[index] - low) * (wanted * total - below)) / counts[index];
    }
    below += counts[index];
  }
  return bounds.at(-1);
}

export class LatencyPanel {
  constructor() {
    this.rows = new Map();
    this.recent = false;
    byId("latency-window").addEventListener("click", () => {
      this.recent = !this.recent;
      byId("latency-window").setAttribute("aria-pressed", this.recent);
      this.dirty = true;
    });
  }

  clear() {
    this.rows.clear();
    byId("latency-body").replaceChildren();
  }

  update(store) {
    const latencies = store.status?.latencies ?? [];
    byId("latency").hidden = !latencies.length;
    const several = new Set(latencies.map(({ stream }) => stream)).size > 1;
    for (const latency of latencies) {
      if (this.rows.has(latencyKey(latency))) continue;
      const label = `Histogram: ${latency.about ?? latency.name}`;
      const canvas = make("canvas", { class: "histogram", role: "img", "aria-label": label });
      const figures = make("p", { class: "figures" });
      byId("latency-body").append(make("h3", {}, several ? `${latencyWords(latency.name)} · ${latency.stream}` : latencyWords(latency.name), make("small", {}, latency.about ?? "")), canvas, figures);
      this.rows.set(latencyKey(latency), { surface: new Surface(canvas, () => { this.dirty = true; }), figures });
    }
    this.dirty = true;
  }

  draw(store) {
    this.dirty = false;
    const kept = store.latencies.items;
    for (const latency of store.status?.latencies ?? []) {
      const row = this.rows.get(latencyKey(latency));
      if (!row) continue;
      const before = this.recent ? kept.find(({ at }) => store.status.elapsed_s - at <= 10.5)?.counts.get(latencyKey(latency)) : null;
      const counts = before ? latency.counts.map((value, index) => Math.max(0, value - (before[index] ?? 0))) : latency.counts;
      this.histogram(row, latency, counts, Boolean(before));
    }
  }

  histogram({ surface, figures }, latency, counts, recent) {
    const { bounds, unit } = latency, context = surface.begin();
    const write = (value) => (unit === "s" ? seconds(value, 2) : si(value, unit, 2));
    const first = counts.findIndex((value) => value > 0);
    const left = 8, right = 8, top = 8, bottom = surface.height - 18, width = surface.width - left - right;
    if (first < 0) {
      context.fillStyle = colour("dim");
      context.textAlign = "center";
      context.fillText("no values yet", surface.width / 2, surface.height / 2);
      text(figures, "");
      return;
    }
    const last = Math.min(counts.findLastIndex((value) => value > 0), bounds.length - 1);
    const lowest = Math.max(bounds[Math.max(0, first - 1)] ?? bounds[0] / 2, bounds[0] / 2, 1e-9);
    const highest = Math.max(bounds[last], lowest * 4);
    const low = Math.log10(lowest), span = Math.log10(highest) - low;
    const x = (value) => left + ((Math.log10(Math.max(value, lowest)) - low) / span) * width;
    const bars = new Float64Array(BARS_MOST);
    for (let index = first; index < counts.length; index += 1) {
      if (!counts[index]) continue;
      const upper = bounds[Math.min(index, bounds.length - 1)], lower = Math.max(lowest, index > 0 ? bounds[index - 1] : upper / 2);
      // A class that is wider than a bar is spread over those that it covers.
      const from = Math.min(BARS_MOST - 1, Math.floor(((Math.log10(lower) - low) / span) * BARS_MOST + 1e-9));
      const to = Math.max(from, Math.min(BARS_MOST - 1, Math.ceil(((Math.log10(upper) - low) / span) * BARS_MOST - 1e-9) - 1));
      for (let bar = from; bar <= to; bar += 1) bars[bar] += counts[index] / (to - from + 1);
    }
    const most = Math.max(...bars), wide = width / BARS_MOST;
    context.fillStyle = colour("trace");
    bars.forEach((value, index) => {
      if (!value) return;
      // The square root keeps rare, long latencies in sight.
      const high = Math.max(1.5, Math.sqrt(value / most) * (bottom - top));
      context.fillRect(left + index * wide, bottom - high, Math.max(1, wide - 1), high);
    });
    context.fillStyle = colour("line");
    context.fillRect(left, bottom, width, 1);
    context.textAlign = "center";
    // Every third power where they would overlap otherwise.
    const each = width / span < 56 ? 3 : 1;
    for (let power = Math.ceil(low / each) * each; power <= low + span; power += each) {
      context.fillStyle = colour("dim");
      context.fillRect(x(10 ** power), bottom, 1, 4);
      const label = write(10 ** power).replace(/\.0+(?= )/, "");
      context.fillText(label, Math.min(Math.max(x(10 ** power), 20), surface.width - 20), bottom + 11);
    }
    const said = QUANTILES.map(([share, name], index) => {
      // Within a class the quantile is estimated, but the greatest value is known.
      const value = Math.min(quantile(bounds, counts, share), latency.max || Infinity);
      context.fillStyle = colour(index === 0 ? "line" : "marker");
      context.fillRect(Math.min(x(value), left + width - 1), top - 4, 1.5, bottom - top + 4);
      return `${name} ${write(value)}`;
    });
    const all = counts.reduce((sum, one) => sum + one, 0);
    said.push(`max ${write(latency.max)}`, `${count(all)} values${recent ? ", last 10 s" : ""}`);
    text(figures, said.join(" · "));
  }
}
