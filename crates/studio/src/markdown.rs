//! Markdown, safely: the one way by which a text becomes more than text.
//!
//! ```text
//!   text ─► pulldown-cmark ─► events ─► elements of a short list, every text escaped
//!                                └ raw HTML is shown as the text that it is; pictures become links; links lead to
//!                                  https, http and mailto alone, and say nothing of where they were followed from
//! ```

use maud::{Markup, PreEscaped, Render, html};
use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};
use retake_words::code::{Word, read};

/// A longer text is shown as it is: reading it as Markdown would cost more than it helps.
const MOST_BYTES: usize = 256 * 1024;
/// A longer line of code is not coloured.
const LONGEST_LINE: usize = 2_000;
/// More code is not coloured.
const MOST_CODE: usize = 64 * 1024;

/// A text, drawn.
pub(crate) fn draw(text: &str) -> Markup {
    if text.len() > MOST_BYTES {
        return html! { pre class="plain" { (text) } };
    }
    let mut writer = Writer { out: String::with_capacity(text.len() * 2), code: None, head: false };
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    for event in Parser::new_ext(text, options) {
        writer.event(event);
    }
    PreEscaped(writer.out)
}

/// Code in colours, by what its words mean; the style says which colours these are.
pub(crate) fn code(language: &str, code: &str) -> Markup {
    let coloured = coloured(language, code);
    html! { code { @if let Some(markup) = &coloured { (markup) } @else { (code) } } }
}

struct Writer {
    out: String,
    /// The language and the text of the code that is being read.
    code: Option<(String, String)>,
    /// Whether this is the head of a table.
    head: bool,
}

impl Writer {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => match &mut self.code {
                Some((_, code)) => code.push_str(&text),
                None => self.text(&text),
            },
            Event::Code(text) => self.put(&html! { code { (&*text) } }),
            // What a text says in HTML is what it says, and nothing that a browser does.
            Event::Html(text) | Event::InlineHtml(text) => self.text(&text),
            Event::SoftBreak => self.out.push('\n'),
            Event::HardBreak => self.out.push_str("<br>"),
            Event::Rule => self.out.push_str("<hr>"),
            Event::TaskListMarker(done) => self.out.push_str(if done { "☑ " } else { "☐ " }),
            Event::FootnoteReference(text) | Event::InlineMath(text) | Event::DisplayMath(text) => {
                self.text(&text);
            }
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph => self.out.push_str("<p>"),
            // The page has headings of its own above these.
            Tag::Heading { level, .. } => {
                let level = (level as usize + 2).min(6);
                self.put(&PreEscaped(format!("<h{level}>")));
            }
            Tag::BlockQuote(_) => self.out.push_str("<blockquote>"),
            Tag::CodeBlock(kind) => {
                let language = match kind {
                    CodeBlockKind::Fenced(named) => named.split([',', ' ']).next().unwrap_or("").to_owned(),
                    CodeBlockKind::Indented => String::new(),
                };
                self.code = Some((language, String::new()));
            }
            Tag::List(None) => self.out.push_str("<ul>"),
            Tag::List(Some(first)) => self.put(&PreEscaped(format!("<ol start=\"{first}\">"))),
            Tag::Item => self.out.push_str("<li>"),
            Tag::Table(_) => self.out.push_str("<div class=\"wide\" tabindex=\"0\"><table>"),
            Tag::TableHead => {
                self.head = true;
                self.out.push_str("<thead><tr>");
            }
            Tag::TableRow => self.out.push_str("<tr>"),
            Tag::TableCell => self.out.push_str(if self.head { "<th>" } else { "<td>" }),
            Tag::Emphasis => self.out.push_str("<em>"),
            Tag::Strong => self.out.push_str("<strong>"),
            Tag::Strikethrough => self.out.push_str("<del>"),
            // A picture from elsewhere would tell its server who reads this, and when.
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => self.link(&dest_url),
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph => self.out.push_str("</p>"),
            TagEnd::Heading(level) => {
                let level = (level as usize + 2).min(6);
                self.put(&PreEscaped(format!("</h{level}>")));
            }
            TagEnd::BlockQuote(_) => self.out.push_str("</blockquote>"),
            TagEnd::CodeBlock => {
                if let Some((language, text)) = self.code.take() {
                    // What scrolls can be scrolled by keys.
                    self.put(&html! { pre tabindex="0" { (code(&language, &text)) } });
                }
            }
            TagEnd::List(false) => self.out.push_str("</ul>"),
            TagEnd::List(true) => self.out.push_str("</ol>"),
            TagEnd::Item => self.out.push_str("</li>"),
            TagEnd::Table => self.out.push_str("</table></div>"),
            TagEnd::TableHead => {
                self.head = false;
                self.out.push_str("</tr></thead>");
            }
            TagEnd::TableRow => self.out.push_str("</tr>"),
            TagEnd::TableCell => self.out.push_str(if self.head { "</th>" } else { "</td>" }),
            TagEnd::Emphasis => self.out.push_str("</em>"),
            TagEnd::Strong => self.out.push_str("</strong>"),
            TagEnd::Strikethrough => self.out.push_str("</del>"),
            TagEnd::Link | TagEnd::Image => self.out.push_str("</a>"),
            _ => {}
        }
    }

    fn link(&mut self, target: &str) {
        let lower = target.trim_start().to_ascii_lowercase();
        let safe = ["https://", "http://", "mailto:"].iter().any(|scheme| lower.starts_with(scheme));
        // What leads nowhere safe is still seen, and leads nowhere.
        if safe {
            self.out.push_str("<a rel=\"noreferrer noopener nofollow\" target=\"_blank\" href=\"");
            target.render_to(&mut self.out);
            self.out.push_str("\">");
        } else {
            self.out.push_str("<a class=\"unsafe\" title=\"");
            target.render_to(&mut self.out);
            self.out.push_str("\">");
        }
    }

    fn text(&mut self, text: &str) {
        text.render_to(&mut self.out);
    }

    fn put(&mut self, markup: &Markup) {
        self.out.push_str(&markup.0);
    }
}

