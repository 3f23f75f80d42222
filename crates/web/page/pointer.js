// Mouse, fingers and keys on the spectrum.

/** Lets a scope follow pointer and keys on an element. */
export function attachPointer(element, scope) {
  const pointers = new Map();
  let moved = 0, pinch = null;
  const place = (event) => {
    const box = element.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };
  const point = ({ x, y }) => {
    const below = y - scope.spectrum.canvas.offsetHeight;
    const { waterfall } = scope, inWaterfall = below > 0 && waterfall.lines.length > 0;
    scope.cursor = { x, time: inWaterfall ? waterfall.timeAt(below - scope.plot(waterfall.surface).top) : null };
    scope.dirty = true;
  };
  const perPixel = () => (scope.to - scope.from) / scope.plot(scope.spectrum).width;

  element.addEventListener("pointerdown", (event) => {
    if (event.button > 0) return;
    pointers.set(event.pointerId, place(event));
    element.setPointerCapture(event.pointerId);
    moved = 0;
    if (pointers.size === 2) pinch = spread();
  });
  element.addEventListener("pointermove", (event) => {
    const now = place(event), before = pointers.get(event.pointerId);
    if (!before) { point(now); return; }
    pointers.set(event.pointerId, now);
    moved += Math.abs(now.x - before.x) + Math.abs(now.y - before.y);
    if (pointers.size === 2) {
      const next = spread();
      if (pinch && next.width > 8) {
        scope.zoom(pinch.width / next.width, scope.frequencyAt(next.middle));
        scope.pan((pinch.middle - next.middle) * perPixel());
      }
      pinch = next;
    } else if (!scope.whole) {
      scope.pan((before.x - now.x) * perPixel());
    } else point(now);
  });
  const end = (event) => {
    const was = pointers.get(event.pointerId);
    pointers.delete(event.pointerId);
    pinch = null;
    if (was && moved < 6 && event.type === "pointerup" && scope.frame) {
      point(was);
      scope.drawCursor();
      mark();
    }
  };
  element.addEventListener("pointerup", end);
  element.addEventListener("pointercancel", end);
  element.addEventListener("pointerleave", (event) => {
    if (event.pointerType === "mouse" && !pointers.size) { scope.cursor = null; scope.dirty = true; }
  });
  element.addEventListener("dblclick", () => { scope.marker = null; scope.showWhole(); });
  element.addEventListener("wheel", (event) => {
    if (!scope.frame) return;
    event.preventDefault();
    if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) scope.pan(event.deltaX * perPixel());
    else scope.zoom(Math.exp(Math.max(-60, Math.min(60, event.deltaY)) * 0.004), scope.frequencyAt(place(event).x));
    point(place(event));
  }, { passive: false });

  /** Distance and middle of two fingers. */
  function spread() {
    const [one, other] = [...pointers.values()];
    return { width: Math.abs(one.x - other.x), middle: (one.x + other.x) / 2 };
  }
  /** Sets the marker at the cursor, or takes it away where it is already. */
  function mark() {
    const near = scope.marker && Math.abs(scope.xOf(scope.marker.frequency) - scope.cursor.x) < 6;
    scope.marker = near || !scope.pointed ? null : { ...scope.pointed };
    scope.dirty = true;
  }

  element.addEventListener("keydown", (event) => {
    if (!scope.frame || event.ctrlKey || event.metaKey || event.altKey) return;
    const plot = scope.plot(scope.spectrum), far = event.shiftKey ? 20 : 2;
    scope.cursor ??= null;
    const move = (by) => {
      const x = (scope.cursor?.x ?? plot.left + plot.width / 2) + by;
      scope.cursor = { x: Math.min(Math.max(x, plot.left), plot.left + plot.width), time: null };
    };
    switch (event.key) {
      case "ArrowLeft": move(-far); break;
      case "ArrowRight": move(far); break;
      case "Enter": if (scope.cursor) mark(); break;
      case "Escape": scope.cursor = scope.marker = null; break;
      case "PageUp": scope.pan((scope.from - scope.to) / 2); break;
      case "PageDown": scope.pan((scope.to - scope.from) / 2); break;
      default: return;
    }
    event.preventDefault();
    scope.dirty = true;
  });
}
