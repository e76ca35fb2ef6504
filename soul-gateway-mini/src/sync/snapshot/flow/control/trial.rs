//! Trials: for a moment an upstream gets fewer requests at once, to see whether it answers as many.

use super::{Control, FAST, FLOOR, LIMITED_SLACK_MS, Pace, SLOW, Seen, Slow, is_full};

/// Least lengths of a window of a trial, milliseconds, each with the least number of its answers: few of them are chance.
pub(super) const TRIAL_WINDOWS: [(i64, u64); 2] = [(40, 100), (200, 30)];
/// A trial has shown a queue if so many times as many answers came as before, and none if so many did. In between it has shown
/// nothing: of a hundred answers in the mean, ten more or less are chance.
const AS_MANY: std::ops::RangeInclusive<f64> = 0.75..=1.5;
const FEWER: f64 = 0.65;
/// Were it a queue, answers would come sooner by the share of the requests that was left out; by so much of that they have to. This
/// tells a queue where answers come all at once, so that their rate is chance.
const SOONER: f64 = 0.5;
/// With less left out than this nobody can see it.
const HARDLY_ANY: f64 = 0.1;
/// After a trial that changed nothing there is none for this long, and for twice as long after the next.
pub(super) const PAUSE_MS: (i64, i64) = (1_000, 64_000);
/// After one that has shown nothing: soon, for a queue may be growing.
const UNDECIDED_MS: i64 = 200;
/// Those with half take no longer in all while nobody knows yet, so that whoever waited can still be answered within the 3 s of a
/// common rule.
const LONGEST_TRIALS_MS: i64 = 2_000;
/// Nor does one without the queue.
const LONGEST_GUESS_MS: i64 = 1_200;
/// How many times as long as those that are answered the requests may take that were sent last. Where others are held, the number of
/// those under way says nothing about that.
const MOST_GROWN: f64 = 10.0;
/// So many may be counted that only look for room: each thread has one for a moment, and hardly ever more than two at once.
const LOOKING: u32 = 2;
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
    /// When there were as few as there may be.
    few_since_ms: Option<i64>,
    /// The longest of the least times that were seen meanwhile, milliseconds. Where answers come one by one and times vary this is
    /// just a slow one, and then the rate alone decides.
    settled_ms: f64,
    /// When the first began of those in a row in which nobody knows yet.
    began_ms: i64,
    until_ms: i64,
}

/// How much fewer a trial is made with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Depth {
    /// Half of those that come and go: nobody knows whether there is a queue, or how long it is.
    Half,
    /// All that wait there, if the upstream still is as fast as without load. There is a queue, but how long it is, is a guess.
    Queue,
}

/// What a trial has shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    AQueue,
    NoQueue,
    Nothing,
}

impl Control {
    /// Begins a trial with fewer of the requests that come and go, or one more of those that began then.
    pub(super) fn try_fewer(&mut self, began_ms: i64, now_ms: i64, depth: Depth, before: Pace, seen: Seen) {
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
        if limit >= in_flight || in_flight.saturating_add(in_flight / 2) > seen.most && !self.window.met {
            return;
        }
        self.slow = Slow::default();
        // While a queue grows, those that are answered were sent when it was shorter.
        let length_ms = (under_way / before.per_ms).clamp(before.least_ms, before.least_ms * MOST_GROWN);
        let length_ms = length_ms.min(LONGEST_LENGTH_MS);
        let longest_ms = (length_ms * 4.0) as i64 + 4 * TRIAL_WINDOWS[0].0;
        let until_ms = match depth {
            Depth::Half => now_ms.saturating_add(longest_ms).min(began_ms.saturating_add(LONGEST_TRIALS_MS)),
            Depth::Queue => now_ms.saturating_add(longest_ms.min(LONGEST_GUESS_MS)),
        };
        self.trial = Some(Trial {
            limit,
            depth,
            under_way: in_flight,
            before,
            length_ms,
            settles: true,
            few_since_ms: None,
            settled_ms: before.least_ms,
            began_ms,
            until_ms,
        });
    }

