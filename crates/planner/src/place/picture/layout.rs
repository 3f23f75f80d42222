//! Positions in a picture: one row of boxes (a lane) for each partition, items from left to right,
//! lanes in frames.

use super::shape_of;
use crate::place::Placed;
use millstream_draw::Rect;
use std::collections::BTreeMap;

pub(super) const BOX_WIDTH: f64 = 132.0;
pub(super) const BOX_HEIGHT: f64 = 46.0;
/// The gap between boxes, for arrows.
pub(super) const GAP_X: f64 = 36.0;
const GAP_Y: f64 = 16.0;
/// Boxes in a row before a lane continues below.
const COLUMNS: usize = 8;
/// The width left of a lane's boxes: CPU, name, load.
pub(super) const HEAD_WIDTH: f64 = 190.0;
const LANE_PAD: f64 = 14.0;
const LANE_HEIGHT: f64 = 74.0;
const LANE_GAP: f64 = 34.0;
const FRAME_PAD: f64 = 14.0;
const FRAME_HEAD: f64 = 24.0;
/// The width around everything, and the height of the lines above it.
pub(super) const MARGIN: f64 = 28.0;
const TITLE_HEIGHT: f64 = 84.0;

/// The positions in a picture, from its upper left.
#[derive(Clone, Debug, Default)]
pub(super) struct Layout {
    /// In the order of the prediction's blocks.
    pub(super) blocks: Vec<Rect>,
    /// In the order of the prediction's partitions.
    pub(super) lanes: Vec<Rect>,
    /// In the order of the frames.
    pub(super) frames: Vec<Rect>,
    /// With the margin.
    pub(super) width: f64,
    pub(super) height: f64,
}

/// A block in its lane: column and row.
type Cell = (usize, usize);

pub(super) fn layout(placed: &Placed) -> Layout {
    let prediction = &placed.prediction;
    let ranks = shape_of(prediction).ranks();
    let cells: Vec<BTreeMap<usize, Cell>> =
        (0..prediction.partitions.len()).map(|lane| cells(placed, lane, &ranks)).collect();
    let columns = cells.iter().flat_map(|cells| cells.values()).map(|(column, _)| column + 1);
    let columns = columns.max().unwrap_or(1).min(COLUMNS) as f64;
    let depth = (0..cells.len()).map(|lane| open_at(placed, lane).len()).max().unwrap_or(0) as f64;
    let inner = HEAD_WIDTH + columns * (BOX_WIDTH + GAP_X) - GAP_X + 2.0 * LANE_PAD;
    let left = MARGIN + depth * FRAME_PAD;
    let mut layout = Layout {
        blocks: vec![Rect::default(); prediction.blocks.len()],
        lanes: vec![Rect::default(); cells.len()],
        frames: vec![Rect::default(); placed.frames.len()],
        width: inner + 2.0 * left,
        height: 0.0,
    };
    let mut y = MARGIN + TITLE_HEIGHT;
    for (index, lane) in lanes_in_order(placed).into_iter().enumerate() {
        if index > 0 {
            y += LANE_GAP;
        }
        let frames = open_at(placed, lane);
        for (depth, frame) in frames.iter().enumerate() {
            if placed.frames[*frame].partitions.first() == Some(&lane) {
                let inset = MARGIN + depth as f64 * FRAME_PAD;
                let width = layout.width - 2.0 * inset;
                layout.frames[*frame] = Rect { x: inset, y, width, height: 0.0 };
                y += FRAME_HEAD;
            }
        }
        let height = place_lane(&cells[lane], (left, y), &mut layout.blocks);
        layout.lanes[lane] = Rect { x: left, y, width: inner, height };
        y += height;
        for frame in frames.iter().rev() {
            if placed.frames[*frame].partitions.last() == Some(&lane) {
                y += FRAME_PAD;
                layout.frames[*frame].height = y - layout.frames[*frame].y;
            }
        }
    }
    layout.height = y + MARGIN;
    layout
}

/// Returns the frames around a lane, from the outermost.
fn open_at(placed: &Placed, lane: usize) -> Vec<usize> {
    let around = |frame: &usize| placed.frames[*frame].partitions.contains(&lane);
    let mut frames: Vec<usize> = (0..placed.frames.len()).filter(around).collect();
    frames.sort_by_key(|frame| placed.frames[*frame].depth);
    frames
}

/// Returns the lanes in the order of the outermost frames, each frame's together.
fn lanes_in_order(placed: &Placed) -> Vec<usize> {
    let framed = placed.frames.iter().flat_map(|frame| frame.partitions.iter().copied());
    let mut order = Vec::new();
    for lane in framed.chain(0..placed.prediction.partitions.len()) {
        if !order.contains(&lane) {
            order.push(lane);
        }
    }
    order
}

/// Assigns columns by rank; in a column each block is next to the block that it reads, if that cell
/// is free.
fn cells(placed: &Placed, lane: usize, ranks: &[usize]) -> BTreeMap<usize, Cell> {
    let prediction = &placed.prediction;
    let inside = |block: &usize| prediction.blocks[*block].partition == lane;
    let mut blocks: Vec<usize> = (0..prediction.blocks.len()).filter(inside).collect();
    blocks.sort_by_key(|block| (ranks[*block], *block));
    let mut columns: Vec<usize> = blocks.iter().map(|block| ranks[*block]).collect();
    columns.dedup();
    let mut cells: BTreeMap<usize, Cell> = BTreeMap::new();
    for block in blocks {
        let column = columns.iter().position(|rank| *rank == ranks[block]).unwrap_or(0);
        let taken = |row: usize| cells.values().any(|cell| *cell == (column, row));
        let reads = prediction.edges.iter().filter(|edge| edge.reader == block);
        let beside = reads.filter_map(|edge| cells.get(&edge.writer)).map(|(_, row)| *row).min();
        let row = beside.filter(|row| !taken(*row));
        let row = row.or_else(|| (0..).find(|row| !taken(*row))).unwrap_or(0);
        cells.insert(block, (column, row));
    }
    cells
}

/// Places the boxes of a lane; returns its height.
fn place_lane(cells: &BTreeMap<usize, Cell>, at: (f64, f64), boxes: &mut [Rect]) -> f64 {
    let band_of = |column: usize| column / COLUMNS;
    let bands = cells.values().map(|(column, _)| band_of(*column) + 1).max().unwrap_or(1);
    let mut top = at.1 + LANE_PAD;
    for band in 0..bands {
        let inside = cells.iter().filter(|(_, (column, _))| band_of(*column) == band);
        let mut rows = 1;
        for (block, (column, row)) in inside {
            let x = at.0 + HEAD_WIDTH + LANE_PAD + (column % COLUMNS) as f64 * (BOX_WIDTH + GAP_X);
            let y = top + *row as f64 * (BOX_HEIGHT + GAP_Y);
            boxes[*block] = Rect { x, y, width: BOX_WIDTH, height: BOX_HEIGHT };
            rows = rows.max(row + 1);
        }
        top += rows as f64 * (BOX_HEIGHT + GAP_Y);
    }
    (top - GAP_Y + LANE_PAD - at.1).max(LANE_HEIGHT)
}
