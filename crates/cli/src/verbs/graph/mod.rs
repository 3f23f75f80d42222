//! `millstream graph`: flowgraphs before they run. One file a job.

mod blocks;
mod draw;
pub mod placed;
mod plan;
mod tune;

group! {
    typed;
    /// Plans, tunes and draws flowgraphs, and lists the types of blocks.
    GraphVerb: Plan(plan), Tune(tune), Blocks(blocks), Draw(draw),
}

impl Args {
    /// Whether it runs a graph, which may open links.
    pub fn opens_links(&self) -> bool {
        !matches!(self.what, GraphVerb::Blocks(_))
    }
}