    pub(super) fn look_at_trial(
        &mut self,
        mut trial: Trial,
        now_ms: i64,
        passed_ms: i64,
        pace: Pace,
        seen: Seen,
    ) {
        let answers = seen.answers.wrapping_sub(self.window.answers);
        let long = passed_ms as f64 >= trial.length_ms;
        if trial.settles {
            if let Some(least_ms) = seen.least_ms() {
                trial.settled_ms = trial.settled_ms.max(least_ms);
            }
            let few = seen.in_flight <= trial.limit + trial.limit / 8 + LOOKING;
            trial.few_since_ms = trial.few_since_ms.or(few.then_some(now_ms));
            trial.settles = match trial.depth {
                Depth::Half => !long || !few,
                // Those that are left may be old, and take as long as they all took.
                Depth::Queue => trial.few_since_ms.is_none_or(|since_ms| {
                    (now_ms.saturating_sub(since_ms) as f64) < f64::from(trial.limit) / trial.before.per_ms
                }),
            };
            self.trial = Some(trial);
            if !trial.settles {
                return self.begin(now_ms, seen);
            }
        } else if (long || trial.depth == Depth::Queue) && is_full(&TRIAL_WINDOWS, passed_ms, answers) {
            let shown = self.shown(&trial, pace);
            if shown == Shown::Nothing && answers < TRIAL_WINDOWS[0].1 && now_ms < trial.until_ms {
                // A few more may tell.
                return;
            }
            match (shown, trial.depth) {
                (Shown::AQueue, _) => self.keep(now_ms, trial, pace, seen),
                (Shown::Nothing, _) => self.undecided(now_ms),
                (Shown::NoQueue, Depth::Queue) => self.try_half(now_ms, trial, pace.least_ms, seen),
                (Shown::NoQueue, Depth::Half) => {
                    self.give_back(now_ms, trial, pace.least_ms, seen.in_flight);
                }
            }
            return self.begin(now_ms, seen);
        }
        if now_ms >= trial.until_ms {
            match trial.depth {
                Depth::Half if trial.settles => {
                    self.give_back(now_ms, trial, trial.before.least_ms, seen.in_flight);
                }
                // There was no time to see anything.
                _ => self.undecided(now_ms),
            }
            self.begin(now_ms, seen);
        }
    }

    fn shown(&self, trial: &Trial, pace: Pace) -> Shown {
        let share = pace.per_ms / trial.before.per_ms;
        let left_out = 1.0 - f64::from(trial.limit) / f64::from(trial.under_way.max(1));
        let sooner = self.is_sure()
            || left_out < HARDLY_ANY
            || pace.least_ms <= trial.settled_ms * (1.0 - left_out * SOONER);
        let as_many = AS_MANY.contains(&share);
        if self.window.strained {
            Shown::Nothing
        } else if as_many && sooner {
            Shown::AQueue
        } else if as_many || share <= FEWER {
            Shown::NoQueue
        } else {
            Shown::Nothing
        }
    }

    /// All that was guessed to wait was too many.
    fn try_half(&mut self, now_ms: i64, trial: Trial, least_ms: f64, seen: Seen) {
        if now_ms >= self.began_ms(now_ms, trial).saturating_add(LONGEST_TRIALS_MS) {
            return self.give_back(now_ms, trial, least_ms, seen.in_flight);
        }
        self.trial = None;
        let seen = Seen { in_flight: trial.under_way, ..seen };
        self.try_fewer(self.began_ms(now_ms, trial), now_ms, Depth::Half, trial.before, seen);
    }

    /// When the trials began of which one more follows.
    fn began_ms(&self, now_ms: i64, trial: Trial) -> i64 {
        if self.is_sure() { now_ms } else { trial.began_ms }
    }

    /// The trial showed a queue: there it ends. If answers are slow still, the next one leaves out all that waits, but not what was
    /// borne.
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
            self.try_fewer(self.began_ms(now_ms, trial), now_ms, Depth::Queue, pace, seen);
        }
    }

    /// The trial showed nothing.
    fn undecided(&mut self, now_ms: i64) {
        self.trial = None;
        self.no_trial_before_ms = now_ms.saturating_add(UNDECIDED_MS);
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
