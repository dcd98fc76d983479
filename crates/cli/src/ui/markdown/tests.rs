//! Tests of the rendered output and of its cost.

use std::time::{Duration, Instant};

use super::*;

fn look(styles: &Styles, columns: usize) -> RenderOptions<'_> {
    RenderOptions { columns, styles, marks: MarkerStyle::Styled }
}

fn shown(text: &str, columns: usize) -> String {
    let styles = Styles::new();
    let lines = render(text, look(&styles, columns)).expect("a text that is rendered");
    lines.iter().map(|line| line.text().trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}

#[test]
fn every_kind_of_block_is_rendered() {
    for (text, wanted) in [
        ("one\ntwo", "one\ntwo"),
        ("# Title\nwords", "Title\n\nwords"),
        ("a *b* **c** `d` ~~e~~", "a b c d e"),
        ("- a\n- b\n  - c\n\nend", "• a\n• b\n  ◦ c\n\nend"),
        ("3. a\n4. b", "3. a\n4. b"),
        ("- a\n\n- b", "• a\n\n• b"),
        ("- [x] done\n- [ ] open", "• ☑ done\n• ☐ open"),
        ("> a\n>\n> b", "│ a\n│\n│ b"),
        ("> - a\n>   b", "│ • a\n│   b"),
        ("```rust\nfn main() {}\n\n// end\n```\nafter", "    fn main() {}\n\n    // end\n\nafter"),
        ("a\n\n---\n\nb", "a\n\n────────────────────\n\nb"),
        ("[text](https://a.example)", "text\n<https://a.example>"),
        ("<https://a.example>", "https://a.example"),
        ("![alt](a.png)", "[image: alt] <a.png>"),
        ("a <b>bold</b>", "a <b>bold</b>"),
        ("| a | b |\n|---|--:|\n| 1 | 22 |\n| long | 3 |", "a    │  b\n─────┼───\n1    │ 22\nlong │  3"),
    ] {
        assert_eq!(shown(text, 20), wanted, "{text}");
    }
}

#[test]
fn words_are_wrapped_across_styles() {
    assert_eq!(shown("one **tw**o three", 8), "one two\nthree");
    assert_eq!(shown("> abcdefghijklmnop", 12), "│ abcdefghij\n│ klmnop");
    let cell = shown("| a | b |\n|---|---|\n| one two three four | x |", 16);
    assert_eq!(cell, "a            │ b\n─────────────┼──\none two      │ x\nthree four   │");
}

#[test]
fn without_styles_markdown_marks_stay() {
    let styles = Styles::new();
    let look = RenderOptions { marks: MarkerStyle::Written, ..look(&styles, 40) };
    let lines = render("## T\n\n*a* **b** `c`", look).expect("a text that is rendered");
    let text: Vec<String> = lines.iter().map(Label::text).collect();
    assert_eq!(text, ["## T", "", "*a* **b** `c`"]);
}

#[test]
fn code_is_coloured_by_meaning() {
    let styles = Styles::new();
    let lines =
        render("```rust\nfn main() { let x = \"s\"; } // c\n```", look(&styles, 80)).expect("rendered");
    let line = lines[0].to_string();
    for (style, text) in [(styles.code_keyword, "fn"), (styles.code_name, "main"), (styles.muted, " c")] {
        assert!(line.contains(&format!("{style}{text}{style:#}")), "{text}: {line:?}");
    }
}

#[test]
fn control_characters_are_escaped() {
    for text in [
        "a\u{1b}[2Jb",
        "&#27;[2J",
        "`\u{9b}2J`",
        "```x\n\u{1b}]0;t\u{7}\n```",
        "[a](<\u{1b}[2J>)",
        "| \u{202e}a |\n|-|",
    ] {
        let shown = shown(text, 40);
        let acts = |character: char| (character.is_control() && character != '\n') || character == '\u{202e}';
        assert!(!shown.contains(acts), "{text:?}: {shown:?}");
    }
}

#[test]
fn crafted_input_is_rendered_quickly() {
    let rows = "|x\n".repeat(40_000);
    let stairs: Vec<String> = (0..700).map(|step| format!("{}- x\n", "  ".repeat(step % 350))).collect();
    let texts = [
        "> ".repeat(100_000),
        format!("{}{}", "- ".repeat(30_000), "\n".repeat(100_000)),
        stairs.concat(),
        "x".repeat(5_000_000),
        "[".repeat(200_000),
        "*a ".repeat(80_000),
        "`".repeat(200_000),
        "![](".repeat(50_000),
        "<a ".repeat(60_000),
        format!("{}\n{}\n{rows}", "|a".repeat(20_000), "|-".repeat(20_000)),
        format!("|a|b|\n|-|-|\n{rows}"),
        format!("```rust\n{}\n```", "((\"".repeat(60_000)),
        format!("```js\n{}\n```", "/a".repeat(900)),
        format!("```rust\n{}\n```", "let x = \"a\";\n".repeat(15_000)),
        "&#27;".repeat(40_000),
        "a\u{301}".repeat(80_000),
    ];
    let styles = Styles::new();
    for text in texts {
        let start = Instant::now();
        let _ = render(&text, look(&styles, 80));
        let beginning: String = text.chars().take(20).collect();
        assert!(start.elapsed() < Duration::from_secs(4), "{beginning:?} took {:?}", start.elapsed());
    }
}
