//! How many requests an upstream carries at once, found out from how fast it answers and how many.
//!
//! An upstream with too much to do lets requests wait, and then even its quickest answers are slow. But slow are answers too that
//! are meant to be (polls that are held, reports), or that became so with the last deploy, and of those none may be refused. The
//! two are told apart by a **trial**: for a moment the upstream gets half as many requests at once, while the others wait *here*.
//! Where they would have waited there, that costs nobody anything: the upstream ends as many as before, each of them
//! sooner. If that is what is seen, there was a queue, and the lower number is its limit: requests beyond it are refused. But if answers
//! are slow with it too, the next trial follows at once and leaves out all of the queue, by the time that answers take without load; if
//! that was too much, half again. If answers come no sooner or fewer of them do, the upstream gets all of them back, and the time that it
//! takes is from then on what it takes. No limit is below what was under way lately while nothing was slow.
//!
//! Once a limit is sure, those that wait in a trial and those under way are together no more than it: so nobody's answer comes later
//! than without a trial.
//!
//! From one moment to the next it is watched in windows of so many answers:
//!
//! | without a limit | what follows |
//! |---|---|
//! | the quickest answers take [`SLOW`] times as long as lately, and [`SLACK_MS`] more, in two windows | a trial |
//! | slower than lately | is how it is now, over [`AGEING_MS`] |
//!
//! | with a limit | what follows |
//! |---|---|
//! | requests are refused, and the quickest answers take up to [`FAST`] times as long as without load | it grows |
//! | they take [`SLOW`] times as long, in two windows | a trial with half of it |
//! | no request was refused for [`UNUSED_MS`] | it is gone |
//! | hardly anything is answered | it grows: this upstream does not work, or holds what it gets |
//!
//! | with or without one | what follows |
//! |---|---|
//! | more requests are given up, since their time is over, than answered, one after the other | a quarter of those under way is the limit |
//!
//! The quickest answer stands for all: it is slow only if everything is. Behind an upstream that lets the newest request go first, or
//! answers some at once, nothing is ever refused; nor is anything while the gateway itself has too much to do to tell.
//!
//! # Source
//! The idea of the smallest time as a sign of a standing queue is CoDel's (RFC 8289); that less at once is to be tried before it is
//! believed is ours. Clock and requests come from outside.

mod trial;

use trial::{Depth, PAUSE_MS, TRIAL_WINDOWS, Trial};

/// What was seen of an upstream.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    /// Answers so far.
    pub(super) answers: u64,
    /// Least time to one since this was asked last; the largest number if there was none.
    pub(super) least_us: u32,
    /// Requests under way.
    pub(super) in_flight: u32,
    /// How many there may be anyway.
    pub(super) most: u32,
    /// How many were given up since then, for their time was over.
    pub(super) timeouts: u32,
    /// Whether a request met the limit since then.
    pub(super) met: bool,
    /// Whether the gateway has so much to do itself that it sees answers late.
    pub(super) strained: bool,
}

/// Least lengths of a window, milliseconds, each with the least number of its answers.
const WINDOWS: [(i64, u64); 2] = [(50, 32), (100, 8)];
/// A window that is still not full says that there is little to do, or little done.
const LONGEST_MS: i64 = 2_000;

/// If so many are given up in such a time, and no fewer than are answered, the rest is of no use either. But not if all were at once:
/// they may be polls that began together.
const MANY_TIMEOUTS: u64 = 8;
const LATE_MS: i64 = 400;

/// How many times as long as without load is slow, and what is fast.
const SLOW: f64 = 3.0;
const FAST: f64 = 2.0;
/// What has to be added besides to be slow: a queue that takes less time is not worth a refusal.
const SLACK_MS: f64 = 20.0;
/// The same while there is a limit.
const LIMITED_SLACK_MS: f64 = 1.0;
/// Answers that take longer than this are not waited for: what waits here meanwhile has its own time limit.
const LONG_MS: f64 = 700.0;
/// Fewer requests at once, of those that come and go, are no load. Also the least limit.
const FLOOR: u32 = 4;

const AGEING_MS: f64 = 30_000.0;
const UNUSED_MS: i64 = 500;

/// Finds a limit for one upstream.
#[derive(Debug)]
pub(super) struct Control {
    window: Window,
    /// Least time to an answer without load, milliseconds.
    unloaded_ms: Option<f64>,
    limit: Option<u32>,
    /// Whether it is known that it is needed, if there is one: two trials have shown it, or most requests were given up.
    is_sure: bool,
    trial: Option<Trial>,
    late: Option<Late>,
    /// Slow windows in a row.
    slow: Slow,
    /// Requests under way with which it was as fast as without load: fewer are never the limit.
    borne: f64,
    /// Whether the limit was found to be too low.
    too_low: bool,
    unused_ms: i64,
    no_trial_before_ms: i64,
    pause_ms: i64,
}

