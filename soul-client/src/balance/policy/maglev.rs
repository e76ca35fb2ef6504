//! Consistent hashing by Maglev's table.

use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::{
    BuildContext, HashPolicy, Hashing, Picker, Policy,
    ring::{configured_share, signature, walk},
};
use crate::balance::{context::PickContext, members::Members};

/// A table in which every upstream owns its share of the slots: keys are spread almost evenly, and who leaves
/// moves its own keys and less than a hundredth of the others.
///
/// # Source
/// Eisenbud and others, Maglev: A Fast and Reliable Software Network Load Balancer, 2016.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Maglev;

/// Sizes of the table; the first that has a hundred slots for each upstream. Primes, so that every stride visits
/// all slots.
const SIZES: [u32; 3] = [65_537, 1_000_003, 5_000_011];

/// Other slots that are looked at, before any other upstream is taken.
const OTHER_SLOTS: u64 = 16;

#[derive(Debug)]
struct Table {
    /// Who takes part with what weight, to know whether the next table would be the same.
    signature: u64,
    /// Indexes of members.
    slots: Box<[u32]>,
}

#[derive(Debug)]
struct MaglevPicker {
    table: Arc<Table>,
}

impl Maglev {
    fn picker(members: Members<'_>, context: &BuildContext<'_>) -> MaglevPicker {
        let signature = signature(members, 0);
        let previous = context.previous::<MaglevPicker>().filter(|p| p.table.signature == signature);
        let table = previous.map_or_else(|| Arc::new(Table::new(members)), |p| Arc::clone(&p.table));
        MaglevPicker { table }
    }
}

impl Policy for Maglev {
    fn build(&self, members: Members<'_>, context: &BuildContext<'_>) -> Box<dyn Picker> {
        Box::new(Self::picker(members, context))
    }

    fn is_by_key(&self) -> bool {
        true
    }
}

impl HashPolicy for Maglev {
    fn build_hashing(&self, members: Members<'_>, context: &BuildContext<'_>) -> Box<dyn Hashing> {
        Box::new(Self::picker(members, context))
    }
}

impl Hashing for MaglevPicker {
    fn find(
        &self,
        members: Members<'_>,
        context: &PickContext<'_>,
        accept: &mut dyn FnMut(usize) -> bool,
    ) -> Option<usize> {
        let hash = context.hash64();
        // The first is the owner; the others are what the key hashes to again, so that the keys of one that is down
        // are spread over all.
        let again =
            |attempt: u64| if attempt == 0 { hash } else { xxh3_64_with_seed(&hash.to_le_bytes(), attempt) };
        let mut owners = (0..=OTHER_SLOTS).filter_map(|attempt| self.table.owner(again(attempt)));
        owners.find(|&owner| accept(owner)).or_else(|| walk(members, hash, accept))
    }
}

impl Picker for MaglevPicker {
    fn pick(&self, members: Members<'_>, context: &PickContext<'_>) -> Option<usize> {
        let owner = self.table.owner(context.hash64())?;
        if members.is_eligible(owner, context) {
            return Some(owner);
        }
        self.find(members, context, &mut |index| members.is_eligible(index, context))
    }
}

/// One upstream while the table is filled.
struct Claimant {
    index: u32,
    /// The next slot it would like.
    next: u32,
    stride: u32,
    weight: u64,
    /// Turns it had.
    turns: u64,
}

impl Table {
    fn new(members: Members<'_>) -> Self {
        let mut claimants: Vec<(&str, u32, u32)> = (0..)
            .zip(members.iter())
            .map(|(index, m)| (m.upstream().base_url(), index, configured_share(members, m.upstream())))
            .filter(|&(_, _, weight)| weight > 0)
            .collect();
        // Who comes first gets the better slots, so the order must not be that of the list.
        claimants.sort_unstable();
        claimants.dedup_by_key(|&mut (url, ..)| url);
        let enough = claimants.len().saturating_mul(100);
        let size = SIZES.into_iter().find(|&size| size as usize >= enough).unwrap_or(SIZES[2]);
        let largest = claimants.iter().map(|&(.., weight)| u64::from(weight)).max().unwrap_or(1);
        let claimants = claimants.into_iter().map(|(url, index, weight)| Claimant {
            index,
            next: reduce(xxh3_64_with_seed(url.as_bytes(), 0), size),
            stride: reduce(xxh3_64_with_seed(url.as_bytes(), 1), size - 1) + 1,
            weight: u64::from(weight),
            turns: 0,
        });
        let slots = fill(claimants.collect(), size, largest);
        Self { signature: signature(members, 0), slots }
    }

    #[inline]
    fn owner(&self, hash: u64) -> Option<usize> {
        let size = u32::try_from(self.slots.len()).unwrap_or(u32::MAX);
        self.slots.get(reduce(hash, size) as usize).map(|&index| index as usize)
    }
}

/// All take turns in claiming the next free slot of their liking; a lighter one passes in some rounds.
fn fill(mut claimants: Vec<Claimant>, size: u32, largest: u64) -> Box<[u32]> {
    const FREE: u32 = u32::MAX;
    if claimants.is_empty() {
        return Box::default();
    }
    let mut slots = vec![FREE; size as usize];
    let mut free = size;
    for round in 1_u64.. {
        for claimant in &mut claimants {
            if round * claimant.weight / largest <= claimant.turns {
                continue;
            }
            claimant.turns += 1;
            loop {
                let slot = claimant.next;
                // `stride` is below the size, so one subtraction stands for the division.
                let next = u64::from(slot) + u64::from(claimant.stride);
                let next = if next >= u64::from(size) { next - u64::from(size) } else { next };
                claimant.next = u32::try_from(next).unwrap_or(0);
                if slots[slot as usize] == FREE {
                    slots[slot as usize] = claimant.index;
                    break;
                }
            }
            free -= 1;
            if free == 0 {
                return slots.into();
            }
        }
    }
    slots.into()
}

/// Maps a hash to `0..size` by a multiplication and a shift, in place of a division.
#[inline]
fn reduce(hash: u64, size: u32) -> u32 {
    u32::try_from((u128::from(hash) * u128::from(size)) >> 64).unwrap_or(0)
}
