// The connection: one WebSocket in the protocol `millstream.v1`, and how it comes back after it was lost.

const HEADER = 72;
const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 8000;
// The server sends four statuses a second; a connection without any is dead, even if nobody closed it.
const SILENT_MS = 10000;

/** Reads the header and the values of a binary frame; null if it is none of this protocol. */
export function readFrame(buffer) {
  if (buffer.byteLength < HEADER) return null;
  const view = new DataView(buffer);
  const type = view.getUint8(0), format = view.getUint8(2), flags = view.getUint8(3);
  if (view.getUint8(1) !== 1 || (type !== 1 && type !== 2) || format > 1) return null;
  const bins = view.getUint32(12, true), average = view.getUint16(6, true);
  const values = type === 2 ? bins * average : bins;
  if (!values || buffer.byteLength < HEADER + values * (format === 0 ? 1 : 4)) return null;
  return {
    type, gapBefore: (flags & 1) !== 0, hasTicks: (flags & 2) !== 0, bins, average,
    stream: view.getUint16(4, true), seq: view.getUint32(8, true),
    ticks: Number(view.getBigUint64(16, true)), item: Number(view.getBigUint64(24, true)),
    centre: view.getFloat64(32, true), span: view.getFloat64(40, true), share: view.getFloat32(48, true),
    reference: view.getFloat32(52, true), step: view.getFloat32(56, true), dropped: view.getUint32(60, true),
    unix: view.getFloat64(64, true),
    values: format === 0 ? new Uint8Array(buffer, HEADER, values) : new Float32Array(buffer, HEADER, values),
  };
}

/** The token of this page: the address contains it behind `#`, where no server log sees it. */
function token() {
  const stated = new URLSearchParams(location.hash.slice(1)).get("token");
  try {
    if (stated) sessionStorage.setItem("millstream.token", stated);
    return stated ?? sessionStorage.getItem("millstream.token");
  } catch { return stated; }
}

/** A connection that reconnects by itself. `on` has the functions state, message and frame. */
export class Connection {
  constructor(on) {
    this.on = on;
    this.pause = FIRST_PAUSE_MS;
    this.heard = 0;
    this.bytes = 0;
    this.subscribed = new Map();
    this.lastId = 0;
    this.connect();
    setInterval(() => this.watch(), 1000);
    addEventListener("online", () => this.retryNow());
    addEventListener("hashchange", () => this.retryNow());
  }

  connect() {
    clearTimeout(this.timer);
    this.timer = null;
    const secret = token();
    const query = secret ? `?token=${encodeURIComponent(secret)}` : "";
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    this.on.state("connecting", "connecting");
    let socket;
    try { socket = new WebSocket(`${scheme}://${location.host}/ws${query}`); } catch { return this.later(); }
    this.socket = socket;
    this.opened = false;
    this.heard = performance.now();
    socket.binaryType = "arraybuffer";
    socket.onopen = () => {
      this.opened = true;
      this.on.state("live", "live");
      for (const message of this.subscribed.values()) this.send(message);
    };
    socket.onmessage = ({ data }) => {
      if (this.socket !== socket) return;
      this.heard = performance.now();
      this.pause = FIRST_PAUSE_MS;
      if (typeof data === "string") {
        this.bytes += data.length;
        let message;
        try { message = JSON.parse(data); } catch { return; }
        if (message && typeof message === "object") this.on.message(message);
      } else {
        this.bytes += data.byteLength;
        const frame = readFrame(data);
        if (frame) this.on.frame(frame);
      }
    };
    socket.onclose = (event) => { if (this.socket === socket) this.later(event); };
  }

  /** Tries again after a pause, which grows up to eight seconds; a random part keeps many pages from coming at once. */
  later(event) {
    this.socket = null;
    if (this.timer) return;
    const wait = this.pause * (0.75 + Math.random() / 2);
    this.pause = Math.min(this.pause * 2, LONGEST_PAUSE_MS);
    const reason = event?.reason ? `: ${event.reason}` : "";
    this.on.state("lost", `not connected${reason}, next try in ${Math.max(1, Math.round(wait / 1000))} s`);
    if (!this.opened) this.ask();
    this.timer = setTimeout(() => this.connect(), wait);
  }

  /** Asks by HTTP why the server refuses: a WebSocket does not say it to scripts. */
  async ask() {
    try {
      const answer = await fetch("/api/hello", { headers: token() ? { authorization: `Bearer ${token()}` } : {} });
      if (answer.status === 401) this.on.state("refused", "the server wants the token: open the address that the command printed");
      if (answer.status === 503) this.on.state("refused", "the server has its greatest number of connections");
    } catch { /* It does not answer at all, which the state says already. */ }
  }

  retryNow() {
    if (this.socket) return;
    clearTimeout(this.timer);
    this.timer = null;
    this.pause = FIRST_PAUSE_MS;
    this.connect();
  }

  watch() {
    const socket = this.socket;
    if (!socket || performance.now() - this.heard < SILENT_MS) return;
    this.socket = null;
    socket.close();
    this.later();
  }

  send(message) {
    if (this.socket?.readyState !== WebSocket.OPEN) return false;
    this.socket.send(JSON.stringify(message));
    return true;
  }

  /** Subscribes to a stream, now and after each reconnection; the same subscription is sent once. */
  subscribe(message) {
    const before = this.subscribed.get(message.stream);
    if (before && JSON.stringify(before) === JSON.stringify({ type: "subscribe", ...message })) return;
    this.subscribed.set(message.stream, { type: "subscribe", ...message });
    this.send(this.subscribed.get(message.stream));
  }

  unsubscribe(stream) {
    if (this.subscribed.delete(stream)) this.send({ type: "unsubscribe", stream });
  }

  /** Sends a command; returns the number that its reply will have. */
  control(target, name, value) {
    this.lastId += 1;
    return this.send({ type: "control", id: this.lastId, target, name, value }) ? this.lastId : null;
  }
}
