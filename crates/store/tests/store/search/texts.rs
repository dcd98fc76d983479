//! Sample texts for the search tests.

use retake_model::id::EntryId;

use super::world::World;

/// Entries of many kinds, by short name.
pub(crate) const TEXTS: &[(&str, &str)] = &[
    ("parser", "Please fix the parser: parse_history panics in foo::bar() on empty input."),
    ("naive", "Die naïve Lösung wäre, den Zähler über crème brûlée zu stellen."),
    ("japanese", "構文解析器を修正してください。テストも追加して。"),
    ("thai", "กรุณาแก้ไขโปรแกรมแยกวิเคราะห์"),
    ("korean", "서버가 응답하지 않습니다"),
    ("hindi", "कृपया पार्सर ठीक करें"),
    ("emoji", "It works 🎉👩‍💻 and the tests pass ✅"),
    ("greek", "Ο ΑΝΑΛΥΤΉΣ χάλασε"),
    ("hostile", "\" OR NEAR( * AND NOT ^title : {x} - ' ; DROP TABLE doc; --"),
    ("flags", "run cargo clippy --all-targets -- -D warnings"),
    ("thought", "<think>perhaps an iterator</think>I used a loop."),
];

/// A thread with all sample texts.
pub(crate) fn texts() -> (World, Vec<(&'static str, EntryId)>) {
    let world = World::new();
    let thread = world.thread("Texts");
    let named = TEXTS.iter().map(|&(name, text)| (name, world.say(thread, "AI", text))).collect();
    (world, named)
}

/// Pseudorandom numbers with a fixed seed.
pub(crate) struct Rng(pub(crate) u64);

impl Rng {
    /// A number below the limit.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    /// A word of arbitrary characters with at least one letter.
    pub(crate) fn word(&mut self) -> String {
        const RANGES: &[(u32, u32)] = &[
            (0x61, 0x7a),
            (0x30, 0x39),
            (0xc0, 0x24f),
            (0x300, 0x36f),
            (0x370, 0x3ff),
            (0x400, 0x52f),
            (0x5d0, 0x5ea),
            (0x620, 0x6d3),
            (0x900, 0x97f),
            (0xe00, 0xe7f),
            (0x1000, 0x109f),
            (0x1e00, 0x1fff),
            (0x2100, 0x2bff),
            (0x3040, 0x30ff),
            (0x4e00, 0x9fff),
            (0xac00, 0xd7a3),
            (0xe000, 0xe0ff),
            (0xff01, 0xff9f),
            (0x1f300, 0x1faff),
            (0x20000, 0x2a6df),
            (0x2e, 0x2f),
            (0x5b, 0x60),
        ];
        let mut word: String = (0..=self.below(6))
            .filter_map(|_| {
                let (low, high) = RANGES[self.below(RANGES.len() as u64) as usize];
                char::from_u32(low + self.below(u64::from(high - low + 1)) as u32)
            })
            .filter(|character| !character.is_whitespace() && *character != '＊')
            .collect();
        word.push(char::from(b'a' + self.below(26) as u8));
        word
    }
}
