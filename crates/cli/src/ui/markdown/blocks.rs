//! Converts parser events to lines.
//!
//! ```text
//!   quote ─┐                       │ every line begins with what it stands in;
//!     list ─┐                      │ an item's first line with its number or bullet,
//!       item ── words ──► lines    │ its others with blanks
//! ```

use anstyle::{Effects, Style};
use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use super::flow::{StyledText, chop, wrap};
use super::grid::MarkdownTable;
use super::{MAX_HIGHLIGHTED_BYTES, MAX_NESTING, MarkerStyle, RenderOptions, code};
use crate::ui::label::Label;
use crate::ui::width::width;

/// Renders the text; `None` if it is nested too deeply.
pub(super) fn lines(text: &str, look: RenderOptions<'_>) -> Option<Vec<Label>> {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut page = BlockRenderer::new(look);
    for event in Parser::new_ext(text, options) {
        page.take(event);
        if page.inside.len() > MAX_NESTING || page.effects.len() > MAX_NESTING {
            return None;
        }
    }
    page.end_words();
    Some(page.lines)
}

/// A quote or a list item that contains lines.
struct Container {
    /// The prefix of the first line, until it is written.
    first: Option<Label>,
    rest: Label,
}

struct List {
    next: Option<u64>,
    /// Whether the list has blank lines between its items.
    loose: bool,
}

struct BlockRenderer<'styles> {
    look: RenderOptions<'styles>,
    lines: Vec<Label>,
    inside: Vec<Container>,
    lists: Vec<List>,
    /// Text collected for the current paragraph.
    words: Vec<StyledText>,
    /// Open styles, each including those around it.
    effects: Vec<Style>,
    links: Vec<Link>,
    heading: Option<HeadingLevel>,
    code: Option<Code>,
    grid: Option<MarkdownTable>,
    /// Remaining bytes of code to highlight.
    colours: usize,
    /// Whether a blank line precedes the next block.
    gap: bool,
}

struct Link {
    target: String,
    /// Index of its first piece of text.
    from: usize,
}

struct Code {
    language: String,
    text: String,
}

