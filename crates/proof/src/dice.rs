//! Dice that fall the same way for the same seed, so that a failure can be seen again.
//!
//! This is splitmix64: a counter through a mixing function. It is small enough to be read here, and the
//! numbers stay the same whatever happens to any library of random numbers.

/// A row of numbers that looks random and depends on the seed alone.
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// The row that belongs to that seed.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number below that limit; 0 if the limit is 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        // The bias of a remainder is far below what any campaign could notice.
        self.roll().checked_rem(limit).unwrap_or(0)
    }

    /// An index into something that long.
    pub fn index(&mut self, length: usize) -> usize {
        self.below(length as u64) as usize
    }

    /// True about once in that many times.
    pub fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// One of these; `None` if there are none.
    pub fn pick<'items, T>(&mut self, items: &'items [T]) -> Option<&'items T> {
        items.get(self.index(items.len()))
    }

    /// Dice of their own, which depend on this row and do not disturb it further.
    #[must_use]
    pub fn split(&mut self) -> Self {
        Self(self.roll())
    }
}

/// One number to another, such that no two numbers go to the same one.
pub fn mix(number: u64) -> u64 {
    let mut mixed = number;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
