//! Straight blocks of a partition, run as one. See [`lane`](crate::lane).

use super::task::Task;
use crate::block::Context;
use crate::lane::{Lane, Place};
use std::any::TypeId;

/// Blocks that are called one after the other: a chain of straight ones, or just one of any kind.
pub(super) struct Train {
    /// Among the partition's tasks, in the order that items pass.
    members: Vec<usize>,
    /// Which of the partition's places lies behind each member but the last.
    stops: Vec<usize>,
    /// The most items that pass at once.
    batch_items: usize,
    /// It begins with a source and ends with a sink: nobody else has to do with it.
    is_closed: bool,
    /// Nothing is in the rings inside, and no tag is on its way.
    is_clear: bool,
    /// Items have passed the rings inside by, and their ends have not caught up.
    is_ahead: bool,
}

/// What a train can do now.
pub(super) enum Signal {
    /// Pass so many items.
    Go(usize),
    /// Nothing, before items come.
    Wait,
    /// Every block has to see for itself.
    Apart,
}

impl Train {
    /// All of `tasks`, in trains whose batches are of at most `batch_bytes`, with the places for
    /// all of them: while one train runs the others need none, and places stay in the near cache.
    pub(super) fn form(tasks: &[Task], batch_bytes: usize) -> (Vec<Self>, Vec<Place>) {
        let next: Vec<Option<usize>> = (0..tasks.len())
            .map(|task| (0..tasks.len()).find(|next| tasks[task].leads_to(&tasks[*next])))
            .collect();
        let heads = (0..tasks.len()).filter(|task| !next.contains(&Some(*task)));
        let members = |head| std::iter::successors(Some(head), |task| next[*task]).collect();
        let members: Vec<Vec<usize>> = heads.map(members).collect();
        let mut places = Vec::new();
        let train = |members| Self::of(tasks, members, batch_bytes, &mut places);
        (members.into_iter().map(train).collect(), places)
    }

    fn of(
        tasks: &[Task],
        members: Vec<usize>,
        batch_bytes: usize,
        places: &mut Vec<Place>,
    ) -> Self {
        let items: Vec<_> = members.iter().flat_map(|task| tasks[*task].items()).collect();
        let size_max = items.iter().map(|item| item.size_bytes()).max().unwrap_or(1);
        let batch_items = (batch_bytes / size_max.max(1)).max(1);
        let (first, last) = (members[0], members[members.len() - 1]);
        let is_closed = tasks[first].is_source() && tasks[last].is_sink();
        let (is_clear, is_ahead) = (false, false);
        let mut train =
            Self { members, stops: Vec::new(), batch_items, is_closed, is_clear, is_ahead };
        for task in 1..train.members.len() {
            let into = tasks[train.members[task]].items()[0];
            let bytes = batch_bytes.max(batch_items * into.size_bytes());
            train.add_stop(into.id(), bytes, places);
        }
        train
    }

    /// Finds a place of the same type, but not the one that the batch comes from; so a train of one
    /// type alternates between two.
    fn add_stop(&mut self, item: TypeId, bytes: usize, places: &mut Vec<Place>) {
        let last = self.stops.last();
        let fits = |(at, place): &(usize, &Place)| {
            place.item() == item && place.bytes() >= bytes && Some(at) != last
        };
        let found = places.iter().enumerate().find(fits).map(|(at, _)| at);
        let stop = found.unwrap_or_else(|| {
            places.push(Place::new(item, bytes));
            places.len() - 1
        });
        self.stops.push(stop);
    }

    pub(super) fn members(&self) -> &[usize] {
        &self.members
    }

    /// Whether it can pass several batches in a row and keep nobody waiting for the first.
    pub(super) fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// What it can do now. If not [`Signal::Apart`], nobody but the train may use the tasks.
    #[inline]
    pub(super) fn signal(&mut self, tasks: &mut [Task], context: &Context) -> Signal {
        if self.is_clear && !context.stopping {
            let (first, last) = (self.members[0], self.members[self.members.len() - 1]);
            let (taken, room) = (tasks[first].lane_in(), tasks[last].lane_out());
            match (taken, room) {
                (Some(0), Some(1..)) => {
                    self.members.iter().for_each(|task| tasks[*task].wait_for_train());
                    return Signal::Wait;
                }
                (Some(taken), Some(room @ 1..)) => {
                    return Signal::Go(taken.min(room).min(self.batch_items as u64) as usize);
                }
                _ => {}
            }
        }
        self.part(tasks);
        Signal::Apart
    }

    /// Passes the items that it said, by the `places`; each block in turn after `begin`. With a
    /// `weight` the blocks are timed, as in [`Task::timed_step`].
    #[inline]
    pub(super) fn run(
        &mut self,
        tasks: &mut [Task],
        places: &[Place],
        items: usize,
        context: &mut Context,
        weight: Option<u32>,
        mut begin: impl FnMut(usize, &Task),
    ) {
        self.is_ahead = true;
        let mut from = None;
        for (at, member) in self.members.iter().enumerate() {
            let task = &mut tasks[*member];
            begin(*member, task);
            let to = self.stops.get(at).map(|stop| places[*stop].lend());
            // SAFETY: places are this partition's alone, which runs one train at a time; neighbours
            // have unlike ones, made for a batch; `Task::leads_to` has seen to the alignment.
            let mut lane = unsafe { Lane::new(items, from, to) };
            // SAFETY: tasks of one train are run by one thread; the ring was drained when the
            // train became clear, and was not used since.
            unsafe { task.pass(&mut lane, to.is_some(), context, weight) };
            from = to;
        }
    }

    /// Whether there is something in the rings inside.
    pub(super) fn holds_items(&self, tasks: &[Task]) -> bool {
        let inside = &self.members[..self.members.len() - 1];
        inside.iter().any(|task| !tasks[*task].is_drained())
    }

    /// After every block was called by itself: looks whether they can run as one.
    pub(super) fn join(&mut self, tasks: &mut [Task]) {
        let last = self.members.len() - 1;
        let members = self.members.iter().enumerate();
        self.is_clear = last > 0
            && members.clone().all(|(at, task)| tasks[*task].is_clear(at < last))
            && members.clone().all(|(_, task)| tasks[*task].is_untagged());
    }

    /// Lets the blocks be called by themselves, or handed to another thread.
    #[inline]
    pub(super) fn part(&mut self, tasks: &mut [Task]) {
        if self.is_ahead {
            self.members.iter().for_each(|task| tasks[*task].catch_up());
            (self.is_ahead, self.is_clear) = (false, false);
        }
    }
}
