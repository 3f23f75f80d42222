// The flowgraph as a picture: partitions with their threads and cores, blocks with their load beside the expected one, and
// rings.

import { byId, make, svg, text } from "./dom.js";
import { count, share, si, some } from "./format.js";
import { place, route } from "./layout.js";

const RING = 38;
/** A load, short: a block has room for two of them. */
const load = (value) => {
  if (value >= 0.0995) return `${Math.round(value * 100)} %`;
  return value >= 0.0005 || value === 0 ? `${(value * 100).toFixed(1)} %` : "<0.1 %";
};
const blockOf = (end) => end.slice(0, end.lastIndexOf("."));

export class FlowPanel {
  constructor() {
    this.box = byId("flow-picture");
    this.before = null;
    new ResizeObserver(() => { this.key = null; }).observe(this.box);
  }

  clear() {
    this.key = null;
    this.before = null;
  }

  update(store) {
    const { status, hello } = store;
    const has = Boolean(status?.blocks?.some(({ partition }) => partition));
    byId("flow").hidden = !has;
    if (!has) return;
    const edges = status.edges?.length ? status.edges : hello?.graph?.edges ?? [];
    const places = status.blocks.map(({ name, partition }) => [name, partition]);
    const key = JSON.stringify([places, edges.map(({ from, to }) => [from, to]), this.box.clientWidth]);
    if (key !== this.key && this.box.clientWidth > 0) {
      this.key = key;
      this.build(status, edges);
    }
    if (this.key === key) this.fill(store, edges);
  }

  build(status, edges) {
    const lanes = new Map();
    for (const { name, partition } of status.blocks) {
      if (!lanes.has(partition)) lanes.set(partition, { name: partition, blocks: [] });
      lanes.get(partition).blocks.push(name);
    }
    const ends = edges.map(({ from, to }) => ({ from: blockOf(from), to: blockOf(to) }));
    const width = Math.max(280, this.box.clientWidth), plan = place([...lanes.values()], ends, width);
    this.parts = { lanes: new Map(), blocks: new Map(), edges: [] };
    const height = plan.height + 2;
    const picture = svg("svg", {
      viewBox: `0 0 ${width} ${height}`, width, height, role: "img",
      "aria-label": "Flowgraph; the table below has the same numbers",
    });
    const texts = [];
    for (const { lane, x, y, width, height } of plan.boxes) {
      const load = svg("text", { class: "lane-load", x: x + width - 12, y: y + 17, "text-anchor": "end" });
      const name = svg("text", { class: "lane-name", x: x + 12, y: y + 17 });
      this.parts.lanes.set(lane.name, { load, name, narrow: width < 560 });
      picture.append(svg("rect", { class: "lane", x: x + 0.5, y: y + 0.5, width: width - 1, height, rx: 10 }));
      texts.push(name, load);
    }
    const wires = svg("g"), rings = svg("g"), heads = svg("g");
    heads.append(...texts);
    picture.append(wires, heads);
    edges.forEach((edge, index) => {
      const from = plan.blocks.get(ends[index].from), to = plan.blocks.get(ends[index].to);
      if (!from || !to) return;
      const way = route(from, to);
      wires.append(svg("path", { class: "wire", d: way.path }));
      rings.append(this.ring(edge, way));
    });
    for (const { name } of status.blocks) picture.append(this.block(name, plan.blocks.get(name)));
    picture.append(rings);
    this.box.replaceChildren(picture);
    this.table(status, edges);
  }

  ring(edge, { x, y, upright }) {
    const fill = svg("rect", { class: "ring-fill", x: x - RING / 2 + 1, y: y - 5, width: 0, height: 10, rx: 4 });
    const place = upright ? { x: x + RING / 2 + 4, y: y + 4 } : { x, y: y + 18, "text-anchor": "middle" };
    const label = svg("text", { class: "ring-label", ...place });
    const title = svg("title");
    const shell = svg("rect", { class: "ring-shell", x: x - RING / 2, y: y - 6, width: RING, height: 12, rx: 5 });
    const group = svg("g", { class: "ring" }, title, shell, fill, label);
    this.parts.edges.push({ key: `${edge.from} ${edge.to}`, fill, label, title, group });
    return group;
  }

  block(name, { x, y, width, height }) {
    const inner = width - 20;
    const part = {
      inner, title: svg("title"),
      bar: svg("rect", { class: "load", x: x + 10, y: y + 27, width: 0, height: 8, rx: 2 }),
      mark: svg("rect", { class: "load-mark", x: x + 10, y: y + 24, width: 2, height: 14 }),
      left: x + 10,
      load: svg("text", { class: "figure", x: x + 10, y: y + 51 }),
      rate: svg("text", { class: "figure dim", x: x + 10, y: y + 66 }),
    };
    const most = Math.max(6, Math.floor(inner / 6.9)), shown = name.length > most ? `${name.slice(0, most - 1)}…` : name;
    part.group = svg("g", { class: "block" }, part.title, svg("rect", { class: "box", x, y, width, height, rx: 8 }),
      svg("text", { class: "name", x: x + 10, y: y + 17 }, shown),
      svg("rect", { class: "load-track", x: x + 10, y: y + 27, width: inner, height: 8, rx: 2 }),
      part.bar, part.mark, part.load, part.rate);
    this.parts.blocks.set(name, part);
    return part.group;
  }

