// Where the blocks of a flowgraph stand: each partition is a lane; from left to right as the samples go, where the lanes are
// wide enough, and otherwise in rows.

const BLOCK_HEIGHT = 76, HEAD = 26, PAD = 12, LANE_GAP = 10;

/** The layer of each block: one more than that of the blocks before it. */
function layers(names, edges) {
  const layer = new Map(names.map((name) => [name, 0]));
  for (let round = 0; round < names.length; round += 1) {
    let changed = false;
    for (const { from, to } of edges) {
      if (!layer.has(from) || !layer.has(to) || from === to) continue;
      // A loop would never end: the number of rounds bounds it.
      if (layer.get(to) < layer.get(from) + 1 && layer.get(from) + 1 < names.length) {
        layer.set(to, layer.get(from) + 1);
        changed = true;
      }
    }
    if (!changed) break;
  }
  return layer;
}

/**
 * Places blocks. `lanes` are partitions with the names of their blocks; `edges` have the names `from` and `to`.
 * Returns the boxes of blocks and lanes, and the size of the picture.
 */
export function place(lanes, edges, width) {
  const names = lanes.flatMap((lane) => lane.blocks), layer = layers(names, edges);
  const first = (lane) => Math.min(...lane.blocks.map((name) => layer.get(name)));
  const order = [...lanes].sort((one, other) => first(one) - first(other));
  const columns = Math.max(1, ...layer.values()) + 1, inner = width - 2 * PAD;
  const wide = (inner - (columns - 1) * 50) / columns;
  return wide >= 112 ? inColumns(order, layer, width, columns, Math.min(wide, 180)) : inRows(order, layer, width);
}

function inColumns(lanes, layer, width, columns, wide) {
  const gap = columns > 1 ? Math.min(96, (width - 2 * PAD - columns * wide) / (columns - 1)) : 0;
  const blocks = new Map(), boxes = [];
  let top = 0;
  for (const lane of lanes) {
    const used = new Map();
    let deepest = 1;
    for (const name of lane.blocks) {
      const column = layer.get(name), row = used.get(column) ?? 0;
      used.set(column, row + 1);
      deepest = Math.max(deepest, row + 1);
      const x = PAD + column * (wide + gap), y = top + HEAD + row * (BLOCK_HEIGHT + 10);
      blocks.set(name, { column, row, x, y, width: wide, height: BLOCK_HEIGHT });
    }
    const height = HEAD + deepest * (BLOCK_HEIGHT + 10) - 10 + PAD;
    boxes.push({ lane, x: 0, y: top, width, height });
    top += height + LANE_GAP;
  }
  return { blocks, boxes, width, height: top - LANE_GAP };
}

function inRows(lanes, layer, width) {
  const gap = width < 480 ? 44 : 58, inner = width - 2 * PAD;
  const fit = Math.max(1, Math.floor((inner + gap) / (118 + gap)));
  const wide = Math.min(180, (inner - (fit - 1) * gap) / fit);
  const blocks = new Map(), boxes = [];
  let top = 0;
  for (const lane of lanes) {
    const sorted = [...lane.blocks].sort((one, other) => layer.get(one) - layer.get(other));
    sorted.forEach((name, index) => {
      const row = Math.floor(index / fit);
      const x = PAD + (index % fit) * (wide + gap), y = top + HEAD + row * (BLOCK_HEIGHT + 34);
      blocks.set(name, { x, y, width: wide, height: BLOCK_HEIGHT });
    });
    const height = HEAD + Math.ceil(sorted.length / fit) * (BLOCK_HEIGHT + 34) - 34 + PAD;
    boxes.push({ lane, x: 0, y: top, width, height });
    // Room for the rings between two lanes.
    top += height + LANE_GAP + 20;
  }
  return { blocks, boxes, width, height: top - LANE_GAP - 20 };
}

/** The way of a connection between two boxes, and the place of its ring. */
export function route(from, to) {
  const sameRow = Math.abs(from.y - to.y) < 8;
  // To a block below another one: down at once, then into its side, so that no way passes behind a block.
  if (!sameRow && to.row > 0 && to.column === from.column + 1) {
    const x1 = from.x + from.width, y1 = from.y + from.height / 2, y2 = to.y + to.height / 2, turn = y2 > y1 ? 8 : -8;
    const path = `M${x1} ${y1}q8 0 8 ${turn}V${y2 - turn}q0 ${turn} 8 ${turn}H${to.x}`;
    return { path, x: (x1 + 8 + to.x) / 2, y: y2 };
  }
  // To the next column of another lane: along the lane, then straight into the block.
  if (!sameRow && from.column !== undefined && to.column === from.column + 1) {
    const x1 = from.x + from.width, y1 = from.y + from.height / 2, x2 = to.x + to.width / 2, down = to.y > from.y;
    const y2 = down ? to.y : to.y + to.height, turn = down ? 10 : -10;
    return { path: `M${x1} ${y1}H${x2 - 10}q10 0 10 ${turn}V${y2}`, x: x1 + (to.x - x1) / 2 + 8, y: y1 };
  }
  if (to.x >= from.x + from.width + 8) {
    const x1 = from.x + from.width, y1 = from.y + from.height / 2, x2 = to.x, y2 = to.y + to.height / 2;
    if (sameRow) return { path: `M${x1} ${y1}H${x2}`, x: (x1 + x2) / 2, y: y1 };
    const bend = Math.max(20, (x2 - x1) / 2);
    return { path: `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`, x: (x1 + x2) / 2, y: (y1 + y2) / 2 };
  }
  // To a place below: down, across between the rows, and down again.
  const down = to.y > from.y, x1 = from.x + from.width / 2, x2 = to.x + to.width / 2;
  const y1 = down ? from.y + from.height : from.y, y2 = down ? to.y : to.y + to.height;
  if (Math.abs(x1 - x2) < 4) return { path: `M${x1} ${y1}V${y2}`, x: x1, y: down ? y1 + 14 : (y1 + y2) / 2, upright: true };
  const middle = down ? y1 + Math.min(17, (y2 - y1) / 2) : (y1 + y2) / 2;
  const turn = x2 > x1 ? 8 : -8;
  return {
    path: `M${x1} ${y1}V${middle - 8}q0 8 ${turn} 8H${x2 - turn}q${turn} 0 ${turn} 8V${y2}`,
    x: (x1 + x2) / 2, y: middle, upright: true,
  };
}
