// What the page knows. Every history is a ring of fixed size, so that the page needs as much memory after a day as
// after a minute.

/** The name of a latency: each stream has its own. */
export const latencyKey = ({ name, stream }) => `${name} ${stream ?? ""}`;

/** The last `size` rows of numbers, each of `width` columns. */
export class Rows {
  constructor(size, width) {
    this.size = size;
    this.width = width;
    this.data = new Float64Array(size * width);
    this.clear();
  }
  clear() {
    this.length = 0;
    this.next = 0;
  }
  /** Adds a row; the oldest goes. */
  push(row) {
    const at = this.next * this.width;
    for (let column = 0; column < this.width; column += 1) this.data[at + column] = row[column] ?? 0;
    this.next = (this.next + 1) % this.size;
    this.length = Math.min(this.length + 1, this.size);
  }
  /** The number in a column; row 0 is the oldest. */
  get(row, column) {
    return this.data[((this.next - this.length + row + this.size) % this.size) * this.width + column];
  }
}

/** The last `size` things, oldest first. */
export class Last {
  constructor(size) {
    this.size = size;
    this.items = [];
  }
  clear() { this.items.length = 0; }
  push(item) {
    this.items.push(item);
    if (this.items.length > this.size) this.items.splice(0, this.items.length - this.size);
  }
}

/** Every cause that a ledger can name, in a fixed order: a cause has the same colour in every run. */
export const CAUSES = [
  "device_overrun", "network_loss", "host_queue_drop", "consumer_full", "late", "unknown", "clock_jump", "malformed",
  "late_command", "alignment", "reopened", "discarded",
];
const OTHER = CAUSES.length;
// Columns of the history of a ledger: the time, expected, delivered, held, then the causes and one for unheard-of ones.
export const TIME = 0, EXPECTED = 1, DELIVERED = 2, HELD = 3, LOST = 4;
const WIDTH = LOST + OTHER + 1;
const STATUSES_KEPT = 1300;

/** The column of a cause behind `LOST`. */
export const causeIndex = (cause) => {
  const at = CAUSES.indexOf(cause);
  return at < 0 ? OTHER : at;
};

/** Whether a ledger is one of samples that are sent: some of those are in flight. */
export const isSent = ({ held }) => held !== undefined && held !== null;

/** Adds the ledgers of a status; `held` is in flight, where a ledger has it. */
export function sum(ledgers) {
  const total = { expected: 0, delivered: 0, held: 0, after_end: 0, lost: {}, lostTotal: 0 };
  for (const ledger of ledgers) {
    total.expected += ledger.expected;
    total.delivered += ledger.delivered;
    total.held += ledger.held ?? 0;
    total.after_end += ledger.after_end ?? 0;
    for (const [cause, samples] of Object.entries(ledger.lost ?? {})) {
      total.lost[cause] = (total.lost[cause] ?? 0) + samples;
      total.lostTotal += samples;
    }
  }
  // The page adds for itself: it does not repeat what the server says.
  total.difference = total.expected - total.delivered - total.held - total.lostTotal;
  return total;
}

export class Store {
  constructor() {
    // By direction: received, and sent.
    this.histories = [false, true].map(() => new Rows(STATUSES_KEPT, WIDTH));
    this.signal = new Rows(STATUSES_KEPT, 3);
    this.events = new Last(400);
    this.gaps = new Map();
    this.latencies = new Last(12);
    // A run may receive and transmit: samples of one direction are shown at a time.
    this.sending = false;
    this.clear();
  }

  /** The ledgers of the direction that is shown. */
  get ledgers() { return this.ledgersOf(this.sending); }

  /** The history of that direction. */
  get ledger() { return this.histories[Number(this.sending)]; }

  ledgersOf(sending) { return (this.status?.ledgers ?? []).filter((ledger) => isSent(ledger) === sending); }

  clearLedgers() { for (const history of this.histories) history.clear(); }

  /** Shows samples that are received, or those that are sent. */
  choose(sending) {
    this.sending = sending;
    if (this.status) this.total = sum(this.ledgers);
  }

  clear() {
    this.hello = null;
    this.status = null;
    this.total = null;
    this.lastEvent = -1;
    this.clearLedgers();
    this.signal.clear();
    this.events.clear();
    this.gaps.clear();
    this.latencies.clear();
  }

  /** Takes a `hello`; returns whether it tells of a new run. */
  takeHello(hello) {
    const fresh = this.hello?.run !== hello.run;
    if (fresh) this.clear();
    this.hello = hello;
    return fresh;
  }

  takeStatus(status) {
    const before = this.status;
    this.status = status;
    const directions = new Set((status.ledgers ?? []).map(isSent));
    this.both = directions.size > 1;
    if (directions.size === 1 && !directions.has(this.sending)) this.choose(!this.sending);
    this.total = sum(this.ledgers);
    // A pause of the connection or a start anew leaves no slope across it.
    if (before && status.elapsed_s < before.elapsed_s) { this.clearLedgers(); this.signal.clear(); }
    for (const sending of directions) this.keep(sending);
    const signal = status.signals?.[0];
    if (signal) this.signal.push([status.elapsed_s, signal.mer_db ?? NaN, signal.snr_db ?? NaN]);
    const kept = this.latencies.items.at(-1);
    if (status.latencies?.length && (!kept || status.elapsed_s - kept.at >= 1)) {
      const counts = new Map(status.latencies.map((one) => [latencyKey(one), one.counts]));
      this.latencies.push({ at: status.elapsed_s, counts });
    }
  }

  /** Adds the ledgers of a direction to its history. */
  keep(sending) {
    const total = sum(this.ledgersOf(sending)), row = new Array(WIDTH).fill(0);
    row[TIME] = this.status.elapsed_s;
    row[EXPECTED] = total.expected;
    row[DELIVERED] = total.delivered;
    row[HELD] = total.held;
    for (const [cause, samples] of Object.entries(total.lost)) row[LOST + causeIndex(cause)] += samples;
    this.histories[Number(sending)].push(row);
  }

  /** Takes `events`; returns the new ones. */
  takeEvents(events) {
    const fresh = events.filter((event) => event.seq > this.lastEvent);
    for (const event of fresh) {
      this.lastEvent = event.seq;
      this.events.push(event);
      if (event.kind === "gap") this.addGap(event);
    }
    return fresh;
  }

  addGap(event) {
    const stream = event.stream ?? 0;
    if (!this.gaps.has(stream)) this.gaps.set(stream, new Last(512));
    this.gaps.get(stream).push(event);
  }

  /** The stream with this number, as `hello` describes it. */
  stream(number) {
    return this.hello?.streams?.find((stream) => stream.stream === number) ?? null;
  }
}