  fill(store, edges) {
    const { status, hello } = store, elapsed = this.before ? status.elapsed_s - this.before.elapsed : 0;
    const blocked = new Map(), items = new Map();
    const sums = new Map();
    let known = false;
    for (const block of status.blocks) {
      const part = this.parts.blocks.get(block.name);
      sums.set(block.partition, (sums.get(block.partition) ?? 0) + (block.load ?? 0));
      if (!part) continue;
      const measured = block.load ?? 0, expected = block.expected_load, isExpected = Number.isFinite(expected);
      known ||= isExpected;
      part.mark.style.display = isExpected ? "" : "none";
      if (isExpected) part.mark.setAttribute("x", (part.left + Math.min(1, expected) * part.inner - 1).toFixed(1));
      part.bar.setAttribute("width", (Math.min(1, measured) * part.inner).toFixed(1));
      part.group.classList.toggle("busy", measured > 0.85);
      text(part.load, isExpected ? `${load(measured)} (plan ${load(expected)})` : `${load(measured)} of a core`);
      const total = block.items_out || block.items_in, earlier = this.before?.items.get(block.name);
      items.set(block.name, total);
      text(part.rate, earlier !== undefined && elapsed > 0 ? `${si((total - earlier) / elapsed)} items/s` : "");
      const passed = `${count(block.items_in)} items in, ${count(block.items_out)} out`;
      text(part.title, `${block.name}: ${count(block.calls)} calls, ${passed}`);
    }
    byId("flow-expected").hidden = !known;
    edges.forEach((edge) => {
      const part = this.parts.edges.find(({ key }) => key === `${edge.from} ${edge.to}`);
      if (!part || edge.fill === undefined) return;
      part.fill.setAttribute("width", (Math.min(1, edge.fill) * (RING - 2)).toFixed(1));
      text(part.label, share(Math.round(edge.fill * 1000) / 1000));
      const wasFull = this.before?.blocked.get(part.key);
      blocked.set(part.key, edge.blocked);
      part.group.classList.toggle("full", wasFull !== undefined && edge.blocked > wasFull);
      const size = `${count(edge.capacity_items)} items of ${edge.item_bytes} bytes, ${share(edge.fill)} full`;
      const polls = `${count(edge.starved)} times too empty, ${count(edge.blocked)} times too full`;
      text(part.title, `${edge.from} → ${edge.to}: ring of ${size}; ${polls}`);
    });
    const waits = new Map((hello?.plan?.partition ?? []).map((one) => [one.name, one.wait]));
    for (const partition of status.partitions ?? []) {
      const part = this.parts.lanes.get(partition.name);
      if (!part) continue;
      const core = partition.cpu === null || partition.cpu === undefined ? "any core" : `core ${partition.cpu}`;
      const wait = waits.get(partition.name);
      // Wires come in from above: what is long stands at the right, where none are.
      text(part.name, partition.name);
      const blocks = share(sums.get(partition.name) ?? 0), whole = share(partition.load);
      const load = part.narrow ? `${whole} (blocks ${blocks})` : `${whole} of a core, its blocks ${blocks}`;
      const said = part.narrow ? [core, load] : [`thread ${partition.tid}`, core, wait, load];
      text(part.load, said.filter(Boolean).join(" · "));
    }
    const used = (status.partitions ?? []).reduce((sum, one) => sum + (one.load ?? 0), 0);
    const threads = (status.partitions ?? []).length;
    text(byId("flow-note"), `${some(status.blocks.length, "block")} on ${some(threads, "thread")}, ${used.toFixed(2)} cores`);
    this.before = { elapsed: status.elapsed_s, blocked, items };
    if (byId("flow-table").closest("details").open) this.fillTable(status);
  }

  table(status) {
    const names = ["block", "partition", "load", "by the plan", "calls", "items in", "items out"];
    const head = names.map((name) => make("th", { scope: "col" }, name));
    this.cells = new Map(status.blocks.map(({ name }) => [name, Array.from({ length: 6 }, () => make("td"))]));
    const rows = [...this.cells].map(([name, cells]) => make("tr", {}, make("th", { scope: "row" }, name), cells));
    byId("flow-table").replaceChildren(make("thead", {}, make("tr", {}, head)), make("tbody", {}, rows));
  }

  fillTable(status) {
    for (const block of status.blocks) {
      const loads = [block.load, block.expected_load].map((one) => (Number.isFinite(one) ? share(one) : "–"));
      const values = [block.partition, ...loads, ...[block.calls, block.items_in, block.items_out].map(count)];
      this.cells.get(block.name)?.forEach((cell, index) => text(cell, values[index]));
    }
  }
}
