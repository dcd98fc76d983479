//! Renders Markdown safely.
//!
//! ```text
//!   text ─► pulldown-cmark ─► events ─► elements of a short list, every text escaped
//!                                └ raw HTML is escaped; pictures become links; links are limited to https, http
//!                                  and mailto, without a referrer
//! ```

use maud::{Markup, PreEscaped, Render, html};
use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};
use retake_render::code::{TokenKind, highlight};

/// Longer texts are shown as plain text, because parsing them is too slow.
const MAX_BYTES: usize = 256 * 1024;
/// Longer lines of code are not highlighted.
const MAX_LINE_CHARS: usize = 2_000;
/// Longer code blocks are not highlighted.
const MAX_CODE_BYTES: usize = 64 * 1024;

pub(crate) fn draw(text: &str) -> Markup {
    if text.len() > MAX_BYTES {
        return html! { pre class="plain" { (text) } };
    }
    let mut writer = Writer { out: String::with_capacity(text.len() * 2), code: None, head: false };
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    for event in Parser::new_ext(text, options) {
        writer.event(event);
    }
    PreEscaped(writer.out)
}

/// Code with syntax highlighting.
pub(crate) fn code(language: &str, code: &str) -> Markup {
    let coloured = coloured(language, code);
    html! { code { @if let Some(markup) = &coloured { (markup) } @else { (code) } } }
}

struct Writer {
    out: String,
    /// Language and text of the current code block.
    code: Option<(String, String)>,
    /// Whether the current row is a table head.
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
            // Escape raw HTML.
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
            // Below the headings of the page.
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
            // Loading an external picture would leak the reader to its server.
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
                    // Focusable, so that it can be scrolled with the keyboard.
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
        // Unsafe links are shown without a target.
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
    if code.len() > MAX_CODE_BYTES {
        return None;
    }
    let lines = highlight(language, code, MAX_LINE_CHARS)?;
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

/// The CSS class of a token.
fn class_of(word: TokenKind) -> &'static str {
    match word {
        TokenKind::Plain => "",
        TokenKind::Comment => "c",
        TokenKind::Text => "s",
        TokenKind::Value => "n",
        TokenKind::Keyword => "k",
        TokenKind::Name => "f",
        TokenKind::Added => "i",
        TokenKind::Removed => "d",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markdown_becomes_html() {
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
    fn markdown_cannot_inject_scripts_styles_or_resources() {
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
                assert!(!lower.contains(bad), "{text} is rendered as {drawn}");
            }
            // No quote in the text ends an attribute.
            for piece in drawn.split('<').skip(1) {
                let tag = piece.split('>').next().unwrap_or_default();
                assert!(tag.matches('"').count() % 2 == 0, "{drawn}");
            }
        }
    }
}
