//! Checksums over rows and over the whole, so that a lost row is noticed as well as a changed one.

use md5::{Digest as _, Md5};

use super::super::store::TableKind;

/// Length of a checksum in bytes.
pub(super) const CHECKSUM_LEN: usize = 16;

/// A checksum: the MD5 of some bytes. It guards against damage, not against an attacker.
pub(super) fn checksum(parts: &[&[u8]]) -> [u8; CHECKSUM_LEN] {
    let mut md5 = Md5::new();
    for part in parts {
        md5.update((part.len() as u64).to_le_bytes());
        md5.update(part);
    }
    md5.finalize().into()
}

/// Number of the rows of one table, and their checksums together; the order of the rows does not matter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TableDigest {
    rows: u64,
    sum: u128,
}

impl TableDigest {
    /// A row more.
    pub(super) fn add(&mut self, checksum: [u8; CHECKSUM_LEN]) {
        self.rows = self.rows.wrapping_add(1);
        self.sum ^= u128::from_le_bytes(checksum);
    }

    /// A row less.
    pub(super) fn remove(&mut self, checksum: [u8; CHECKSUM_LEN]) {
        self.rows = self.rows.wrapping_sub(1);
        self.sum ^= u128::from_le_bytes(checksum);
    }
}

/// What is kept beside the rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct State {
    /// Number of the last change.
    pub(super) revision: u64,
    /// The next free place.
    pub(super) next_place: u64,
    /// One digest a table, in the order of [`TableKind::ALL`].
    pub(super) tables: [TableDigest; TableKind::ALL.len()],
}

impl State {
    /// The bytes, checksum last.
    pub(super) fn to_bytes(self) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend(self.revision.to_le_bytes());
        bytes.extend(self.next_place.to_le_bytes());
        for TableDigest { rows, sum } in self.tables {
            bytes.extend(rows.to_le_bytes());
            bytes.extend(sum.to_le_bytes());
        }
        bytes.extend(checksum(&[&bytes]));
        bytes
    }

    /// Reads [`Self::to_bytes`]; `None` for anything else.
    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (body, sum) = bytes.split_last_chunk::<CHECKSUM_LEN>()?;
        if checksum(&[body]) != *sum {
            return None;
        }
        let (revision, body) = body.split_first_chunk()?;
        let (next_place, mut body) = body.split_first_chunk()?;
        let mut state = Self {
            revision: u64::from_le_bytes(*revision),
            next_place: u64::from_le_bytes(*next_place),
            ..Self::default()
        };
        for table in &mut state.tables {
            let (rows, rest) = body.split_first_chunk()?;
            let (sum, rest) = rest.split_first_chunk()?;
            *table = TableDigest { rows: u64::from_le_bytes(*rows), sum: u128::from_le_bytes(*sum) };
            body = rest;
        }
        body.is_empty().then_some(state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn state_survives_and_a_flipped_bit_does_not() {
        let mut state = State { revision: 7, next_place: 9, ..State::default() };
        state.tables[1].add(checksum(&[b"row"]));
        let bytes = state.to_bytes();
        assert_eq!(State::from_bytes(&bytes), Some(state));
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            assert_eq!(State::from_bytes(&damaged), None, "byte {at}");
        }
        assert_eq!(State::from_bytes(&bytes[1..]), None);
    }

    #[test]
    fn digest_returns_when_rows_are_taken_away() {
        let (a, b) = (checksum(&[b"a"]), checksum(&[b"b"]));
        let mut digest = TableDigest::default();
        digest.add(a);
        let with_a = digest;
        digest.add(b);
        assert_ne!(digest, with_a);
        digest.remove(b);
        assert_eq!(digest, with_a);
    }
}
