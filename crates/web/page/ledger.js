// The ledger: what became of every sample, as an equation, over time and as a table.

import { Surface, causeColour, causeFill, colour, ticks } from "./draw.js";
import { byId, make, text } from "./dom.js";
import { count, share, si, words } from "./format.js";
import { CAUSES, DELIVERED, EXPECTED, HELD, LOST, TIME, causeIndex } from "./store.js";

const LEFT = 58, RIGHT = 8;

export class LedgerPanel {
  /** `changed` is called when the user has chosen the other direction. */
  constructor(changed) {
    this.all = new Surface(byId("ledger-all"), () => { this.dirty = true; });
    this.lost = new Surface(byId("ledger-lost"), () => { this.dirty = true; });
    this.rows = new Map();
    this.dirty = true;
    byId("direction").addEventListener("change", ({ target }) => {
      this.store?.choose(target.value === "sent");
      if (this.store) changed();
    });
  }

  /** Differences of each second: time, expected, delivered, held, and lost by cause. */
  bars(history, wanted) {
    const bars = [];
    let end = history.length - 1;
    while (end > 0 && bars.length < wanted) {
      const second = Math.floor(history.get(end, TIME));
      let begin = end;
      while (begin > 0 && Math.floor(history.get(begin, TIME)) === second) begin -= 1;
      const time = history.get(end, TIME) - history.get(begin, TIME);
      // The second that has just begun is not complete.
      const whole = end < history.length - 1 || history.get(end, TIME) - second > 0.7;
      if (whole && time > 0) {
        const change = (column) => history.get(end, column) - history.get(begin, column);
        const [expected, delivered, held] = [EXPECTED, DELIVERED, HELD].map(change);
        const bar = { second, time, expected, delivered, held, lost: [], lostTotal: 0 };
        for (let cause = 0; cause <= CAUSES.length; cause += 1) {
          const samples = Math.max(0, change(LOST + cause));
          bar.lost.push(samples);
          bar.lostTotal += samples;
        }
        bars.push(bar);
      }
      if (begin === end) break;
      end = begin;
    }
    return bars.reverse();
  }

  update(store) {
    this.store = store;
    const { total, ledgers, sending } = store;
    const has = ledgers.length > 0;
    byId("ledger").hidden = !has;
    document.body.classList.toggle("without-ledger", !has);
    if (!has) return;
    byId("direction").hidden = !store.both;
    byId("direction").value = sending ? "sent" : "received";
    this.equation(total, sending, sending);
    const said = ledgers.every((ledger) => ledger.balances);
    // Counters of a running stream may be a packet apart: only the server knows whether that is so.
    const good = said && total.difference === 0;
    const chip = byId("balance");
    chip.dataset.good = good ? "yes" : "no";
    text(chip, good ? "✓ balances" : `✗ differs by ${count(Math.abs(total.difference))}`);
    this.table(store, total);
    this.dirty = true;
  }

  equation(total, sends, holds) {
    const box = byId("equation"), shape = `${sends} ${holds}`;
    if (this.shape !== shape) {
      this.shape = shape;
      const part = (name, label, sign = null) => {
        const value = make("b", {}, "0");
        this[`${name}Value`] = value;
        const mark = sign ? make("span", { class: "sign" }, sign) : null;
        return make("span", { class: `part ${name}` }, mark, make("span", {}, value, make("small", {}, label)));
      };
      box.replaceChildren(part("expected", sends ? "accepted" : "expected"),
        part("delivered", sends ? "transmitted" : "delivered", "="),
        ...(holds ? [part("held", sends ? "in flight" : "held", "+")] : []), part("lost", "lost", "+"));
    }
    text(this.expectedValue, count(total.expected));
    text(this.deliveredValue, count(total.delivered));
    text(this.lostValue, count(total.lostTotal));
    if (holds) text(this.heldValue, count(total.held));
    box.dataset.lost = total.lostTotal > 0 ? "some" : "none";
  }

