//! Who may write a balancer that several memberships have, one after the other.

use std::sync::{Arc, Mutex, PoisonError};

/// The memberships of one balancer, by number: when one has written a list, none before it writes any more.
#[derive(Clone, Debug, Default)]
pub(in crate::call) struct Turns(Arc<Mutex<Numbers>>);

#[derive(Debug, Default)]
struct Numbers {
    given: u64,
    /// The newest that has written.
    written: u64,
}

/// The place of one membership among them.
#[derive(Debug)]
pub(super) struct Turn {
    turns: Turns,
    number: u64,
}

impl Turns {
    /// The place after all that were given so far.
    pub(super) fn next(&self) -> Turn {
        let mut numbers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        numbers.given += 1;
        Turn { turns: self.clone(), number: numbers.given }
    }
}

impl Turn {
    /// Writes, unless one after this has written already; nobody else writes meanwhile.
    ///
    /// - `takes`: whether those before this are over from then on.
    pub(super) fn write(&self, takes: bool, work: impl FnOnce()) {
        let mut numbers = self.turns.0.lock().unwrap_or_else(PoisonError::into_inner);
        if numbers.written > self.number {
            return;
        }
        if takes {
            numbers.written = self.number;
        }
        work();
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn whoever_came_before_one_that_wrote_is_over() {
        let turns = Turns::default();
        let (first, second, third) = (turns.next(), turns.next(), turns.next());
        let written = |turn: &Turn, takes| {
            let done = Cell::new(false);
            turn.write(takes, || done.set(true));
            done.get()
        };
        assert!(written(&first, true) && written(&second, false) && written(&first, true));
        assert!(written(&second, true) && !written(&first, true));
        assert!(written(&third, true) && !written(&second, true) && written(&third, true));
    }
}
