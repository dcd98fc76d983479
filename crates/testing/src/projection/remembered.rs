//! Tests that a request with a memory of earlier ones is the request without it, to the byte, whatever changed between.

use std::cell::Cell;
use std::sync::Arc;

use crate::projection::sample::{Rng, models, picture, random_entries};
use retake_model::content::ContentId;
use retake_model::entry::EntryVersion;
use retake_model::id::EntryId;
use retake_model::projection::{
    Ask, Dialect, EffortWords, Remembered, Thinking, ThinkingField, Thoughts, ToolSpec, Wire, converse,
    message_tokens, request, request_prefix,
};
use retake_model::settings::Effort;

type Shared = (EntryId, Arc<EntryVersion>);

/// A conversation that is sent again and again, with changes.
struct World {
    rng: Rng,
    entries: Vec<Shared>,
    /// Earlier entries, to return to.
    past: Vec<Vec<Shared>>,
    seeds: u64,
    asks: usize,
    missing: Cell<bool>,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut world = Self {
            rng: Rng::new(seed),
            entries: Vec::new(),
            past: Vec::new(),
            seeds: seed * 1_000,
            asks: 0,
            missing: Cell::new(false),
        };
        for _ in 0..world.rng.below(30) {
            world.append();
        }
        world
    }

    /// Adds a few turns.
    fn append(&mut self) {
        self.seeds += 1;
        let seed = self.seeds;
        self.entries.extend(random_entries(seed).into_iter().map(|(id, entry)| {
            let mut bytes = *id.bytes();
            bytes[..8].copy_from_slice(&seed.to_be_bytes());
            (EntryId::from_bytes(bytes), Arc::new(entry))
        }));
    }

    fn change(&mut self) {
        let len = self.entries.len();
        match self.rng.below(10) {
            0..5 => self.append(),
            5 => self.entries.truncate(len - self.rng.below(len.min(80) + 1)),
            6 if len > 0 => {
                let place = self.rng.below(len);
                let text = format!("edited {}", self.seeds);
                let role = (*self.rng.pick(&["User", "AI", "Tool"])).to_owned();
                let entry = EntryVersion::from_text(&role, &text, self.entries[place].1.created);
                self.entries[place].1 = Arc::new(entry);
            }
            7 if len > 0 => _ = self.entries.remove(self.rng.below(len)),
            8 if !self.past.is_empty() => self.entries = self.rng.pick(&self.past).clone(),
            // An equal entry elsewhere in memory.
            9 if len > 0 => {
                let entry = &mut self.entries[self.rng.below(len)].1;
                *entry = Arc::new(EntryVersion::clone(entry));
            }
            _ => self.missing.set(!self.missing.get()),
        }
        self.past.push(self.entries.clone());
    }

    /// Compares the requests with and without memory; `stale` shows the memory other entries than those sent.
    fn differs(&mut self, memory: &mut Remembered, stale: Option<&[Shared]>) -> Option<String> {
        // Mostly the same question again, as in a conversation.
        self.asks += usize::from(self.rng.once_in(4));
        let wire = Wire::ALL[self.asks % 4];
        let model = &models(wire)[self.asks / 4 % 2];
        let bound = self.asks / 8 % 2 == 1;
        let schema = serde_json::json!({"type": "object", "properties": {"path": {"type": "string"}}});
        let tool = ToolSpec { name: "read".to_owned(), description: "Reads.".to_owned(), schema };
        let ask = Ask {
            wire,
            dialect: Dialect {
                bound_thoughts: bound,
                thinking: if bound {
                    ThinkingField::Adaptive { always: false }
                } else {
                    Dialect::of(wire).thinking
                },
                nine_letter_ids: bound,
                effort_words: EffortWords { off: "low", max: "high" },
                ..Dialect::of(wire)
            },
            model,
            system: if self.rng.once_in(9) { "" } else { "Be brief." },
            tools: if self.rng.once_in(9) { &[] } else { &[tool] },
            max_tokens: 8_192,
            temperature: None,
            top_p: None,
            thinking: Some(Thinking { effort: Effort::Low, budget: 2_000 }),
            thoughts: if self.rng.once_in(9) { Thoughts::Omitted } else { Thoughts::Accepted },
        };
        let pictures = |id: ContentId| picture(id).filter(|_| !self.missing.get());
        let sizes = |_: &str, id: ContentId| pictures(id).map_or(7, |bytes| bytes.len() as u64);

        let plain: Vec<(EntryId, EntryVersion)> =
            self.entries.iter().map(|(id, entry)| (*id, EntryVersion::clone(entry))).collect();
        let conversation = converse(&plain);
        let tokens: u64 = conversation.messages.iter().map(|message| message_tokens(message, &sizes)).sum();
        let body = request(&conversation, &ask, &pictures);
        let prefix = request_prefix(&body).filter(|_| wire == Wire::Anthropic);

        let remembered = memory.converse(stale.unwrap_or(&self.entries));
        let sent = memory.request(&remembered, &ask, &pictures);
        let sent_plainly = body.to_string();
        let differs = [
            ("conversation", remembered != conversation),
            ("tokens", memory.tokens(&remembered, &sizes) != tokens),
            ("prefix", sent.prefix() != prefix.as_deref()),
            ("body", sent.to_json() != sent_plainly),
        ];
        let place = differs.iter().find(|(_, differs)| *differs)?.0;
        Some(format!("{place} for {wire:?}, {} entries", self.entries.len()))
    }
}

#[test]
fn a_request_with_a_memory_is_the_request_without_it() {
    let mut longest = 0;
    for seed in 0..12 {
        let (mut world, mut memory) = (World::new(seed), Remembered::default());
        for step in 0..25 {
            assert_eq!(world.differs(&mut memory, None), None, "seed {seed}, step {step}");
            longest = longest.max(world.entries.len());
            world.change();
        }
    }
    assert!(longest > 400, "{longest}");
}

/// The control: a memory that misses a change is noticed.
#[test]
fn a_memory_that_misses_a_change_is_noticed() {
    let mut noticed = 0;
    for seed in 0..20 {
        let (mut world, mut memory) = (World::new(seed), Remembered::default());
        world.append();
        assert_eq!(world.differs(&mut memory, None), None);
        let before = world.entries.clone();
        let text = EntryVersion::from_text("User", "changed", before[0].1.created);
        let place = world.rng.below(before.len());
        world.entries[place].1 = Arc::new(text);
        noticed += u32::from(world.differs(&mut memory, Some(&before)).is_some());
    }
    assert_eq!(noticed, 20);
}
