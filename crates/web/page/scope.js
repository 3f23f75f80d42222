// The spectrum above its waterfall, on one axis of frequencies; zoom, cursor and marker.

import { Surface, colour, ticks } from "./draw.js";
import { Waterfall } from "./waterfall.js";
import { byId, text } from "./dom.js";
import { hertz, seconds, share } from "./format.js";
import { attachPointer } from "./pointer.js";

const AXIS = 24;
/** Why there is no spectrum yet, by the command. */
const EMPTY = {
  "sim radio": "This radio sends nothing on this channel now: the spectrum appears when a host receives from it.",
  tx: "Nothing has been sent yet.",
  view: "The recording has not begun yet.",
};

export class Scope {
  /** `changed` is called when the view changed, so that the subscription can follow it. */
  constructor(changed) {
    this.changed = changed;
    const again = () => { this.waterfall.stale = true; this.dirty = true; this.changed(); };
    this.spectrum = new Surface(byId("spectrum"), again);
    this.waterfall = new Waterfall(new Surface(byId("waterfall"), again));
    this.overlay = new Surface(byId("cursor"), () => { this.dirty = true; });
    this.peakHold = true;
    this.held = false;
    this.marker = null;
    this.cursor = null;
    this.clear();
    attachPointer(byId("stack"), this);
  }

  clear() {
    this.levels = null;
    this.peaks = null;
    this.frame = null;
    this.shares = [];
    this.range = null;
    this.from = this.to = null;
    this.whole = true;
    this.marker = null;
    this.waterfall.clear();
    this.dirty = true;
  }

  /** The stream shown, as `hello` describes it, of a command with this verb. */
  setStream(stream, verb) {
    text(byId("scope-empty"), EMPTY[verb] ?? "No samples have come yet.");
    if (this.stream?.stream !== stream?.stream) this.clear();
    this.stream = stream;
    this.dirty = true;
  }

  /** The places of the pictures: both have the same columns. */
  plot(surface) {
    const left = surface.width < 520 ? 46 : 58, right = 10;
    const isSpectrum = surface === this.spectrum;
    return {
      left, top: isSpectrum ? 8 : 1, width: Math.max(10, surface.width - left - right),
      height: Math.max(10, surface.height - (isSpectrum ? 8 + AXIS : 3)),
    };
  }

  /** Takes a line of the stream. */
  take(frame) {
    this.waterfall.take(frame, this.stream, this.held);
    if (this.held) return;
    const before = this.frame;
    const moved = !before || before.centre !== frame.centre || before.span !== frame.span;
    if (moved || before.bins !== frame.bins) {
      this.levels = new Float32Array(frame.bins);
      this.peaks = new Float32Array(frame.bins).fill(-Infinity);
    }
    this.frame = frame;
    if (moved) this.moveBand(before);
    const { values, reference, step } = frame, isByte = values instanceof Uint8Array;
    for (let bin = 0; bin < frame.bins; bin += 1) {
      const level = isByte ? reference + step * values[bin] : values[bin];
      this.levels[bin] = level;
      if (level > this.peaks[bin]) this.peaks[bin] = level;
    }
    this.shares.push(frame.share);
    if (this.shares.length > 30) this.shares.shift();
    this.follow();
    this.dirty = true;
  }

  /** The shown band follows a new frequency; a part of it that was looked at stays where it was in the band. */
  moveBand(before) {
    const { centre, span } = this.frame, low = centre - span / 2, high = centre + span / 2;
    if (this.whole || this.from === null || this.to <= low || this.from >= high) {
      if (this.whole || !before) this.show(low, high, true);
      else this.show(this.from + centre - before.centre, this.to + centre - before.centre, false);
    }
  }

  /** Shows these frequencies, as far as the band has them. */
  show(from, to, whole = false) {
    if (!this.frame) return;
    const { centre, span, bins } = this.frame, low = centre - span / 2, high = centre + span / 2;
    let width = Math.min(Math.max(to - from, span / 16384 * 8), span);
    let start = Math.min(Math.max(from, low), high - width);
    this.whole = whole || width >= span * 0.9999;
    if (this.whole) { start = low; width = span; }
    if (this.whole) start = low - span / bins / 2;
    this.from = start;
    this.to = start + width;
    this.waterfall.set({ from: this.from, to: this.to });
    this.dirty = true;
    this.changed();
  }