fn coloured(language: &str, code: &str) -> Option<Markup> {
    if code.len() > MOST_CODE {
        return None;
    }
    let lines = read(language, code, LONGEST_LINE)?;
    let ends = code.ends_with('\n');
    let last = lines.len().saturating_sub(1);
    Some(html! {
        @for (number, line) in lines.iter().enumerate() {
            @for (word, text) in line {
                @match class_of(*word) { "" => (text), class => span class=(class) { (text) } }
            }
            @if number < last || ends { "\n" }
        }
    })
}

/// What the style calls a word.
fn class_of(word: Word) -> &'static str {
    match word {
        Word::Plain => "",
        Word::Comment => "c",
        Word::Text => "s",
        Word::Value => "n",
        Word::Keyword => "k",
        Word::Name => "f",
        Word::Added => "i",
        Word::Removed => "d",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_drawn() {
        let check = |text: &str, drawn: &str| assert_eq!(draw(text).0, drawn, "{text}");
        check("a **b** `c`", "<p>a <strong>b</strong> <code>c</code></p>");
        check("# a", "<h3>a</h3>");
        check("- a\n- b", "<ul><li>a</li><li>b</li></ul>");
        check("3. a", "<ol start=\"3\"><li>a</li></ol>");
        check("```\n<b>\n```", "<pre tabindex=\"0\"><code>&lt;b&gt;\n</code></pre>");
        check(
            "| a |\n|---|\n| b |",
            "<div class=\"wide\" tabindex=\"0\"><table><thead><tr><th>a</th></tr></thead><tr><td>b</td></tr></table></div>",
        );
        check(
            "```rust\nfn a() {}\n```",
            "<pre tabindex=\"0\"><code><span class=\"k\">fn</span> <span class=\"f\">a</span>() {}\n</code></pre>",
        );
    }

    #[test]
    fn nothing_in_a_text_runs_loads_or_restyles_anything() {
        for text in [
            "<script>alert(1)</script>",
            "a <img src=x onerror=alert(1)> b",
            "<style>*{display:none}</style>",
            "<svg onload=alert(1)>",
            "<iframe src=//evil>",
            "```\"><script>alert(1)</script>\n</code></pre><script>alert(1)</script>\n```",
            "[a](javascript:alert(1))",
            "[a]( JaVaScRiPt:alert(1))",
            "[a](data:text/html,<script>alert(1)</script>)",
            "[a](vbscript:x \"onmouseover=alert(1)\")",
            "![a](https://evil/pixel.png)",
            "[a](https://x/\"onclick=alert(1))",
            "<a href='javascript:alert(1)'>x</a>",
            "[a]: javascript:alert(1)\n\n[a]",
            "<javascript:alert(1)>",
            "&lt;script&gt;alert(1)&lt;/script&gt;",
            "| <script> |\n|---|\n| <img onerror=x> |",
        ] {
            let drawn = draw(text).0;
            let lower = drawn.to_ascii_lowercase();
            for bad in [
                "<script",
                "<img",
                "<style",
                "<svg",
                "<iframe",
                "href=\"javascript",
                "href=\"data",
                "href=\"vb",
            ] {
                assert!(!lower.contains(bad), "{text} is drawn as {drawn}");
            }
            // No quote of a text ends an attribute.
            for piece in drawn.split('<').skip(1) {
                let tag = piece.split('>').next().unwrap_or_default();
                assert!(tag.matches('"').count() % 2 == 0, "{drawn}");
            }
        }
    }
}
