//! What a row of active checks means, without making any: the arithmetic of a prober.

use std::time::Duration;

use super::{context::RandomSource, health::Health};

/// When checks are made and what they mean.
///
/// # Examples
/// ```
/// use soul_client::balance::{CheckSettings, Health, HealthTrack};
///
/// let settings = CheckSettings::default();
/// let mut track = HealthTrack::default();
/// assert_eq!(track.observe(&settings, false), None); // one miss is none
/// assert_eq!(track.observe(&settings, false), Some(Health::Down));
/// assert_eq!(track.observe(&settings, true), None);
/// assert_eq!(track.observe(&settings, true), Some(Health::Up));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CheckSettings {
    /// Time between two checks of a healthy upstream. Default 5 s.
    pub every: Duration,
    /// The same after a first miss or a first answer, when the next check decides. Default 1 s.
    pub every_in_doubt: Duration,
    /// The same while it is down. Default 2 s.
    pub every_down: Duration,
    /// Share by which `every` varies either way, so that checks do not all fall together. Default 0.2.
    pub jitter: f64,
    /// Misses in a row that take it down. Default 2.
    pub fall: u32,
    /// Answers in a row that bring it back. Default 2.
    pub rise: u32,
}

impl Default for CheckSettings {
    fn default() -> Self {
        Self {
            every: Duration::from_secs(5),
            every_in_doubt: Duration::from_secs(1),
            every_down: Duration::from_secs(2),
            jitter: 0.2,
            fall: 2,
            rise: 2,
        }
    }
}

impl CheckSettings {
    /// As Soul: every ten seconds, one miss is down and one answer is up.
    #[must_use]
    pub const fn soul() -> Self {
        let every = Duration::from_secs(10);
        Self { every, every_in_doubt: every, every_down: every, jitter: 0.0, fall: 1, rise: 1 }
    }
}

/// What the checks of one address have found so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HealthTrack {
    health: Health,
    /// Checks in a row that speak against `health`.
    against: u32,
}

impl HealthTrack {
    /// Goes on from what was known before.
    #[must_use]
    pub const fn from_health(health: Health) -> Self {
        Self { health, against: 0 }
    }

    /// What the checks say.
    #[must_use]
    pub const fn health(&self) -> Health {
        self.health
    }

    /// Learns the result of a check; gives the new health if it changed. The first answer of all is enough to be up.
    pub fn observe(&mut self, settings: &CheckSettings, answered: bool) -> Option<Health> {
        let (needed, then) = match (self.health, answered) {
            (Health::Unknown, true) => (1, Health::Up),
            (Health::Down, true) => (settings.rise, Health::Up),
            (Health::Unknown | Health::Up, false) => (settings.fall, Health::Down),
            (Health::Up, true) | (Health::Down, false) => {
                self.against = 0;
                return None;
            }
        };
        self.against = self.against.saturating_add(1);
        if self.against < needed {
            return None;
        }
        *self = Self::from_health(then);
        Some(then)
    }

    /// The pause before the next check.
    #[must_use]
    pub fn pause(&self, settings: &CheckSettings, random: &dyn RandomSource) -> Duration {
        match self.health {
            _ if self.against > 0 => return settings.every_in_doubt,
            Health::Down => return settings.every_down,
            Health::Unknown | Health::Up => {}
        }
        let unit = f64::from(random.below(1 << 24)) / f64::from(1 << 24);
        settings.every.mul_f64((1.0 + settings.jitter * (2.0 * unit - 1.0)).max(0.0))
    }

    /// The pause before the first check: anywhere in the interval, so that a list that arrives at once is not checked at once.
    #[must_use]
    pub fn first_pause(settings: &CheckSettings, random: &dyn RandomSource) -> Duration {
        settings.every.mul_f64(f64::from(random.below(1 << 24)) / f64::from(1 << 24))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_broken_by_its_opposite() {
        let settings = CheckSettings { fall: 3, rise: 2, ..Default::default() };
        let mut track = HealthTrack::default();
        let mut heard = Vec::new();
        for answered in "+--+-----+-++-".chars().map(|c| c == '+') {
            heard.push(track.observe(&settings, answered));
        }
        let changes: Vec<_> = heard.iter().enumerate().filter_map(|(i, h)| h.map(|h| (i, h))).collect();
        assert_eq!(changes, [(0, Health::Up), (6, Health::Down), (12, Health::Up)]);
    }

    #[test]
    fn thresholds_of_one_are_those_of_soul() {
        let settings = CheckSettings::soul();
        let mut track = HealthTrack::default();
        assert_eq!(track.observe(&settings, false), Some(Health::Down));
        assert_eq!(track.observe(&settings, true), Some(Health::Up));
    }

    #[test]
    fn a_crash_is_found_within_nine_seconds_and_a_return_within_three() {
        // The worst: it dies just after a check, every pause is as long as can be, and every check takes its second.
        let settings = CheckSettings::default();
        let longest = |bound: u32| bound - 1;
        let timeout = Duration::from_secs(1);
        let mut track = HealthTrack::from_health(Health::Up);
        let mut took = Duration::ZERO;
        loop {
            took += track.pause(&settings, &longest) + timeout;
            if track.observe(&settings, false).is_some() {
                break;
            }
        }
        assert!(took < Duration::from_millis(9_001), "{took:?}");
        let mut took = Duration::ZERO;
        loop {
            took += track.pause(&settings, &longest);
            if track.observe(&settings, true).is_some() {
                break;
            }
        }
        assert!(took < Duration::from_millis(3_001), "{took:?}");
    }

    #[test]
    fn pauses_vary_within_the_jitter() {
        let settings = CheckSettings::default();
        let track = HealthTrack::from_health(Health::Up);
        assert_eq!(track.pause(&settings, &|_| 0), Duration::from_secs(4));
        assert!(track.pause(&settings, &|bound| bound - 1) < Duration::from_secs(6));
        assert_eq!(HealthTrack::first_pause(&settings, &|_| 0), Duration::ZERO);
    }
}
