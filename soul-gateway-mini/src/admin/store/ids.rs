//! Row ids as Soul makes them: specification, section 0.3.

/// Milliseconds since the epoch at which Soul's ids begin.
const EPOCH_MS: i64 = 1_288_834_974_657;
/// Largest number of a datacenter, and of a worker.
const LARGEST_NODE: u8 = 30;
/// Bits of the sequence inside one millisecond.
const SEQUENCE_BITS: u32 = 12;

/// A source of row ids: time, the place of this process, a sequence.
///
/// Ids of one source never repeat and only grow, even if the clock is set back: the source then stays at the last
/// time it saw. No clock is read and no randomness drawn here; both are given.
#[derive(Clone, Debug)]
pub struct Snowflake {
    node: i64,
    last_ms: i64,
    sequence: i64,
}

impl Snowflake {
    /// A source for one process; numbers above 30 wrap, as there are none in Soul.
    #[must_use]
    pub fn new(datacenter: u8, worker: u8) -> Self {
        let number = |n: u8| i64::from(n % (LARGEST_NODE + 1));
        let node = number(datacenter) << 17 | number(worker) << 12;
        Self { node, last_ms: 0, sequence: 0 }
    }

    /// The next id, as the decimal text that travels.
    pub fn next(&mut self, now_ms: i64) -> String {
        if now_ms > self.last_ms {
            self.last_ms = now_ms;
            self.sequence = 0;
        } else {
            self.sequence += 1;
            if self.sequence >> SEQUENCE_BITS != 0 {
                // Soul waits for the next millisecond; a pure function takes it in advance.
                self.last_ms += 1;
                self.sequence = 0;
            }
        }
        (((self.last_ms - EPOCH_MS).max(0) << 22) | self.node | self.sequence).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn id_is_time_node_and_sequence() {
        let mut ids = Snowflake::new(3, 7);
        let now = EPOCH_MS + 5;
        assert_eq!(ids.next(now), ((5_i64 << 22) | (3 << 17) | (7 << 12)).to_string());
        assert_eq!(ids.next(now), ((5_i64 << 22) | (3 << 17) | (7 << 12) | 1).to_string());
    }

    #[test]
    fn ids_grow_through_a_full_millisecond_and_a_clock_set_back() {
        let mut ids = Snowflake::new(1, 1);
        let now = EPOCH_MS + 1_000;
        let mut last = 0;
        for step in 0..10_000 {
            let id: i64 = ids.next(if step > 5_000 { now - 500 } else { now }).parse().unwrap();
            assert!(id > last, "step {step}");
            last = id;
        }
    }
}
