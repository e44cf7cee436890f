//! Decides when Conductor dies, and lets it die there.
//!
//! At a crash point the task that reached it goes no further, nor does any other that reaches one; whoever plays the
//! story drops them all. This module does not know what the points stand around.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use conductor_engine::{Fate, on_this_thread};
use tokio::sync::Notify;

use crate::world::World;

/// When Conductor dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deaths {
    /// Never.
    None,
    /// The n-th time that it reaches this point, once.
    At {
        /// The point.
        point: &'static str,
        /// Which time, from 1.
        n: u64,
    },
    /// So often, anywhere.
    Anywhere {
        /// How often at most.
        times: u32,
        /// The most points that it lives through between two deaths.
        apart: u64,
    },
}

/// What is left of the deaths of one story.
#[derive(Debug)]
pub(super) struct Reaper {
    plan: RefCell<Plan>,
    died: Rc<Notify>,
}

#[derive(Debug)]
struct Plan {
    deaths: Deaths,
    reached: BTreeMap<&'static str, u64>,
    died_at: Vec<&'static str>,
    countdown: Option<u64>,
}

impl Reaper {
    pub(super) fn new(deaths: Deaths) -> Rc<Self> {
        let plan = Plan {
            deaths,
            reached: BTreeMap::new(),
            died_at: vec![],
            countdown: None,
        };
        Rc::new(Self {
            plan: RefCell::new(plan),
            died: Rc::default(),
        })
    }

    /// Watches every point of this thread; the answer tells when Conductor has died.
    pub(super) fn arm(self: &Rc<Self>, world: Arc<World>) -> Rc<Notify> {
        let reaper = self.clone();
        on_this_thread(Some(Box::new(move |point| {
            if world.is_dying() {
                return Fate::Hangs;
            }
            if !reaper.plan.borrow_mut().dies_at(point, &world) {
                return Fate::GoesOn;
            }
            world.set_dying(true);
            reaper.died.notify_one();
            Fate::Hangs
        })));
        self.died.clone()
    }

    /// The points at which it died.
    pub(super) fn died_at(&self) -> Vec<&'static str> {
        self.plan.borrow().died_at.clone()
    }

    /// How often each point was reached.
    pub(super) fn reached(&self) -> BTreeMap<&'static str, u64> {
        self.plan.borrow().reached.clone()
    }
}

impl Plan {
    fn dies_at(&mut self, point: &'static str, world: &World) -> bool {
        let count = self.reached.entry(point).or_default();
        *count += 1;
        let dies = match self.deaths {
            Deaths::None => false,
            Deaths::At { point: chosen, n } => point == chosen && *count == n,
            Deaths::Anywhere { times, .. } if self.died_at.len() >= times as usize => false,
            Deaths::Anywhere { apart, .. } => {
                let countdown = self
                    .countdown
                    .get_or_insert_with(|| world.chance.below(apart) + 1);
                *countdown -= 1;
                let dies = *countdown == 0;
                if dies {
                    self.countdown = None;
                }
                dies
            }
        };
        if dies {
            self.died_at.push(point);
        }
        dies
    }
}