  showWhole() { if (this.frame) this.show(this.frame.centre - this.frame.span / 2, this.frame.centre + this.frame.span / 2, true); }

  /** Zooms by a factor about a frequency. */
  zoom(factor, about = (this.from + this.to) / 2) {
    if (this.from === null) return;
    this.show(about - (about - this.from) * factor, about + (this.to - about) * factor);
  }

  pan(hz) { if (!this.whole) this.show(this.from + hz, this.to + hz); }

  /** Levels of the axis and the colours follow the noise and the strongest signal, slowly. */
  follow() {
    const levels = this.levels, step = Math.max(1, levels.length >> 8), some = [];
    for (let bin = 0; bin < levels.length; bin += step) if (levels[bin] > -190) some.push(levels[bin]);
    if (!some.length) return;
    some.sort((one, other) => one - other);
    let top = -Infinity;
    for (const level of levels) if (level > top) top = level;
    const noise = some[some.length >> 5], now = this.range;
    if (!now) this.range = { noise, top };
    else {
      now.noise += (noise - now.noise) * 0.05;
      now.top = top > now.top ? top : now.top + (top - now.top) * 0.01;
    }
    const { noise: floor, top: most } = this.range;
    const low = Math.floor((floor - 14) / 10) * 10, high = Math.ceil((Math.max(most, floor + 30) + 4) / 10) * 10;
    // With some slack, so that the axis does not jump to and fro.
    if (this.low === undefined || Math.abs(low - this.low) >= 10 || Math.abs(high - this.high) >= 10) {
      this.low = low;
      this.high = high;
      const colourLow = Math.round((floor - 4) / 5) * 5, colourHigh = Math.max(colourLow + 35, Math.min(high, colourLow + 70));
      this.waterfall.set({ low: colourLow, high: colourHigh });
    }
  }

  frequencyAt(x) {
    const plot = this.plot(this.spectrum);
    return this.from + ((x - plot.left) / plot.width) * (this.to - this.from);
  }
  xOf(frequency) {
    const plot = this.plot(this.spectrum);
    return plot.left + ((frequency - this.from) / (this.to - this.from)) * plot.width;
  }
  binOf(frequency) { return Math.round(((frequency - this.frame.centre) / this.frame.span + 0.5) * this.frame.bins); }
  frequencyOf(bin) { return this.frame.centre + (bin / this.frame.bins - 0.5) * this.frame.span; }

  /** Mean share of the samples that the last lines looked at. */
  share() {
    return this.shares.length ? this.shares.reduce((sum, one) => sum + one, 0) / this.shares.length : null;
  }

  draw(gaps) {
    const plot = this.plot(this.spectrum), context = this.spectrum.begin();
    byId("scope-empty").hidden = Boolean(this.frame);
    this.waterfall.draw(this.plot(this.waterfall.surface), gaps, this.stream);
    this.drawAxes(context, plot);
    if (this.frame && this.from !== null) {
      if (this.peakHold) this.curve(context, plot, this.peaks, "peak", false);
      this.curve(context, plot, this.levels, "trace", true);
    }
    this.drawCursor();
    this.publish(plot);
    this.dirty = false;
  }

