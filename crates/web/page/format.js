// Writes numbers, times and frequencies for people.

const PREFIXES = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""], [1e-3, "m"], [1e-6, "µ"], [1e-9, "n"]];

/** Writes a value with an SI prefix and about `digits` significant digits. */
export function si(value, unit = "", digits = 3) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  if (value === 0) return `0 ${unit}`.trim();
  const size = Math.abs(value);
  const [factor, prefix] = PREFIXES.find(([factor]) => size >= factor * 0.9995) ?? PREFIXES.at(-1);
  // Rounded first: 0.99999 M has as many digits as 1 M.
  const scaled = Number((value / factor).toPrecision(digits));
  const places = Math.max(0, digits - 1 - Math.floor(Math.log10(Math.abs(scaled)) + 1e-9));
  return `${scaled.toFixed(Math.min(places, 9))} ${prefix}${unit}`.trim();
}

/** Writes a frequency so that steps of `step` Hz can be told apart, in the unit that suits the size of `like`. */
export function hertz(value, step = 1, like = value) {
  if (!Number.isFinite(value)) return "–";
  const size = Math.abs(like);
  // Within a band the unit stays: 999.8 MHz is followed by 1000.2 MHz.
  const [factor, prefix] = size >= 1e9 && step >= 1e7 ? [1e9, "G"] : size >= 1e6 ? [1e6, "M"] : size >= 1e3 ? [1e3, "k"] : [1, ""];
  const places = Math.max(0, Math.min(9, Math.ceil(Math.log10(factor / Math.max(step, 1e-3)) - 1e-9)));
  const number = (value / factor).toFixed(places);
  return `${Number(number) === 0 ? number.replace("-", "") : number.replace("-", "−")} ${prefix}Hz`;
}

/** Writes a whole number with thin spaces between groups of three digits. */
export function count(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  return Math.round(value).toString().replace(/\B(?=(\d{3})+(?!\d))/g, "\u2009");
}

/** Writes a share, 0 to 1, as per cent; small shares keep their first digits. */
export function share(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const percent = value * 100;
  if (percent === 0) return "0 %";
  if (percent >= 99.995) return "100 %";
  const places = percent >= 10 ? (percent >= 97 ? 2 : 1) : percent >= 1 ? 1 : Math.min(6, 1 - Math.floor(Math.log10(percent)));
  return `${percent.toFixed(places)} %`;
}

/** Writes a duration. */
export function seconds(value, digits = 3) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  if (value >= 3600) return `${Math.floor(value / 3600)} h ${Math.floor((value % 3600) / 60)} min`;
  if (value >= 120) return `${Math.floor(value / 60)} min ${Math.floor(value % 60)} s`;
  return si(value, "s", digits);
}

/** Writes the time of day of a Unix time. */
export function clock(unix) {
  const date = new Date(unix * 1000);
  const two = (number) => String(number).padStart(2, "0");
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

/** Reads what people write for a number: `98.5M`, `250 kHz`, `1e6`; null if it is none. */
export function parseNumber(text) {
  const match = /^\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?)\s*([kMGmµu]?)[A-Za-z/]*\s*$/.exec(text);
  if (!match) return null;
  const factors = { "": 1, k: 1e3, M: 1e6, G: 1e9, m: 1e-3, "µ": 1e-6, u: 1e-6 };
  return Number(match[1]) * factors[match[2]];
}

/** Names of causes in words. */
export const words = (name) => name.replaceAll("_", " ");

/** Words for a number of things. */
export const some = (number, one) => `${count(number)} ${one}${number === 1 ? "" : "s"}`;

/** Names of latencies for people. */
export const latencyWords = (name) => (name === "behind" ? "behind the radio" : words(name));
