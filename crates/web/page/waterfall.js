// The waterfall: lines of a spectrum, newest at the top, on an axis of the device's time. Gaps are bars at their time.

import { causeColour, colour, palette, ticks } from "./draw.js";
import { clock, count, seconds, words } from "./format.js";
import { causeIndex } from "./store.js";

const LINES_KEPT = 1800;
const BYTES_KEPT = 12e6;
// A line stands for the time since the line before, up to this many times the usual distance; then nothing is shown.
const REACH = 3.5;

/** The device's time of a line or the end of a gap, in seconds; streams without a clock count their samples. */
export function lineTime(frame, stream) {
  if (frame.hasTicks && stream?.ticks_hz) return frame.ticks / stream.ticks_hz;
  return frame.item / (frame.span > 1 ? frame.span : 1);
}

/** Begin and end of a gap on the same axis. */
export function gapTime(gap, stream, withTicks) {
  const rate = stream?.rate_hz || 1;
  if (withTicks && gap.ticks !== null && gap.ticks !== undefined && stream?.ticks_hz) {
    const end = gap.ticks / stream.ticks_hz;
    return [end - gap.items / rate, end];
  }
  return [gap.item / rate, gap.item / rate];
}

/** The cause that lost most of a gap, and whether it is the only one. */
export function mainCause(lost) {
  const causes = Object.entries(lost ?? {}).filter(([, samples]) => samples > 0).sort((a, b) => b[1] - a[1]);
  return causes.length ? causes[0][0] : "unknown";
}

export class Waterfall {
  constructor(surface) {
    this.surface = surface;
    this.lines = [];
    this.bytes = 0;
    this.seconds = 10;
    this.low = -110;
    this.high = -40;
    this.ring = document.createElement("canvas");
    this.pen = this.ring.getContext("2d", { alpha: true });
    this.clear();
    this.setPalette("viridis");
  }

  clear() {
    this.lines.length = 0;
    this.bytes = 0;
    this.base = null;
    this.heldAt = null;
    this.newest = 0;
    this.period = 1 / 30;
    this.withTicks = false;
    this.stale = true;
  }

  setPalette(name) {
    this.colours = palette(name);
    this.stale = true;
  }

  /** Sets how many seconds fit, the levels of the palette's ends, or the shown frequencies. */
  set(changes) {
    for (const [name, value] of Object.entries(changes)) {
      if (this[name] !== value) { this[name] = value; this.stale = true; }
    }
  }

  /** Holds the picture still, or lets it follow the lines again. */
  hold(held) {
    this.heldAt = held ? this.lines.at(-1)?.time ?? null : null;
    this.stale = true;
  }

  /** Takes a line; while `held` it is only kept. */
  take(frame, stream, held) {
    const time = lineTime(frame, stream);
    frame.time = time;
    const last = this.lines.at(-1);
    // Time that goes back is another run or another part of a recording.
    if (last && (time < last.time || frame.hasTicks !== last.hasTicks)) this.clear();
    this.withTicks = frame.hasTicks && Boolean(stream?.ticks_hz);
    frame.since = this.since(last, time);
    this.lines.push(frame);
    this.bytes += frame.values.byteLength;
    let old = 0;
    while (this.lines.length - old > LINES_KEPT || this.bytes > BYTES_KEPT) this.bytes -= this.lines[old++].values.byteLength;
    if (old) this.lines.splice(0, old);
    if (!held && !this.stale) this.paint(frame);
  }

  /** The time from which on a line is shown. */
  since(last, time) {
    if (!last) return time - this.period;
    const distance = time - last.time;
    if (distance < this.period * REACH || this.lines.length < 8) {
      this.period += (distance - this.period) / Math.min(16, this.lines.length + 1);
      return last.time;
    }
    // The distance may have become longer for good.
    this.period *= 1.1;
    return time - this.period;
  }

  row(time) { return Math.floor((time - this.base) / this.rowSeconds); }

  /** Where a time is, in CSS pixels from the top. */
  y(time) { return ((this.newest + 1) * this.rowSeconds + this.base - time) / this.rowSeconds / this.surface.scale; }

  /** The time at a place. */
  timeAt(y) { return this.base + (this.newest + 1) * this.rowSeconds - y * this.surface.scale * this.rowSeconds; }

