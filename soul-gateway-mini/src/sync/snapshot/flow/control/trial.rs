//! Trials: for a moment an upstream gets fewer requests at once, to see whether it answers as many.

use super::{Control, FAST, FLOOR, LIMITED_SLACK_MS, Pace, SLOW, Seen, Slow};

/// Least length of a window of a trial, milliseconds, and least number of its answers.
pub(super) const TRIAL_WINDOW: (i64, u64) = (40, 100);
/// A trial has shown a queue if so many times as many answers came as before, and none if so many did. In between it has shown
/// nothing: of a hundred answers in the mean, ten more or less are chance.
const AS_MANY: std::ops::RangeInclusive<f64> = 0.75..=1.5;
const FEWER: f64 = 0.65;
/// After a trial that changed nothing there is none for this long, and for twice as long after the next.
pub(super) const PAUSE_MS: (i64, i64) = (1_000, 64_000);
/// No trial takes longer, so that whoever waited can still be answered within the 3 s of a common rule.
const LONGEST_TRIAL_MS: i64 = 2_000;
/// Longest time that what was sent before is waited for in one; as long is measured after that.
const LONGEST_LENGTH_MS: f64 = 900.0;

#[derive(Clone, Copy, Debug)]
pub(super) struct Trial {
    /// How many at once.
    pub(super) limit: u32,
    depth: Depth,
    /// How many there were before.
    under_way: u32,
    /// What was seen with those.
    before: Pace,
    /// How long a request took that was sent last, milliseconds.
    length_ms: f64,
    /// Whether what was sent before may still be under way.
    settles: bool,
    until_ms: i64,
}

/// How much fewer a trial is made with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Depth {
    /// Half of those that come and go. Nobody knows yet whether there is a queue.
    Half,
    /// All that wait there, if the upstream still is as fast as without load. There is a queue, but how long it is, is a guess.
    Queue,
}

impl Control {
    /// Begins a trial with fewer of the requests that come and go.
    pub(super) fn try_fewer(&mut self, now_ms: i64, depth: Depth, before: Pace, seen: Seen) {
        let (in_flight, under_way) = (seen.in_flight, f64::from(seen.in_flight));
        let flowing = before.flowing().min(under_way);
        let fewer = match depth {
            Depth::Half => flowing / 2.0,
            Depth::Queue => flowing - before.per_ms * self.unloaded_ms.unwrap_or(before.least_ms) * FAST,
        };
        let fewer = fewer.max(0.0) as u32;
        let least = if depth == Depth::Queue { self.borne as u32 } else { 0 };
        let limit = in_flight.saturating_sub(fewer).max(FLOOR).max(least);
        // Given back, those that waited come on top of the others: none may be refused for that, if none is now.
        if limit >= in_flight || in_flight.saturating_add(fewer) > seen.most && !self.window.met {
            return;
        }
        self.slow = Slow::default();
        // While a queue grows, those that are answered were sent when it was shorter.
        let length_ms = (under_way / before.per_ms).clamp(before.least_ms, before.least_ms * 3.0);
        let length_ms = length_ms.min(LONGEST_LENGTH_MS);
        let longest_ms = ((length_ms * 4.0) as i64 + 4 * TRIAL_WINDOW.0).min(LONGEST_TRIAL_MS);
        let until_ms = now_ms.saturating_add(longest_ms);
        self.trial =
            Some(Trial { limit, depth, under_way: in_flight, before, length_ms, settles: true, until_ms });
    }

    pub(super) fn look_at_trial(
        &mut self,
        trial: Trial,
        now_ms: i64,
        passed_ms: i64,
        pace: Pace,
        seen: Seen,
    ) {
        let answers = seen.answers.wrapping_sub(self.window.answers);
        let long = passed_ms as f64 >= trial.length_ms;
        if trial.settles {
            if long && seen.in_flight <= trial.limit + trial.limit / 8 {
                self.trial = Some(Trial { settles: false, ..trial });
                return self.begin(now_ms, seen);
            }
        } else if (long || trial.depth == Depth::Queue)
            && passed_ms >= TRIAL_WINDOW.0
            && answers >= TRIAL_WINDOW.1
        {
            let share = pace.per_ms / trial.before.per_ms;
            if !self.window.strained && AS_MANY.contains(&share) {
                self.keep(now_ms, trial, pace, seen);
            } else if trial.depth == Depth::Queue {
                self.try_half(now_ms, trial, seen);
            } else if self.window.strained || share > FEWER {
                self.undecided(now_ms);
            } else {
                self.give_back(now_ms, trial, pace.least_ms, seen.in_flight);
            }
            return self.begin(now_ms, seen);
        }
        if now_ms >= trial.until_ms {
            match trial.depth {
                Depth::Half => self.give_back(now_ms, trial, trial.before.least_ms, seen.in_flight),
                Depth::Queue => self.try_half(now_ms, trial, seen),
            }
            self.begin(now_ms, seen);
        }
    }

    /// All that was guessed to wait was too many.
    fn try_half(&mut self, now_ms: i64, trial: Trial, seen: Seen) {
        self.trial = None;
        self.try_fewer(now_ms, Depth::Half, trial.before, Seen { in_flight: trial.under_way, ..seen });
    }

    /// The trial showed a queue: there it ends. If there still is one, it is halved again at once, but not below what was borne.
    fn keep(&mut self, now_ms: i64, trial: Trial, pace: Pace, seen: Seen) {
        self.trial = None;
        (self.unused_ms, self.too_low) = (0, false);
        let least = self.borne as u32;
        self.is_sure = self.limit.is_some();
        self.limit = Some(trial.limit.max(least));
        if trial.limit < least {
            return self.pause(now_ms);
        }
        self.pause_ms = PAUSE_MS.0;
        let unloaded = self.unloaded_ms.unwrap_or(pace.least_ms);
        if pace.least_ms >= (unloaded * SLOW).max(unloaded + LIMITED_SLACK_MS) {
            self.try_fewer(now_ms, Depth::Queue, pace, seen);
        }
    }

    /// The trial showed nothing.
    fn undecided(&mut self, now_ms: i64) {
        self.trial = None;
        self.no_trial_before_ms = now_ms.saturating_add(PAUSE_MS.0);
    }

    fn pause(&mut self, now_ms: i64) {
        self.no_trial_before_ms = now_ms.saturating_add(self.pause_ms);
        self.pause_ms = (self.pause_ms * 2).min(PAUSE_MS.1);
    }

    /// The trial showed none.
    fn give_back(&mut self, now_ms: i64, trial: Trial, least_ms: f64, in_flight: u32) {
        self.trial = None;
        self.pause(now_ms);
        if in_flight < trial.limit / 2 {
            // Nor anything else: fewer have come.
            return;
        }
        self.unloaded_ms = self.unloaded_ms.map(|known| known.max(least_ms.min(trial.before.least_ms)));
        if let Some(limit) = self.limit {
            (self.is_sure, self.too_low) = (false, true);
            self.grow(limit);
        }
    }
}
