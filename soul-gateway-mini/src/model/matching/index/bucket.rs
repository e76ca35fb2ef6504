//! What is at a place, in few bytes: a large configuration has several places a rule, and a request looks at some.

/// A beginning of a path.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Node {
    /// Entries for a path that ends here; marked if a segment by its text leads on.
    pub(super) exact: Bucket,
    /// Entries for this path and all below; marked if any segment leads on.
    pub(super) below: Bucket,
}

impl Node {
    /// Whether a segment by its text leads on.
    pub(super) fn has_literal(self) -> bool {
        self.exact.is_marked()
    }

    /// Whether any segment leads on.
    pub(super) fn has_wild(self) -> bool {
        self.below.is_marked()
    }

    /// Whether nothing leads on, and no entry is for this path alone.
    pub(super) fn is_end(self) -> bool {
        self.exact == Bucket::default() && !self.has_wild()
    }

    pub(super) fn lead_on(&mut self, wild: bool) {
        if wild { self.below.mark() } else { self.exact.mark() }
    }
}

/// The entries of one place, and a mark: two bits, the mark, and the rest is the number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Bucket(u32);

/// The entries of one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Empty,
    One(u32),
    /// A place in the index's lists.
    List(u32),
}

impl Bucket {
    const ONE: u32 = 1;
    const LIST: u32 = 2;
    const MARK: u32 = 4;
    const NUMBER: u32 = 3;

    pub(super) fn kind(self) -> Kind {
        let number = self.0 >> Self::NUMBER;
        match self.0 & (Self::ONE | Self::LIST) {
            0 => Kind::Empty,
            Self::ONE => Kind::One(number),
            _ => Kind::List(number),
        }
    }

    /// - `kind`: numbers are below 2^29, five hundred million.
    pub(super) fn set(&mut self, kind: Kind) {
        let (kind, number) = match kind {
            Kind::Empty => (0, 0),
            Kind::One(rank) => (Self::ONE, rank),
            Kind::List(list) => (Self::LIST, list),
        };
        debug_assert!(number < 1 << (u32::BITS - Self::NUMBER), "{number}");
        self.0 = self.0 & Self::MARK | kind | number << Self::NUMBER;
    }

    fn mark(&mut self) {
        self.0 |= Self::MARK;
    }

    fn is_marked(self) -> bool {
        self.0 & Self::MARK > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_in_comes_out_beside_the_mark() {
        for kind in [Kind::Empty, Kind::One(0), Kind::One(1 << 28), Kind::List(0), Kind::List(77)] {
            let mut node = Node::default();
            node.exact.set(kind);
            node.below.set(Kind::One(5));
            assert_eq!(
                (node.has_literal(), node.has_wild(), node.is_end()),
                (false, false, kind == Kind::Empty)
            );
            node.lead_on(false);
            node.exact.set(kind);
            assert_eq!((node.has_literal(), node.has_wild(), node.is_end()), (true, false, false));
            node.lead_on(true);
            assert_eq!((node.exact.kind(), node.below.kind(), node.has_wild()), (kind, Kind::One(5), true));
        }
    }
}
