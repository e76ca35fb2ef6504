//! Lists that mostly have one element.

use std::ops::Deref;

/// A list without memory of its own as long as it has one element: nearly all lists of conditions and of patterns have.
#[derive(Debug)]
pub(super) enum Few<T> {
    One(T),
    Many(Box<[T]>),
}

impl<T> Deref for Few<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match self {
            Self::One(only) => std::slice::from_ref(only),
            Self::Many(all) => all,
        }
    }
}

impl<T> FromIterator<T> for Few<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        let mut items = items.into_iter();
        let (first, second) = (items.next(), items.next());
        match (first, second) {
            (Some(only), None) => Self::One(only),
            (first, second) => Self::Many(first.into_iter().chain(second).chain(items).collect()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_is_the_list_it_was_made_of() {
        for length in 0..4 {
            let few: Few<usize> = (0..length).collect();
            assert_eq!(*few, (0..length).collect::<Vec<_>>());
        }
    }
}
