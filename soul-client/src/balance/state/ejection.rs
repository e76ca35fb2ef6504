//! How an upstream is ejected, and comes back step by step.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::{super::health::flags, UpstreamState};

impl UpstreamState {
    /// 0 while it is not ejected.
    #[inline]
    pub(in crate::balance) fn ejection_ms(&self) -> i64 {
        self.hot.ejected_until_ms.load(Relaxed)
    }

    /// Moves the end of the ejection, unless it is no longer what it was.
    pub(in crate::balance) fn move_ejection(&self, from_ms: i64, to_ms: i64) -> bool {
        let moved = self.hot.ejected_until_ms.compare_exchange(from_ms, to_ms, Acquire, Relaxed).is_ok();
        if moved && from_ms == 0 {
            self.change_flags(|flags| flags | flags::EJECTED);
        }
        moved
    }

    pub(in crate::balance) fn count_ejection(&self) {
        self.cold.ejections.fetch_add(1, Relaxed);
    }

    /// Ends the ejection, if there is one; gives whether there was.
    pub(in crate::balance) fn end_ejection(&self) -> bool {
        self.forget_failures();
        self.cold.ejections.store(0, Relaxed);
        if self.ejection_ms() == 0 {
            return false;
        }
        // The flag first: the next ejection can only begin when the time is 0, and sets it again.
        self.change_flags(|flags| flags & !flags::EJECTED);
        let ended = self.hot.ejected_until_ms.swap(0, Release) != 0;
        if ended {
            self.group.release_ejection();
        }
        ended
    }

    // === ramp ===

    /// From a moment on it takes less than its share for a while.
    pub(in crate::balance) fn start_ramp(&self, from_ms: i64, length_ms: i64) {
        self.cold.ramp_ms.store(length_ms, Relaxed);
        self.hot.ramp_from_ms.store(from_ms, Relaxed);
        self.change_flags(|flags| flags | flags::RAMP);
    }

    /// How far the ramp is, from 0 to 1; `None` if there is none. One read for most.
    pub(in crate::balance) fn ramp(&self, now_ms: i64) -> Option<f64> {
        let from = self.hot.ramp_from_ms.load(Relaxed);
        if from == 0 {
            return None;
        }
        let length = self.cold.ramp_ms.load(Relaxed);
        let passed = now_ms.wrapping_sub(from);
        if passed >= length {
            self.hot.ramp_from_ms.store(0, Relaxed);
            self.change_flags(|flags| flags & !flags::RAMP);
            return None;
        }
        #[allow(clippy::cast_precision_loss)]
        Some(passed.max(0) as f64 / length as f64)
    }
}
