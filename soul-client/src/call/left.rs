//! How often a call may be made again.

use super::Retry;

/// Where the next attempt goes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    Same,
    Other,
}

/// Attempts that are left: repeats at the upstream of the moment, and further upstreams.
pub(super) struct Left {
    same: u32,
    next: u32,
    same_at_each: u32,
}

impl Left {
    /// All that a call may have.
    pub(super) fn of(retry: &Retry) -> Self {
        Self { same: retry.same, next: retry.next, same_at_each: retry.same }
    }

    /// Whether there are any.
    pub(super) fn any(&self) -> bool {
        self.same > 0 || self.next > 0
    }

    /// Takes one: of the same upstream first, unless that is not to be asked again.
    pub(super) fn take(&mut self, same: bool) -> Option<Next> {
        if same && self.same > 0 {
            self.same -= 1;
            return Some(Next::Same);
        }
        self.next = self.next.checked_sub(1)?;
        self.same = self.same_at_each;
        Some(Next::Other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_are_the_product_of_both() {
        for (same, next) in [(0, 0), (0, 1), (1, 0), (1, 1), (2, 3), (5, 7)] {
            let retry = Retry { same, next, ..Retry::default() };
            let mut left = Left::of(&retry);
            let mut steps = Vec::new();
            while let Some(step) = left.take(true) {
                steps.push(step);
            }
            assert_eq!(steps.len() as u64 + 1, retry.most_attempts());
            assert_eq!(steps.iter().filter(|step| **step == Next::Other).count(), next as usize);
            assert!(!left.any());
        }
    }

    #[test]
    fn one_that_asks_to_be_spared_is_left() {
        let mut left = Left::of(&Retry { same: 3, next: 1, ..Retry::default() });
        assert!(left.take(false) == Some(Next::Other) && left.take(true) == Some(Next::Same));
        assert!(left.take(false).is_none());
    }
}