/// What is seen at present.
#[derive(Clone, Copy, Debug)]
struct Window {
    from_ms: i64,
    answers: u64,
    /// Under way when it began.
    in_flight: u32,
    least_us: u32,
    timeouts: u32,
    met: bool,
    strained: bool,
}

/// Windows in a row in which even the quickest answers were slow.
#[derive(Clone, Copy, Debug, Default)]
struct Slow {
    windows: u32,
    passed_ms: i64,
    answers: u64,
}

/// How many were given up, from the first on.
#[derive(Clone, Copy, Debug)]
struct Late {
    first_ms: i64,
    last_ms: i64,
    /// Answers before the first.
    answers: u64,
    timeouts: u64,
}

impl Late {
    fn new(now_ms: i64, seen: Seen) -> Self {
        Self { first_ms: now_ms, last_ms: now_ms, answers: seen.answers, timeouts: 0 }
    }

    /// Counts what was seen; says whether too many were given up once there was time enough to tell.
    fn look(&mut self, now_ms: i64, seen: Seen) -> Option<bool> {
        if seen.timeouts > 0 {
            self.timeouts = self.timeouts.saturating_add(seen.timeouts.into());
            self.last_ms = now_ms;
        }
        let answers = seen.answers.wrapping_sub(self.answers);
        let lasts = self.last_ms.saturating_sub(self.first_ms) >= LATE_MS / 2;
        let too_many = lasts && self.timeouts >= MANY_TIMEOUTS && self.timeouts >= answers;
        (!(0..LATE_MS).contains(&now_ms.saturating_sub(self.first_ms))).then_some(too_many)
    }
}

/// Rate and least time of a window that is over.
#[derive(Clone, Copy, Debug)]
struct Pace {
    per_ms: f64,
    least_ms: f64,
}

impl Seen {
    /// Least time to an answer, milliseconds.
    fn least_ms(&self) -> Option<f64> {
        (self.least_us < u32::MAX).then(|| milliseconds(self.least_us))
    }
}

fn milliseconds(us: u32) -> f64 {
    f64::from(us) / 1e3
}

/// Whether a window has one of these lengths with as many answers.
fn is_full(least: &[(i64, u64)], passed_ms: i64, answers: u64) -> bool {
    least.iter().any(|&(ms, count)| passed_ms >= ms && answers >= count)
}

impl Slow {
    fn and(self, passed_ms: i64, answers: u64) -> Self {
        Self {
            windows: self.windows + 1,
            passed_ms: self.passed_ms.saturating_add(passed_ms),
            answers: self.answers.saturating_add(answers),
        }
    }

    fn per_ms(self) -> f64 {
        self.answers as f64 / self.passed_ms.max(1) as f64
    }
}

impl Pace {
    /// Requests that come and go, unlike those that are held: at least so many of those under way.
    fn flowing(&self) -> f64 {
        self.per_ms * self.least_ms
    }
}

impl Control {
    pub(super) fn new(now_ms: i64) -> Self {
        Self {
            window: Window {
                from_ms: now_ms,
                answers: 0,
                in_flight: 0,
                least_us: u32::MAX,
                timeouts: 0,
                met: false,
                strained: false,
            },
            unloaded_ms: None,
            limit: None,
            is_sure: false,
            trial: None,
            late: None,
            slow: Slow::default(),
            borne: 0.0,
            too_low: false,
            unused_ms: 0,
            no_trial_before_ms: now_ms,
            pause_ms: PAUSE_MS.0,
        }
    }

    /// How many requests it gets at once.
    pub(super) fn limit(&self) -> Option<u32> {
        self.trial.map(|trial| trial.limit).or(self.limit)
    }

    /// Whether there is a limit that is known to be needed.
    fn is_sure(&self) -> bool {
        self.is_sure && self.limit.is_some()
    }

    /// How many requests beyond the limit are to wait instead of being refused, for in a trial it may be wrong.
    ///
    /// Once it is sure how many it can do with, all together are to be no more than that.
    pub(super) fn most_waiting(&self) -> u32 {
        match (self.trial, self.limit) {
            (None, _) => 0,
            (Some(trial), Some(limit)) if self.is_sure() => limit.saturating_sub(trial.limit),
            (Some(_), _) => u32::MAX,
        }
    }

