// Canvases that fit their place on the screen, colours of the theme, axes.

import { remembered } from "./dom.js";

/** A canvas in the size of its place, in units of CSS pixels, sharp on every screen. */
export class Surface {
  constructor(canvas, onResize = () => {}) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d", { alpha: true });
    this.width = this.height = 0;
    this.scale = 1;
    new ResizeObserver(() => { if (this.fit()) onResize(); }).observe(canvas);
    this.fit();
  }
  /** Takes the size of the place; returns whether it changed. */
  fit() {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    const scale = Math.min(devicePixelRatio || 1, 3);
    if (width === this.width && height === this.height && scale === this.scale) return false;
    Object.assign(this, { width, height, scale });
    this.canvas.width = Math.round(width * scale);
    this.canvas.height = Math.round(height * scale);
    return true;
  }
  /** Wipes the canvas and returns its context. */
  begin() {
    const context = this.context;
    context.setTransform(this.scale, 0, 0, this.scale, 0, 0);
    context.clearRect(0, 0, this.width, this.height);
    context.font = "11px system-ui, sans-serif";
    context.lineWidth = 1;
    context.textBaseline = "middle";
    return context;
  }
}

/** Steps of 1, 2 or 5 between two values, about `wanted` of them. */
export function ticks(low, high, wanted) {
  const span = high - low;
  if (!(span > 0) || !Number.isFinite(span)) return { step: 1, values: [] };
  const rough = span / Math.max(1, wanted), power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= rough * 0.999);
  const values = [];
  for (let value = Math.ceil(low / step - 1e-9) * step; value <= high + step * 1e-9; value += step) values.push(value);
  return { step, values };
}

let colours = {};
/** A colour of the theme by its name in the style sheet. */
export function colour(name) {
  return (colours[name] ??= getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim() || "#888");
}

const listeners = [];
/** Calls back when light or dark was chosen. */
export const onTheme = (listener) => listeners.push(listener);
const dark = matchMedia("(prefers-color-scheme: dark)");

/** The theme shown now. */
export const theme = () => remembered.get("theme", dark.matches ? "dark" : "light");
/** Shows a theme; without a name the other one, which is then remembered. */
export function setTheme(name) {
  if (name) remembered.set("theme", name);
  document.documentElement.dataset.theme = theme();
  colours = {};
  listeners.forEach((listener) => listener());
}
dark.addEventListener("change", () => setTheme());

// Palettes of matplotlib at equal steps; they get brighter evenly, so that they are read without seeing colours.
const STOPS = {
  viridis: "440154 482475 414487 355f8d 2a788e 21918c 22a884 44bf70 7ad151 bddf26 fde725",
  cividis: "00224e 123570 3b496c 575d6d 707173 8a8678 a59c74 c3b369 e1cc55 fee838",
  magma: "000004 140e36 3b0f70 641a80 8c2981 b73779 de4968 f7705c fe9f6d fecf92 fcfdbf",
  grey: "08090b f4f5f6",
};

/** 256 colours of a palette as the words of an image (ABGR). */
export function palette(name) {
  const stops = (STOPS[name] ?? STOPS.viridis).split(" ").map((text) => parseInt(text, 16));
  return Uint32Array.from({ length: 256 }, (_, index) => {
    const place = (index / 255) * (stops.length - 1), at = Math.min(Math.floor(place), stops.length - 2);
    const mixed = [16, 8, 0].map((shift) => {
      const one = (stops[at] >> shift) & 255, other = (stops[at + 1] >> shift) & 255;
      return Math.round(one + (other - one) * (place - at));
    });
    return ((255 << 24) | (mixed[2] << 16) | (mixed[1] << 8) | mixed[0]) >>> 0;
  });
}

// Colours that people with any kind of colour vision tell apart (Okabe and Ito), and hatches where they begin again.
const CAUSE_COLOURS = ["#d55e00", "#0072b2", "#cc79a7", "#e69f00", "#56b4e9", "#999999", "#009e73", "#f0e442"];
const hatches = new Map();

/** The plain colour of a cause by its place. */
export const causeColour = (index) => CAUSE_COLOURS[index % CAUSE_COLOURS.length];
/** What a cause is filled with on a canvas: its colour, hatched from the ninth cause on. */
export function causeFill(context, index) {
  if (index < CAUSE_COLOURS.length) return causeColour(index);
  if (!hatches.has(index)) {
    const tile = document.createElement("canvas");
    tile.width = tile.height = 6;
    const pen = tile.getContext("2d");
    pen.fillStyle = causeColour(index);
    pen.fillRect(0, 0, 6, 6);
    pen.strokeStyle = "#0008";
    pen.beginPath();
    pen.moveTo(-1, 7); pen.lineTo(7, -1);
    pen.stroke();
    hatches.set(index, context.createPattern(tile, "repeat"));
  }
  return hatches.get(index);
}
