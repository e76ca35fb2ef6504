//! Soul's `random`.

/// Chooses by chance and weight; gives the position in `weights`, `None` if there are none.
///
/// One candidate is chosen without drawing. If the sum of the weights is positive and they are not all equal, each is
/// chosen in proportion; otherwise all are equally likely, those of weight 0 too.
/// The sum is a wrapping 32-bit number, and negative weights count as they are.
///
/// - `next_int`: draws a number from 0 up to but not including its argument; called at most once.
///
/// # Examples
/// ```
/// use soul_client::balance::soul::random;
///
/// assert_eq!(random([50, 20, 30].into_iter(), |bound| { assert_eq!(bound, 100); 69 }), Some(1));
/// assert_eq!(random([0, 0].into_iter(), |bound| { assert_eq!(bound, 2); 1 }), Some(1));
/// ```
pub fn random(
    weights: impl Iterator<Item = i32> + Clone,
    next_int: impl FnOnce(u32) -> u32,
) -> Option<usize> {
    let mut rest = weights.clone();
    let first = rest.next()?;
    let (mut count, mut total, mut same) = (1, first, true);
    for weight in rest {
        count += 1;
        total = total.wrapping_add(weight);
        same &= weight == first;
    }
    if count == 1 {
        return Some(0);
    }
    let Some(bound) = u32::try_from(total).ok().filter(|&total| total > 0 && !same) else {
        return Some(next_int(count) as usize);
    };
    let mut offset = next_int(bound).cast_signed();
    let position = weights.into_iter().position(|weight| {
        offset = offset.wrapping_sub(weight);
        offset < 0
    });
    Some(position.unwrap_or(0))
}
