//! A deterministic random number generator, so that failures can be reproduced.
//!
//! This is splitmix64: a counter through a mixing function. It is small, and its sequence does not depend on the
//! version of a library.

/// A deterministic sequence of random numbers.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// The sequence of a seed.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number below `limit`; 0 if `limit` is 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        // The modulo bias is negligible here.
        self.next_u64().checked_rem(limit).unwrap_or(0)
    }

    /// A random index into a list of this length.
    pub fn index(&mut self, length: usize) -> usize {
        self.below(length as u64) as usize
    }

    /// True with probability 1/`times`.
    pub fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// A random item; `None` if the list is empty.
    pub fn pick<'items, T>(&mut self, items: &'items [T]) -> Option<&'items T> {
        items.get(self.index(items.len()))
    }

    /// An independent generator, derived from this one.
    #[must_use]
    pub fn split(&mut self) -> Self {
        Self(self.next_u64())
    }
}

/// A bijective mixing function.
pub fn mix(number: u64) -> u64 {
    let mut mixed = number;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