impl<'styles> BlockRenderer<'styles> {
    fn new(look: RenderOptions<'styles>) -> Self {
        Self {
            look,
            lines: Vec::new(),
            inside: Vec::new(),
            lists: Vec::new(),
            words: Vec::new(),
            effects: Vec::new(),
            links: Vec::new(),
            heading: None,
            code: None,
            grid: None,
            colours: MAX_HIGHLIGHTED_BYTES,
            gap: false,
        }
    }

    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => match &mut self.code {
                Some(code) => code.text.push_str(&text),
                None => self.say(self.style(), &text),
            },
            Event::Code(text) => {
                let style = self.style() | self.look.styles.code.get_effects();
                let style = style.fg_color(self.look.styles.code.get_fg_color());
                self.mark("`");
                self.say(style, &text);
                self.mark("`");
            }
            Event::InlineHtml(text) | Event::Html(text) => self.say(self.look.styles.muted, &text),
            Event::InlineMath(text) | Event::DisplayMath(text) | Event::FootnoteReference(text) => {
                self.say(self.style(), &text);
            }
            // In a conversation, a single line break is intentional.
            Event::SoftBreak | Event::HardBreak => self.say(Style::new(), "\n"),
            Event::Rule => {
                self.begin_block();
                let rule = "─".repeat(self.columns().min(40));
                self.line(Label::new().with(self.look.styles.muted, &rule));
                self.gap = true;
            }
            Event::TaskListMarker(done) => self.say(Style::new(), if done { "☑ " } else { "☐ " }),
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph => {
                // An item that contains paragraphs makes the list loose.
                if self.at_item_start()
                    && let Some(list) = self.lists.last_mut()
                {
                    list.loose = true;
                }
                self.begin_block();
            }
            Tag::Heading { level, .. } => {
                self.begin_block();
                self.heading = Some(level);
                let styled = if level == HeadingLevel::H1 {
                    Style::new() | Effects::BOLD | Effects::UNDERLINE
                } else {
                    Style::new() | Effects::BOLD
                };
                self.effects.push(styled);
                self.mark(&format!("{} ", "#".repeat(level as usize)));
            }
            Tag::BlockQuote(_) => {
                self.begin_block();
                let bar = Label::new().with(self.look.styles.muted, "│ ");
                self.inside.push(Container { first: None, rest: bar });
            }
            Tag::CodeBlock(kind) => {
                self.begin_block();
                let language = match &kind {
                    CodeBlockKind::Fenced(info) => {
                        info.split([' ', ',', '{']).next().unwrap_or_default().to_lowercase()
                    }
                    CodeBlockKind::Indented => String::new(),
                };
                self.code = Some(Code { language, text: String::new() });
            }
            Tag::List(next) => {
                self.end_words();
                if self.lists.is_empty() || self.lists.last().is_some_and(|list| list.loose) {
                    self.begin_block();
                }
                self.gap = false;
                self.lists.push(List { next, loose: false });
            }
            Tag::Item => self.start_item(),
            Tag::Table(alignments) => {
                self.begin_block();
                self.grid = Some(MarkdownTable::new(&alignments));
            }
            Tag::TableHead | Tag::TableRow => {
                if let Some(grid) = &mut self.grid {
                    grid.start_row();
                }
            }
            Tag::Emphasis => self.open(Effects::ITALIC, "*"),
            Tag::Strong => self.open(Effects::BOLD, "**"),
            Tag::Strikethrough => self.open(Effects::STRIKETHROUGH, "~~"),
            Tag::Link { dest_url, .. } => {
                let from = self.words.len();
                self.links.push(Link { target: dest_url.into_string(), from });
                self.effects.push(self.style() | Effects::UNDERLINE);
            }
            Tag::Image { dest_url, .. } => {
                self.say(self.look.styles.muted, "[image: ");
                let from = self.words.len();
                self.links.push(Link { target: dest_url.into_string(), from });
            }
            Tag::HtmlBlock => self.begin_block(),
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => {
                self.end_words();
                self.gap = true;
            }
            TagEnd::Heading(_) => {
                self.effects.pop();
                self.end_words();
                self.heading = None;
                self.gap = true;
            }
            TagEnd::BlockQuote(_) => {
                self.end_words();
                self.inside.pop();
                self.gap = true;
            }
            TagEnd::CodeBlock => {
                if let Some(code) = self.code.take() {
                    self.show_code(&code);
                }
                self.gap = true;
            }
            TagEnd::List(_) => {
                self.lists.pop();
                self.gap = true;
            }
            TagEnd::Item => self.end_item(),
            TagEnd::Table => {
                if let Some(grid) = self.grid.take() {
                    for line in grid.lines(self.columns(), self.look) {
                        self.line(line);
                    }
                }
                self.gap = true;
            }
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.words);
                if let Some(grid) = &mut self.grid {
                    grid.add_cell(cell);
                }
            }
            TagEnd::Emphasis => self.close("*"),
            TagEnd::Strong => self.close("**"),
            TagEnd::Strikethrough => self.close("~~"),
            TagEnd::Link => {
                self.effects.pop();
                self.end_link(" <", ">");
            }
            TagEnd::Image => {
                self.end_link("] <", ">");
            }
            _ => {}
        }
    }

    fn start_item(&mut self) {
        self.end_words();
        let nested = self.lists.len().saturating_sub(1);
        let Some(list) = self.lists.last_mut() else { return };
        self.gap &= list.loose;
        let bullet = match &mut list.next {
            Some(number) => {
                let text = format!("{number}. ");
                *number = number.saturating_add(1);
                text
            }
            None => ["• ", "◦ ", "‣ "][nested % 3].to_owned(),
        };
        if self.gap {
            self.blank();
        }
        self.gap = false;
        let rest = Label::from(" ".repeat(width(&bullet)).as_str());
        let first = Some(Label::new().with(self.look.styles.muted, &bullet));
        self.inside.push(Container { first, rest });
    }

    fn end_item(&mut self) {
        self.end_words();
        // An empty item still shows its bullet.
        if self.inside.last().is_some_and(|inside| inside.first.is_some()) {
            self.line(Label::new());
        }
        self.inside.pop();
        self.gap = true;
    }

    fn at_item_start(&self) -> bool {
        self.inside.last().is_some_and(|inside| inside.first.is_some())
    }

    /// Ends the current paragraph before a block.
    fn begin_block(&mut self) {
        self.end_words();
        if self.gap && !self.at_item_start() {
            self.blank();
        }
        self.gap = false;
    }

    fn end_words(&mut self) {
        let words = std::mem::take(&mut self.words);
        // An HTML block ends with a line break that starts no line.
        let blank = words.iter().all(|(_, text)| text.trim().is_empty());
        if blank {
            return;
        }
        for line in wrap(&without_last_break(words), self.columns()) {
            self.line(line);
        }
    }

    fn show_code(&mut self, code: &Code) {
        let styles = self.look.styles;
        let within = code.text.len() <= self.colours;
        let coloured = if within && self.look.marks == MarkerStyle::Styled && !code.language.is_empty() {
            self.colours -= code.text.len();
            code::colour(&code.language, &code.text, styles)
        } else {
            None
        };
        let plain = || code.text.lines().map(|line| vec![(Style::new(), line.to_owned())]).collect();
        let lines: Vec<Vec<StyledText>> = coloured.unwrap_or_else(plain);
        self.inside.push(Container { first: None, rest: Label::from("    ") });
        for pieces in lines {
            for line in chop(&pieces, self.columns()) {
                self.line(line);
            }
        }
        self.inside.pop();
    }

    fn end_link(&mut self, before: &str, after: &str) {
        let Some(Link { target, from }) = self.links.pop() else { return };
        let content: String =
            self.words.get(from..).unwrap_or_default().iter().map(|(_, text)| text.as_str()).collect();
        let (muted, link) = (self.look.styles.muted, self.look.styles.link);
        // A link whose text is its target does not repeat it.
        let same = content == target || target.strip_prefix("mailto:") == Some(content.as_str());
        if same && before == " <" {
            return;
        }
        self.say(muted, before);
        self.say(link, &target);
        self.say(muted, after);
    }

    fn open(&mut self, effect: Effects, mark: &str) {
        self.mark(mark);
        self.effects.push(self.style() | effect);
    }

    fn close(&mut self, mark: &str) {
        self.effects.pop();
        self.mark(mark);
    }

    /// Writes a Markdown marker if styles are not shown.
    fn mark(&mut self, mark: &str) {
        if self.look.marks == MarkerStyle::Written {
            self.say(Style::new(), mark);
        }
    }

    fn say(&mut self, style: Style, text: &str) {
        self.words.push((style, text.to_owned()));
    }

    fn style(&self) -> Style {
        self.effects.last().copied().unwrap_or_default()
    }

    /// The width available inside the current containers.
    fn columns(&self) -> usize {
        const MIN_COLUMNS: usize = 10;
        let taken: usize = self.inside.iter().map(|inside| inside.rest.width()).sum();
        self.look.columns.saturating_sub(taken).max(MIN_COLUMNS)
    }

    fn line(&mut self, label: Label) {
        let mut line = Label::new();
        for inside in &mut self.inside {
            line = line.join(inside.first.take().unwrap_or_else(|| inside.rest.clone()));
        }
        self.lines.push(line.join(label));
    }

    /// A blank line, with the bars of the enclosing quotes.
    fn blank(&mut self) {
        if self.lines.is_empty() {
            return;
        }
        let mut line = Label::new();
        for inside in &self.inside {
            line = line.join(inside.rest.clone());
        }
        let line = if line.text().trim().is_empty() { Label::new() } else { line };
        self.lines.push(line);
    }
}

fn without_last_break(mut words: Vec<StyledText>) -> Vec<StyledText> {
    if let Some((_, text)) = words.last_mut() {
        text.truncate(text.trim_end_matches('\n').len());
    }
    words
}
