// The receiver of ATSC television: its symbols, its state, and the modulation error ratio over time.

import { Surface, colour, ticks } from "./draw.js";
import { byId, make, text } from "./dom.js";
import { count, hertz, words } from "./format.js";

const FRAMES_SHOWN = 4;

export class TelevisionPanel {
  constructor() {
    this.points = new Surface(byId("constellation"), () => { this.dirty = true; });
    this.mer = new Surface(byId("mer"), () => { this.dirty = true; });
    this.clear();
  }

  clear() {
    this.frames = [];
    this.dirty = true;
  }

  /** Takes a frame of symbols. */
  take(frame) {
    this.frames.push(frame);
    if (this.frames.length > FRAMES_SHOWN) this.frames.shift();
    this.dirty = true;
  }

  update(store) {
    const signal = store.status?.signals?.[0];
    this.stream = store.hello?.streams?.find((stream) => stream.kind === "symbols") ?? null;
    byId("television").hidden = !signal && !this.stream;
    byId("constellation").hidden = !this.stream;
    if (!signal) return;
    const chip = byId("lock");
    text(chip, words(signal.state));
    chip.dataset.good = signal.state === "locked" ? "yes" : "no";
    const decibel = (value) => (value === null || value === undefined ? "–" : `${value.toFixed(1)} dB`);
    const figures = [
      ["MER", decibel(signal.mer_db)], ["SNR", decibel(signal.snr_db)], ["pilot off by", hertz(signal.pilot_offset_hz ?? NaN, 1)],
      ["clock off by", Number.isFinite(signal.clock_offset_ppm) ? `${signal.clock_offset_ppm.toFixed(2).replace("-0.00", "0.00")} ppm` : "–"],
      ["packets", count(signal.packets)], ["corrected", count(signal.corrected_bytes)],
      ["bad packets", count(signal.uncorrected_packets)], ["missing", count(signal.missing_samples)],
    ];
    if (!this.cells) {
      this.cells = figures.map(([name]) => [make("dt", {}, name), make("dd")]);
      byId("television-figures").replaceChildren(...this.cells.map((pair) => make("div", {}, pair)));
    }
    figures.forEach(([, value], index) => text(this.cells[index][1], value));
    byId("television-figures").dataset.bad = signal.uncorrected_packets > 0 ? "some" : "none";
    this.dirty = true;
  }

  draw(store) {
    this.dirty = false;
    if (this.stream) this.drawPoints();
    this.drawRatio(store.signal);
  }

  drawPoints() {
    const context = this.points.begin(), { width, height } = this.points, levels = this.stream.levels ?? [];
    context.fillStyle = colour("well");
    context.fillRect(0, 0, width, height);
    const most = (levels.length ? Math.max(...levels.map(Math.abs)) : 1) * 1.3;
    const y = (value) => height / 2 - (value / most) * (height / 2);
    const isComplex = this.frames.at(-1)?.average === 2;
    context.fillStyle = colour("dim");
    context.textAlign = "right";
    for (const level of levels) {
      context.fillStyle = colour("grid");
      context.fillRect(24, Math.round(y(level)), width - 24, 1);
      context.fillStyle = colour("dim");
      context.fillText(level > 0 ? `+${level}` : `−${-level}`, 20, y(level));
    }
    context.fillStyle = colour("trace");
    this.frames.forEach((frame, index) => {
      context.globalAlpha = 0.2 + (0.6 * (index + 1)) / this.frames.length;
      const { values, bins } = frame;
      for (let point = 0; point < bins; point += 1) {
        const [across, up] = isComplex ? [width / 2 + (values[2 * point] / most) * (height / 2), values[2 * point + 1]]
          : [26 + ((point + 0.5) / bins) * (width - 74), values[point]];
        context.fillRect(across - 0.75, y(up) - 0.75, 1.5, 1.5);
      }
    });
    context.globalAlpha = 1;
    if (!isComplex) this.drawDensity(context, y, most);
  }

  /** How often each value occurs, at the right edge: symbols with one coordinate have no second axis. */
  drawDensity(context, y, most) {
    const { width, height } = this.points, bars = new Float64Array(Math.max(1, Math.floor(height / 2)));
    for (const { values } of this.frames) {
      for (const value of values) {
        const bar = Math.floor(((most - value) / (2 * most)) * bars.length);
        if (bar >= 0 && bar < bars.length) bars[bar] += 1;
      }
    }
    const highest = Math.max(1, ...bars);
    context.fillStyle = colour("peak");
    bars.forEach((value, bar) => {
      const long = (value / highest) * 40;
      if (long > 0.4) context.fillRect(width - 3 - long, bar * 2, long, 2);
    });
  }

  drawRatio(history) {
    const context = this.mer.begin(), left = 34, top = 6, width = this.mer.width - left - 6, bottom = this.mer.height - 6;
    if (!history.length) return;
    let low = Infinity, high = -Infinity;
    for (let row = 0; row < history.length; row += 1) {
      for (const column of [1, 2]) {
        const value = history.get(row, column);
        if (Number.isFinite(value)) { low = Math.min(low, value); high = Math.max(high, value); }
      }
    }
    if (low > high) return;
    low = Math.floor((low - 1) / 5) * 5;
    high = Math.ceil((high + 1) / 5) * 5;
    const y = (value) => bottom - ((value - low) / (high - low)) * (bottom - top);
    context.textAlign = "right";
    for (const value of ticks(low, high, 3).values) {
      context.fillStyle = colour("grid");
      context.fillRect(left, Math.round(y(value)), width, 1);
      context.fillStyle = colour("dim");
      context.fillText(`${value}`, left - 5, Math.min(y(value), bottom - 4));
    }
    const end = history.get(history.length - 1, 0), begin = Math.min(history.get(0, 0), end - 30);
    [[2, "peak"], [1, "trace"]].forEach(([column, name]) => {
      context.strokeStyle = colour(name);
      context.lineWidth = 1.5;
      context.setLineDash(column === 2 ? [4, 3] : []);
      context.beginPath();
      let begun = false;
      for (let row = 0; row < history.length; row += 1) {
        const value = history.get(row, column);
        if (!Number.isFinite(value)) { begun = false; continue; }
        const x = left + ((history.get(row, 0) - begin) / (end - begin)) * width;
        if (begun) context.lineTo(x, y(value)); else context.moveTo(x, y(value));
        begun = true;
      }
      context.stroke();
      context.setLineDash([]);
      context.fillStyle = colour(name);
      context.textAlign = "left";
      context.fillText(column === 1 ? "MER, dB" : "SNR, dB", left + (column === 1 ? 4 : 62), bottom - 8);
    });
  }
}
