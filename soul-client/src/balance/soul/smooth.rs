//! Soul's `roundRobin`: smooth weighted round robin.

use std::collections::HashMap;

/// Counters unused for longer than this are dropped, milliseconds.
const RECYCLE_MS: i64 = 60_000;

/// One candidate's part in a choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn<'u> {
    /// Whose counter is raised.
    pub url: &'u str,
    /// By how much.
    pub weight: i32,
    /// The counter starts again at 0 when this is not what it was at the last choice. In Soul it is the weight.
    pub basis: i32,
}

impl<'u> Turn<'u> {
    /// A candidate as in Soul.
    #[must_use]
    pub fn new(url: &'u str, weight: i32) -> Self {
        Self { url, weight, basis: weight }
    }
}

/// The running counters, kept for each list by the url of its first upstream, as in Soul: a list that loses its first
/// upstream starts afresh, and goes on where it was when that one is back.
#[derive(Debug, Default)]
pub struct RoundRobin {
    lists: HashMap<String, List>,
}

#[derive(Debug, Default)]
struct List {
    counters: HashMap<String, Counter>,
    /// When it was last used.
    used_ms: i64,
}

#[derive(Debug)]
struct Counter {
    basis: i32,
    current: i64,
    updated_ms: i64,
}

impl RoundRobin {
    /// Nothing counted yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Raises every counter by its weight, chooses the first that is highest, and lowers it by the sum of the weights.
    /// Gives the position among `turns`, `None` if there are none.
    ///
    /// One candidate is chosen without counting. A url that occurs twice has one counter, raised twice. The sum is a
    /// wrapping 32-bit number; counters have 64 bits.
    ///
    /// - `list`: names the list; in Soul the url of its first upstream.
    ///
    /// # Examples
    /// ```
    /// use soul_client::balance::soul::{RoundRobin, Turn};
    ///
    /// let turns = [Turn::new("a", 5), Turn::new("b", 1), Turn::new("c", 1)];
    /// let mut balance = RoundRobin::new();
    /// let picks = (0..7).map(|_| balance.select("a", turns.into_iter(), 0));
    /// assert_eq!(picks.flatten().collect::<Vec<_>>(), [0, 0, 1, 0, 2, 0, 0]);
    /// ```
    pub fn select<'u>(
        &mut self,
        list: &str,
        turns: impl Iterator<Item = Turn<'u>> + Clone,
        now_ms: i64,
    ) -> Option<usize> {
        let mut few = turns.clone();
        few.next()?;
        if few.next().is_none() {
            return Some(0);
        }
        let list = entry(&mut self.lists, list, List::default);
        list.used_ms = now_ms;
        Some(list.select(turns, now_ms))
    }

    /// The counters that the next choice among these would begin with.
    pub(in crate::balance) fn currents<'u>(
        &self,
        list: &str,
        turns: impl Iterator<Item = Turn<'u>>,
    ) -> Vec<i64> {
        let counters = self.lists.get(list).map(|list| &list.counters);
        let current = |turn: Turn<'_>| {
            let counter = counters.and_then(|c| c.get(turn.url)).filter(|c| c.basis == turn.basis);
            counter.map_or(0, |c| c.current)
        };
        turns.map(current).collect()
    }

    /// Sets the counters as if choices among these had brought them there, the last one at `now_ms`.
    pub(in crate::balance) fn set_currents<'u>(
        &mut self,
        list: &str,
        currents: impl ExactSizeIterator<Item = (Turn<'u>, i64)>,
        now_ms: i64,
    ) {
        let list = entry(&mut self.lists, list, List::default);
        list.used_ms = now_ms;
        let count = currents.len();
        for (turn, current) in currents {
            let counter = Counter { basis: turn.basis, current, updated_ms: now_ms };
            list.counters.insert(turn.url.to_owned(), counter);
        }
        list.recycle(count, now_ms);
    }

    /// Drops lists, the longest unused first, until at most `most` remain. Soul keeps all of them for ever.
    pub fn keep_lists(&mut self, most: usize) {
        while self.lists.len() > most {
            let oldest = self.lists.iter().min_by_key(|(_, list)| list.used_ms).map(|(name, _)| name.clone());
            let Some(oldest) = oldest else { return };
            self.lists.remove(&oldest);
        }
    }
}