  drawAxes(context, plot) {
    context.fillStyle = colour("well");
    context.fillRect(plot.left, plot.top, plot.width, plot.height);
    if (this.low === undefined || this.from === null) return;
    const { values } = ticks(this.low, this.high, plot.height / 28);
    context.textAlign = "right";
    for (const level of values) {
      const y = Math.round(this.yOf(plot, level)) + 0.5;
      context.strokeStyle = colour("grid");
      context.beginPath(); context.moveTo(plot.left, y); context.lineTo(plot.left + plot.width, y); context.stroke();
      context.fillStyle = colour("dim");
      if (y > plot.top + 16) context.fillText(level.toFixed(0).replace("-", "−"), plot.left - 6, y);
    }
    context.fillText("dBFS", plot.left - 6, plot.top + 5);
    context.textAlign = "center";
    const { step, values: places } = ticks(this.from, this.to, plot.width / (plot.width < 420 ? 68 : 96));
    for (const frequency of places) {
      const x = Math.round(this.xOf(frequency)) + 0.5;
      context.strokeStyle = colour("grid");
      context.beginPath(); context.moveTo(x, plot.top); context.lineTo(x, plot.top + plot.height + 4); context.stroke();
      const label = this.label(frequency, step), half = context.measureText(label).width / 2;
      context.fillStyle = colour("dim");
      const at = Math.min(Math.max(x, half + 2), this.spectrum.width - half - 2);
      context.fillText(label, at, plot.top + plot.height + 13);
    }
  }

  /** A frequency in words; without a known rate it is a share of the rate. */
  label(frequency, step) {
    if (this.frame.span === 1) return `${frequency.toFixed(3)} fs`;
    return hertz(frequency, step, Math.max(Math.abs(this.from), Math.abs(this.to)));
  }

  yOf(plot, level) { return plot.top + ((this.high - level) / (this.high - this.low)) * plot.height; }

  /** Draws levels: in each column from the lowest to the highest bin, so that no peak is missed. */
  curve(context, plot, levels, name, filled) {
    const { centre, span, bins } = this.frame, per = ((this.to - this.from) / plot.width / span) * bins;
    const first = ((this.from - centre) / span + 0.5) * bins + 0.5;
    context.save();
    context.beginPath();
    context.rect(plot.left, plot.top, plot.width, plot.height);
    context.clip();
    context.beginPath();
    let begun = false;
    if (per >= 1) {
      for (let x = 0; x <= plot.width; x += 1) {
        let bin = Math.max(0, Math.floor(first + x * per)), most = -Infinity;
        const end = Math.min(bins, Math.floor(first + (x + 1) * per));
        for (; bin < end; bin += 1) if (levels[bin] > most) most = levels[bin];
        if (most === -Infinity) continue;
        const y = this.yOf(plot, most);
        if (begun) context.lineTo(plot.left + x, y); else context.moveTo(plot.left + x, y);
        begun = true;
      }
    } else {
      const from = Math.max(0, Math.floor(first) - 1), to = Math.min(bins - 1, Math.ceil(first + plot.width * per) + 1);
      for (let bin = from; bin <= to; bin += 1) {
        if (levels[bin] === -Infinity) continue;
        const x = this.xOf(this.frequencyOf(bin)), y = this.yOf(plot, levels[bin]);
        if (begun) context.lineTo(x, y); else context.moveTo(x, y);
        begun = true;
      }
    }
    context.strokeStyle = colour(name);
    context.lineWidth = filled ? 1.3 : 1;
    context.stroke();
    if (filled && begun) {
      context.lineTo(plot.left + plot.width, plot.top + plot.height);
      context.lineTo(plot.left, plot.top + plot.height);
      context.closePath();
      context.fillStyle = colour("trace-fill");
      context.fill();
    }
    context.restore();
  }

  /** The strongest bin within a few pixels of a place. */
  snap(x, reach = 5) {
    const from = Math.max(0, this.binOf(this.frequencyAt(x - reach)));
    const to = Math.min(this.frame.bins - 1, this.binOf(this.frequencyAt(x + reach)));
    let best = from;
    for (let bin = from; bin <= to; bin += 1) if (this.levels[bin] > this.levels[best]) best = bin;
    return Math.min(best, this.frame.bins - 1);
  }