  table(store, total) {
    const last = this.bars(store.ledger, 1)[0];
    const each = (samples) => (last && samples !== undefined ? samples / last.time : null);
    const delivered = store.sending ? "transmitted" : "delivered";
    const wanted = [[delivered, total.delivered, each(last?.delivered), null]];
    for (const [cause, samples] of Object.entries(total.lost)) {
      if (samples > 0) wanted.push([cause, samples, each(last?.lost[causeIndex(cause)]), causeIndex(cause)]);
    }
    if (total.held) wanted.push(["in flight", total.held, null, null]);
    wanted.push(["sum", total.delivered + total.held + total.lostTotal, each(last?.expected), null]);
    const names = wanted.map(([name]) => name).join();
    if (this.names !== names) {
      this.names = names;
      this.rows.clear();
      const body = wanted.map(([name, , , index]) => {
        const cells = [make("td"), make("td"), make("td")];
        const mark = make("i", { class: "swatch", "aria-hidden": "true" });
        mark.style.background = index === null ? (name === delivered ? "var(--delivered)" : name === "in flight" ? "var(--held)" : "transparent") : causeColour(index);
        if (index !== null && index > 7) mark.classList.add("hatched");
        this.rows.set(name, cells);
        return make("tr", { class: name === "sum" ? "sum" : null }, make("th", { scope: "row" }, mark, words(name)), cells);
      });
      const head = ["", "samples", "share", "now, per s"].map((name) => make("th", { scope: "col" }, name));
      const caption = make("caption", { class: "hidden" }, "Samples by what became of them");
      byId("causes").replaceChildren(caption, make("thead", {}, make("tr", {}, head)), make("tbody", {}, body));
    }
    for (const [name, samples, recent] of wanted) {
      const [all, part, second] = this.rows.get(name);
      text(all, count(samples));
      text(part, total.expected ? share(samples / total.expected) : "–");
      text(second, recent === null ? "–" : si(recent, "", 4));
    }
  }

  draw(store) {
    this.dirty = false;
    if (!store.ledgers.length) return;
    const most = Math.max(10, Math.min(120, Math.floor((this.all.width - LEFT - RIGHT) / 4)));
    const bars = this.bars(store.ledger, most);
    // The axis grows with what there is to show.
    const wanted = Math.min(most, Math.max(30, Math.ceil(bars.length / 30) * 30));
    const newest = bars.at(-1)?.second ?? 0;
    this.stack(this.all, bars, newest, wanted, (bar) => [[bar.delivered / bar.time, colour("delivered")],
      [Math.max(0, bar.held) / bar.time, colour("held")],
      ...bar.lost.map((samples, index) => [samples / bar.time, index])], "samples/s", true);
    const lost = (bar) => bar.lost.map((samples, index) => [samples / bar.time, index]);
    this.stack(this.lost, bars, newest, wanted, lost, "lost/s", false);
  }

  /** Draws bars of stacked parts; with `expected` as a line over them, which must meet their tops. */
  stack(surface, bars, newest, wanted, parts, unit, withLine) {
    const context = surface.begin(), top = 14, bottom = surface.height - 16, width = surface.width - LEFT - RIGHT;
    const stacks = bars.map((bar) => parts(bar));
    let most = 0;
    stacks.forEach((stack, index) => {
      const sum = stack.reduce((sum, [value]) => sum + value, 0);
      most = Math.max(most, sum, withLine ? bars[index].expected / bars[index].time : 0);
    });
    context.fillStyle = colour("dim");
    context.textAlign = "left";
    context.fillText(unit, LEFT, 6);
    if (!most) {
      if (bars.length) {
        context.textAlign = "center";
        context.fillText(withLine ? "no samples" : "nothing lost in this time", LEFT + width / 2, (top + bottom) / 2);
      }
      context.fillStyle = colour("grid");
      context.fillRect(LEFT, bottom, width, 1);
      return;
    }
    const scale = ticks(0, most * 1.05, (bottom - top) / 26);
    const y = (value) => bottom - (value / (most * 1.05)) * (bottom - top);
    context.textAlign = "right";
    for (const value of scale.values) {
      context.fillStyle = colour("grid");
      context.fillRect(LEFT, Math.round(y(value)), width, 1);
      context.fillStyle = colour("dim");
      context.fillText(value === 0 ? "0" : si(value, "", 2), LEFT - 6, y(value));
    }
    const slot = width / wanted;
    context.textAlign = "center";
    bars.forEach((bar, index) => {
      const x = LEFT + width - (newest - bar.second + 1) * slot, wide = Math.max(1, slot - 1);
      if (x < LEFT - 0.5) return;
      let base = 0;
      for (const [value, fill] of stacks[index]) {
        if (!value) continue;
        const upper = y(base + value), isLoss = typeof fill === "number";
        context.fillStyle = isLoss ? causeFill(context, fill) : fill;
        // A loss is never too small to be seen.
        const high = Math.max(y(base) - upper, isLoss ? 1.5 : 0);
        context.fillRect(x, y(base) - high, wide, high);
        base += value;
      }
      if (withLine) {
        const expected = bar.expected / bar.time, sum = bar.delivered + bar.held + bar.lostTotal;
        // In a second, more may be transmitted than was given: then fewer are in flight.
        context.fillStyle = Math.abs(bar.expected - sum) < 1 ? colour("line") : colour("bad");
        context.fillRect(x, y(expected) - 1, wide + 1, 1.5);
      }
    });
    context.fillStyle = colour("dim");
    for (let back = 0; back < wanted; back += wanted > 30 ? 30 : 10) {
      const x = LEFT + width - (back + 0.5) * slot;
      context.textAlign = back === 0 ? "right" : "center";
      context.fillText(back === 0 ? "now" : `−${back} s`, back === 0 ? LEFT + width : x, bottom + 9);
    }
  }
}