  /** The newest line that began at or before a time. */
  lineAt(time) {
    let low = 0, high = this.lines.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.lines[middle].time < time) low = middle + 1; else high = middle;
    }
    const line = this.lines[low];
    return line && time >= line.since ? line : null;
  }

  /** Which bins each column shows: first and one behind the last; an empty column has none. */
  columns(frame) {
    const key = `${frame.bins} ${frame.centre} ${frame.span} ${this.from} ${this.to} ${this.ring.width}`;
    if (this.columnsKey === key) return this.columnsMap;
    const width = this.ring.width, map = new Int32Array(width + 1);
    const perColumn = (this.to - this.from) / width / frame.span * frame.bins;
    // A bin reaches half its width to both sides of its frequency.
    const first = ((this.from - frame.centre) / frame.span + 0.5) * frame.bins + 0.5;
    for (let x = 0; x <= width; x += 1) map[x] = Math.floor(first + x * perColumn);
    this.columnsKey = key;
    this.columnsMap = map;
    return map;
  }

  paint(frame) {
    if (this.base === null) this.base = frame.time;
    const from = this.row(frame.since) + 1, to = this.row(frame.time);
    if (to > this.newest) {
      const height = this.ring.height;
      for (let row = Math.max(this.newest + 1, to - height + 1); row <= to; row += 1) {
        this.pen.clearRect(0, this.ringY(row), this.ring.width, 1);
      }
      this.newest = to;
    }
    this.fillRow(frame);
    for (let row = Math.max(Math.min(from, to), this.newest - this.ring.height + 1); row <= to; row += 1) {
      this.pen.putImageData(this.image, 0, this.ringY(row));
    }
  }

  fillRow(frame) {
    const map = this.columns(frame), { values, bins, reference, step } = frame, words = this.words, width = this.ring.width;
    const scale = 255 / (this.high - this.low), isByte = values instanceof Uint8Array;
    const factor = (isByte ? step : 1) * scale, offset = ((isByte ? reference : 0) - this.low) * scale;
    for (let x = 0; x < width; x += 1) {
      let bin = map[x];
      const end = Math.min(map[x + 1], bins);
      if (bin < 0 || bin >= bins) { words[x] = 0; continue; }
      let most = values[bin];
      for (bin += 1; bin < end; bin += 1) if (values[bin] > most) most = values[bin];
      const index = most * factor + offset;
      words[x] = this.colours[index < 0 ? 0 : index > 255 ? 255 : index | 0];
    }
  }

  ringY(row) {
    const height = this.ring.height;
    return height - 1 - (((row % height) + height) % height);
  }

  /** Paints all kept lines anew, after something changed that all depend on. */
  repaint(plot) {
    const scale = this.surface.scale;
    const width = Math.max(1, Math.round(plot.width * scale)), height = Math.max(1, Math.round(plot.height * scale));
    if (this.ring.width !== width || this.ring.height !== height) {
      this.ring.width = width;
      this.ring.height = height;
      this.columnsKey = null;
    }
    this.pen.clearRect(0, 0, width, height);
    this.image = this.pen.createImageData(width, 1);
    this.words = new Uint32Array(this.image.data.buffer);
    this.rowSeconds = this.seconds / height;
    const end = this.heldAt ?? this.lines.at(-1)?.time;
    this.stale = false;
    if (end === undefined) return;
    this.base ??= end;
    this.newest = this.row(end);
    for (const line of this.lines) if (line.time >= end - this.seconds && line.time <= end) this.paint(line);
  }

  /** Draws everything; `gaps` are those of the stream. */
  draw(plot, gaps, stream) {
    const context = this.surface.begin();
    if (this.stale) this.repaint(plot);
    context.fillStyle = colour("well");
    context.fillRect(plot.left, plot.top, plot.width, plot.height);
    if (this.lines.length) {
      const at = this.ringY(this.newest), { width, height } = this.ring, per = plot.height / height;
      context.imageSmoothingEnabled = false;
      context.drawImage(this.ring, 0, at, width, height - at, plot.left, plot.top, plot.width, (height - at) * per);
      if (at) context.drawImage(this.ring, 0, 0, width, at, plot.left, plot.top + (height - at) * per, plot.width, at * per);
      this.drawTimes(context, plot);
    }
    this.bars = this.lines.length ? this.placeGaps(plot, gaps, stream) : [];
    this.drawGaps(context, plot);
  }

  drawTimes(context, plot) {
    const top = this.timeAt(0), bottom = this.timeAt(plot.height);
    const { step, values } = ticks(bottom, top, plot.height / 44);
    const places = Math.max(0, Math.min(6, -Math.floor(Math.log10(step) + 1e-9)));
    context.fillStyle = colour("dim");
    context.textAlign = "right";
    for (const value of values) {
      const y = plot.top + this.y(value);
      // No radio's time begins before 0.
      if (value < 0 || y < plot.top + 5 || y > plot.top + plot.height - 4) continue;
      context.fillText(value > 1e6 ? clock(value) : `${value.toFixed(places)} s`, plot.left - 6, y);
      context.fillRect(plot.left - 4, Math.round(y), 4, 1);
    }
  }

  /** Gaps that are in sight; those closer than a label is high share one. */
  placeGaps(plot, gaps, stream) {
    const bars = [];
    for (const gap of gaps) {
      const [begin, end] = gapTime(gap, stream, this.withTicks);
      const bottom = this.y(begin), top = this.y(end);
      if (bottom < 0 || top > plot.height) continue;
      bars.push({ top, bottom, begin, end, items: gap.items, cause: mainCause(gap.lost), count: 1 });
    }
    bars.sort((one, other) => one.top - other.top);
    const labels = [];
    for (const bar of bars) {
      const label = labels.at(-1);
      if (label && bar.top - label.y < 17) {
        label.count += 1;
        label.items += bar.items;
        label.causes.add(bar.cause);
      } else {
        labels.push({ y: bar.top, count: 1, items: bar.items, causes: new Set([bar.cause]), length: bar.end - bar.begin });
      }
    }
    this.labels = labels;
    return bars;
  }

  /** Fills the place of a long gap: there were no samples, so there is no colour of a level. */
  hatch(context, plot, y, height, cause) {
    context.fillRect(plot.left, y, plot.width, height);
    context.fillStyle = colour("well");
    context.fillRect(plot.left, y + 1.5, plot.width, height - 3);
    context.save();
    context.beginPath();
    context.rect(plot.left, y + 1.5, plot.width, height - 3);
    context.clip();
    context.strokeStyle = cause;
    context.globalAlpha = 0.55;
    context.lineWidth = 2;
    context.beginPath();
    for (let x = plot.left - height; x < plot.left + plot.width; x += 9) {
      context.moveTo(x, y + height);
      context.lineTo(x + height, y);
    }
    context.stroke();
    context.restore();
  }

  drawGaps(context, plot) {
    if (!this.bars.length) return;
    context.save();
    context.beginPath();
    context.rect(0, plot.top, plot.left + plot.width, plot.height);
    context.clip();
    // Many gaps may not hide the lines between them.
    const least = this.bars.length > 60 ? 1 : 2;
    for (const bar of this.bars) {
      const height = Math.max(least, bar.bottom - bar.top), y = plot.top + bar.top, cause = causeColour(causeIndex(bar.cause));
      context.fillStyle = colour("gap");
      if (height < 6) context.fillRect(plot.left, y, plot.width, height);
      else this.hatch(context, plot, y, height, cause);
      context.fillStyle = cause;
      context.fillRect(plot.left, y, 7, height);
      context.fillRect(plot.left + plot.width - 7, y, 7, height);
    }
    context.textAlign = "left";
    for (const label of this.labels) {
      const causes = [...label.causes].map((cause) => (cause === "recording" ? "in the recording" : words(cause))).join(", ");
      const length = label.count === 1 && label.length > 0 ? `, ${seconds(label.length)}` : "";
      const what = label.count === 1 ? `gap: ${count(label.items)} samples${length}, ${causes}`
        : `${label.count} gaps: ${count(label.items)} samples, ${causes}`;
      const wide = context.measureText(what).width + 10;
      const x = plot.left + 10, y = Math.min(plot.top + label.y + 3, plot.top + plot.height - 17);
      context.fillStyle = colour("label");
      context.fillRect(x, y, Math.min(wide, plot.width - 16), 15);
      context.fillStyle = colour("on-label");
      context.fillText(what, x + 5, y + 8, plot.width - 26);
    }
    context.restore();
  }
}