  drawCursor() {
    const context = this.overlay.begin(), plot = this.plot(this.spectrum);
    if (!this.frame || this.from === null) return;
    const line = (frequency, name, dash) => {
      const x = Math.round(this.xOf(frequency)) + 0.5;
      if (x < plot.left || x > plot.left + plot.width) return;
      context.strokeStyle = colour(name);
      context.setLineDash(dash);
      context.beginPath(); context.moveTo(x, plot.top); context.lineTo(x, this.overlay.height - 2); context.stroke();
      context.setLineDash([]);
    };
    if (!this.whole) {
      const { centre, span } = this.frame, at = (hz) => plot.left + ((hz - centre) / span + 0.5) * plot.width;
      context.fillStyle = colour("grid");
      context.fillRect(plot.left, 2, plot.width, 3);
      context.fillStyle = colour("accent");
      context.fillRect(at(this.from), 2, Math.max(3, at(this.to) - at(this.from)), 3);
    }
    if (this.marker !== null) line(this.marker.frequency, "marker", [5, 3]);
    if (!this.cursor) return;
    const under = Math.min(Math.max(0, this.binOf(this.frequencyAt(this.cursor.x))), this.frame.bins - 1);
    const bin = this.cursor.time === null ? this.snap(this.cursor.x) : under;
    const frequency = this.frequencyOf(bin);
    this.pointed = { frequency, level: this.levels[bin] };
    line(frequency, "cursor", []);
    context.fillStyle = colour("cursor");
    const y = this.yOf(plot, this.levels[bin]);
    if (y > plot.top && y < plot.top + plot.height) {
      context.beginPath(); context.arc(this.xOf(frequency), y, 3, 0, 7); context.fill();
    }
    this.read(bin, frequency);
  }

  read(bin, frequency) {
    const step = Math.min(this.frame.span / this.frame.bins, (this.to - this.from) / 1000);
    const parts = [this.label(frequency, step), `${this.levels[bin].toFixed(1)} dBFS`];
    if (this.peakHold && Number.isFinite(this.peaks[bin])) parts.push(`peak ${this.peaks[bin].toFixed(1)}`);
    if (this.cursor.time !== null) {
      const line = this.waterfall.lineAt(this.cursor.time);
      const bar = this.waterfall.bars.find(({ begin, end }) => this.cursor.time >= begin && this.cursor.time <= end);
      if (line) {
        const at = Math.round(((frequency - line.centre) / line.span + 0.5) * line.bins), value = line.values[at];
        const level = line.values instanceof Uint8Array ? line.reference + line.step * value : value;
        if (value !== undefined) parts[1] = `${level.toFixed(1)} dBFS`;
        parts.push(`at ${line.time.toFixed(3)} s`, `${share(line.share)} seen`);
      } else parts.push(bar ? `gap of ${seconds(bar.end - bar.begin)}` : "no line");
    }
    if (this.marker) {
      const away = frequency - this.marker.frequency;
      const apart = this.frame.span === 1 ? away.toFixed(4) : hertz(away, step);
      parts.push(`Δ ${apart}, ${(this.levels[bin] - this.marker.level).toFixed(1)} dB`);
    }
    text(byId("readout"), parts.join(" · "));
  }

  /** Says on the elements what they show, for screen readers and for tests. */
  publish(plot) {
    const stack = byId("stack"), now = performance.now();
    if (this.from === null || now - (this.published ?? 0) < 200) return;
    this.published = now;
    let best = 0;
    for (let bin = 1; bin < this.levels.length; bin += 1) if (this.levels[bin] > this.levels[best]) best = bin;
    Object.assign(stack.dataset, {
      fromHz: this.from, toHz: this.to, plotLeft: plot.left, plotWidth: plot.width, bins: this.frame.bins,
      strongestHz: this.frequencyOf(best), top: this.plot(this.waterfall.surface).top,
      newestS: this.waterfall.timeAt(0), pixelS: this.waterfall.rowSeconds * this.spectrum.scale,
    });
    const strongest = `${this.levels[best].toFixed(0)} dBFS at ${this.label(this.frequencyOf(best), this.frame.span / 1e4)}`;
    const label = `Spectrum, ${hertz(this.from, 1e3)} to ${hertz(this.to, 1e3)}, strongest ${strongest}`;
    byId("spectrum").setAttribute("aria-label", label);
    const gaps = this.waterfall.bars?.length ?? 0;
    byId("waterfall").setAttribute("aria-label", `Waterfall of ${this.waterfall.seconds} s, ${gaps} gaps in sight`);
  }
}
