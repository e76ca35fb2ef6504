//! Whether an upstream may be chosen: what a probe found, and whether anything stands against it.

/// What the probe last found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Health {
    /// Not probed yet; takes traffic, since a registration is a promise of its own.
    #[default]
    Unknown,
    /// It answered.
    Up,
    /// It did not; takes no traffic until it answers again.
    Down,
}

/// What stands against an upstream, in one number, so that a choice finds out with one read that nothing does.
pub(super) mod flags {
    /// A probe found it up. Stands against nothing.
    pub(in crate::balance) const UP: u32 = 1;
    /// A probe found it down.
    pub(in crate::balance) const DOWN: u32 = 2;
    /// It is ejected, or was and has not proved itself yet.
    pub(in crate::balance) const EJECTED: u32 = 4;
    /// It takes less than its share.
    pub(in crate::balance) const RAMP: u32 = 8;
    /// Threads have parts of their own to count in. Stands against nothing.
    pub(in crate::balance) const PARTED: u32 = 16;
    pub(in crate::balance) const TROUBLE: u32 = DOWN | EJECTED | RAMP;
}

impl Health {
    pub(super) const fn from_flags(flags: u32) -> Self {
        match flags & (flags::UP | flags::DOWN) {
            0 => Self::Unknown,
            flags::UP => Self::Up,
            _ => Self::Down,
        }
    }

    pub(super) const fn flags(self) -> u32 {
        match self {
            Self::Unknown => 0,
            Self::Up => flags::UP,
            Self::Down => flags::DOWN,
        }
    }
}