    /// Looks at what was seen, some hundred times a second at most.
    pub(super) fn look(&mut self, now_ms: i64, seen: Seen) {
        self.window.least_us = self.window.least_us.min(seen.least_us);
        self.window.timeouts = self.window.timeouts.saturating_add(seen.timeouts);
        self.window.met |= seen.met;
        self.window.strained |= seen.strained;
        let passed_ms = now_ms.saturating_sub(self.window.from_ms);
        if passed_ms < 0 {
            // The clock was set back.
            return self.begin(now_ms, seen);
        }
        let answers = seen.answers.wrapping_sub(self.window.answers);
        let pace = Pace {
            per_ms: answers as f64 / passed_ms.max(1) as f64,
            least_ms: milliseconds(self.window.least_us),
        };
        if seen.timeouts > 0 || self.late.is_some() {
            let mut late = self.late.unwrap_or_else(|| Late::new(now_ms, seen));
            let too_many = late.look(now_ms, seen);
            self.late = too_many.is_none().then_some(late);
            if too_many == Some(true) && !self.window.strained {
                self.cut(seen);
                return self.begin(now_ms, seen);
            }
        }
        match self.trial {
            Some(trial) => self.look_at_trial(trial, now_ms, passed_ms, pace, seen),
            None if is_full(&WINDOWS, passed_ms, answers) => {
                self.judge(now_ms, passed_ms, answers, pace, seen);
                self.begin(now_ms, seen);
            }
            None if passed_ms >= LONGEST_MS => {
                self.little(passed_ms, answers, pace);
                self.begin(now_ms, seen);
            }
            None => {}
        }
    }

    /// Begins a window.
    fn begin(&mut self, now_ms: i64, seen: Seen) {
        self.window = Window {
            from_ms: now_ms,
            answers: seen.answers,
            in_flight: seen.in_flight,
            least_us: u32::MAX,
            timeouts: 0,
            met: false,
            strained: false,
        };
    }

    /// What a full window tells.
    fn judge(&mut self, now_ms: i64, passed_ms: i64, answers: u64, pace: Pace, seen: Seen) {
        let unloaded = self.unloaded(passed_ms, pace.least_ms);
        let slack = if self.limit.is_some() { LIMITED_SLACK_MS } else { SLACK_MS };
        let slow = !self.window.strained
            && pace.least_ms >= (unloaded * SLOW).max(unloaded + slack)
            && pace.least_ms <= LONG_MS
            && pace.flowing() >= f64::from(FLOOR)
            && seen.in_flight > FLOOR;
        self.slow = if slow { self.slow.and(passed_ms, answers) } else { Slow::default() };
        if pace.least_ms <= unloaded * FAST {
            let kept = self.borne * (1.0 - passed_ms as f64 / AGEING_MS).max(0.0);
            self.borne = kept.max(f64::from(self.window.in_flight));
        }
        self.too_low &= pace.least_ms <= unloaded * FAST;
        if let Some(limit) = self.limit {
            self.unused_ms = if self.window.met { 0 } else { self.unused_ms.saturating_add(passed_ms) };
            if self.unused_ms >= UNUSED_MS {
                self.limit = None;
            } else if self.window.met && pace.least_ms <= (unloaded * FAST).max(unloaded + LIMITED_SLACK_MS) {
                self.grow(limit);
            }
        }
        let enough = is_full(&TRIAL_WINDOWS, self.slow.passed_ms, self.slow.answers);
        if self.slow.windows >= 2 && enough && now_ms >= self.no_trial_before_ms {
            let before = Pace { per_ms: self.slow.per_ms(), ..pace };
            self.try_fewer(now_ms, now_ms, Depth::Half, before, seen);
        }
    }

    /// Most of what it gets is given up: a queue that is as long as their time, in which nothing is of use to anybody, or an upstream
    /// that does not work. To refuse them is no worse, and lets it end what it has.
    fn cut(&mut self, seen: Seen) {
        (self.trial, self.slow) = (None, Slow::default());
        let limit = (seen.in_flight / 4).max(FLOOR);
        self.limit = Some(self.limit.map_or(limit, |before| before.min(limit)));
        (self.is_sure, self.too_low, self.unused_ms) = (true, false, 0);
        // Whatever was known of it has led to this.
        (self.unloaded_ms, self.borne) = (None, 0.0);
    }

    /// What a long window tells in which little was answered.
    fn little(&mut self, passed_ms: i64, answers: u64, pace: Pace) {
        self.slow = Slow::default();
        if answers > 0 {
            self.unloaded(LONGEST_MS, pace.least_ms);
        }
        if let Some(limit) = self.limit.filter(|_| self.window.timeouts == 0) {
            // After a longer time there was nothing at all, and what there is now has just come.
            let stuck = self.window.met && passed_ms < 2 * LONGEST_MS;
            self.limit = limit.checked_mul(2).filter(|_| stuck);
        }
    }

    /// Least time without load, as it is known now.
    fn unloaded(&mut self, passed_ms: i64, least_ms: f64) -> f64 {
        let unloaded = match self.unloaded_ms {
            Some(known) if least_ms > known => {
                // With a limit there is load.
                let share = if self.limit.is_some() { 0.0 } else { (passed_ms as f64 / AGEING_MS).min(1.0) };
                known + (least_ms - known) * share
            }
            _ => least_ms,
        };
        self.unloaded_ms = Some(unloaded);
        unloaded
    }

    fn grow(&mut self, limit: u32) {
        let more = if self.too_low { limit } else { limit / 8 + 1 };
        self.limit = limit.checked_add(more);
    }
}

#[cfg(test)]
mod tests;
