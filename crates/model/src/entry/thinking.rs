//! Separates thinking tags from the rest of a model's text.

use super::{Block, Fields};

const TAGS: [(&str, &str); 2] = [("<thinking>", "</thinking>"), ("<think>", "</think>")];

/// Splits text into text blocks and thinking blocks, one for each `<thinking>` or `<think>` element.
///
/// A tag without an end tag stays as text, so that no output is lost.
pub fn split_thinking(text: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut rest = text;
    while let Some((before, thought, after)) = next_thought(rest) {
        push_text(&mut blocks, before);
        if !thought.trim().is_empty() {
            let text = thought.trim().to_owned();
            blocks.push(Block::Thinking { text, signature: None, extra: Fields::default() });
        }
        rest = after;
    }
    if blocks.is_empty() {
        return vec![Block::of_text(text)];
    }
    push_text(&mut blocks, rest);
    blocks
}

fn next_thought(text: &str) -> Option<(&str, &str, &str)> {
    let (start, open, close) = TAGS
        .iter()
        .filter_map(|&(open, close)| text.find(open).map(|start| (start, open, close)))
        .min_by_key(|&(start, ..)| start)?;
    let inside = &text[start + open.len()..];
    let end = inside.find(close)?;
    Some((&text[..start], &inside[..end], &inside[end + close.len()..]))
}

fn push_text(blocks: &mut Vec<Block>, text: &str) {
    let text = text.trim_matches('\n');
    if !text.trim().is_empty() {
        blocks.push(Block::of_text(text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinking_is_split_from_text() {
        fn check(text: &str, expected: &[(&str, &str)]) {
            let found: Vec<(&str, String)> = split_thinking(text)
                .into_iter()
                .map(|block| match block {
                    Block::Thinking { text, .. } => ("thinking", text),
                    Block::Text { text, .. } => ("text", text),
                    other => unreachable!("{other:?}"),
                })
                .collect();
            let expected: Vec<(&str, String)> =
                expected.iter().map(|&(kind, text)| (kind, text.to_owned())).collect();
            assert_eq!(found, expected, "{text:?}");
        }
        check("plain", &[("text", "plain")]);
        check("", &[("text", "")]);
        check("<think>hm</think>\nyes", &[("thinking", "hm"), ("text", "yes")]);
        check(
            "a<thinking>b</thinking>c<think>d</think>",
            &[("text", "a"), ("thinking", "b"), ("text", "c"), ("thinking", "d")],
        );
        check("<think>never closed", &[("text", "<think>never closed")]);
        check("<think> </think>", &[("text", "<think> </think>")]);
    }
}
