//! Where a task is in its steps.

use alloc::vec;
use alloc::vec::Vec;

use anysched_wire::script::Step;

/// The place of a task in its steps: one in each repetition that it is in, the innermost last.
#[derive(Debug)]
pub struct Cursor {
    places: Vec<Place>,
}

#[derive(Debug)]
struct Place {
    steps: &'static [Step],
    next: usize,
    /// How often the steps are done after this time.
    times: u64,
}

impl Cursor {
    /// Before the first step.
    pub fn new(steps: &'static [Step]) -> Cursor {
        Cursor { places: vec![Place { steps, next: 0, times: 0 }] }
    }

    /// These steps come before the next one.
    pub fn first_do(&mut self, steps: &'static [Step]) {
        self.places.push(Place { steps, next: 0, times: 0 });
    }

    /// The next step, which is no repetition; `None`: there is none.
    pub fn step(&mut self) -> Option<&'static Step> {
        loop {
            let place = self.places.last_mut()?;
            let Some(step) = place.steps.get(place.next) else {
                if place.times == 0 {
                    self.places.pop();
                } else {
                    place.times -= 1;
                    place.next = 0;
                }
                continue;
            };
            place.next += 1;
            let Step::Repeat(times, steps) = step else { return Some(step) };
            self.places.push(Place { steps, next: 0, times: times - 1 });
        }
    }
}