impl List {
    fn select<'u>(&mut self, turns: impl Iterator<Item = Turn<'u>>, now_ms: i64) -> usize {
        let (mut count, mut total) = (0, 0_i32);
        let mut highest = i64::MIN;
        let mut chosen = None;
        for (position, turn) in turns.enumerate() {
            let new = || Counter { basis: turn.basis, current: 0, updated_ms: now_ms };
            let counter = entry(&mut self.counters, turn.url, new);
            if counter.basis != turn.basis {
                counter.basis = turn.basis;
                counter.current = 0;
            }
            counter.current = counter.current.wrapping_add(i64::from(turn.weight));
            counter.updated_ms = now_ms;
            if counter.current > highest {
                highest = counter.current;
                chosen = Some((position, turn.url));
            }
            total = total.wrapping_add(turn.weight);
            count += 1;
        }
        self.recycle(count, now_ms);
        let Some((position, url)) = chosen else { return 0 };
        if let Some(counter) = self.counters.get_mut(url) {
            // Negated in 32 bits, where the lowest int is its own negative. That is inferred: the specification only
            // says that the sum has 32 bits, and no vector has a sum of exactly -2^31, where alone it matters.
            counter.current = counter.current.wrapping_add(i64::from(total.wrapping_neg()));
        }
        position
    }

    /// Drops counters that were long unused, unless there are as many as were chosen among.
    fn recycle(&mut self, count: usize, now_ms: i64) {
        if count != self.counters.len() {
            self.counters.retain(|_, counter| now_ms.wrapping_sub(counter.updated_ms) <= RECYCLE_MS);
        }
    }
}

/// The entry of a key, made if it is missing; the key is copied only then.
fn entry<'m, V>(map: &'m mut HashMap<String, V>, key: &str, new: impl FnOnce() -> V) -> &'m mut V {
    if !map.contains_key(key) {
        map.insert(key.to_owned(), new());
    }
    map.get_mut(key).expect("OK because it was inserted above")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_unused_lists_are_dropped() {
        let mut balance = RoundRobin::new();
        for (now_ms, list) in ["a", "b", "c", "d"].into_iter().enumerate() {
            let turns = [Turn::new(list, 1), Turn::new("x", 1)];
            let _ = balance.select(list, turns.into_iter(), i64::try_from(now_ms).unwrap());
        }
        balance.keep_lists(4);
        assert_eq!(balance.lists.len(), 4);
        balance.keep_lists(2);
        let mut kept: Vec<_> = balance.lists.keys().map(String::as_str).collect();
        kept.sort_unstable();
        assert_eq!(kept, ["c", "d"]);
        balance.keep_lists(0);
        assert!(balance.lists.is_empty());
    }

    #[test]
    fn old_counters_are_dropped_only_when_the_sizes_differ() {
        let turns = |urls: [&'static str; 2]| urls.map(|url| Turn::new(url, 1)).into_iter();
        let mut balance = RoundRobin::new();
        let _ = balance.select("a", turns(["a", "b"]), 0);
        // Two entries and two counters, although one of them is of an upstream long gone.
        let _ = balance.select("a", turns(["a", "a"]), RECYCLE_MS + 1);
        assert_eq!(balance.lists["a"].counters.len(), 2);
        let _ = balance.select("a", turns(["a", "c"]), RECYCLE_MS + 1);
        assert_eq!(balance.lists["a"].counters.len(), 2);
        assert!(!balance.lists["a"].counters.contains_key("b"));
    }

    #[test]
    fn the_basis_and_not_the_weight_resets_the_counter() {
        let turns = |weight| {
            [Turn { url: "a", weight: 1, basis: 9 }, Turn { url: "b", weight, basis: 9 }].into_iter()
        };
        let mut balance = RoundRobin::new();
        // b: 2, chosen, 2 - 3 = -1; then -1 + 3 = 2 equals a's 2, and the earlier one wins.
        assert_eq!(balance.select("a", turns(2), 0), Some(1));
        assert_eq!(balance.select("a", turns(3), 0), Some(0));
    }
}
