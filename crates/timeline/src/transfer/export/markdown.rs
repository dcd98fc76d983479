//! Exports one take as Markdown.
//!
//! Text already is Markdown and is copied verbatim. Everything else goes into fences that are longer than any fence in
//! it, so that no tool output can end them.

use std::io::{self, Write};

use retake_model::entry::Block;
use retake_model::take::Take;
use retake_store::ThreadRow;

use super::{ExportError, ExportFormatter, ExportItem, Exporter, PAGE};
use crate::EntryView;

impl Exporter<'_> {
    /// Writes a take as Markdown. Returns the number of entries.
    pub fn markdown(
        &self,
        thread: &ThreadRow,
        take: &Take,
        front: &dyn ExportFormatter,
        out: &mut dyn Write,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<u64, ExportError> {
        let total = take.entries.len();
        writeln!(out, "# {}\n", one_line(&thread.summary.title))?;
        let entries = if total == 1 { "entry" } else { "entries" };
        let (name, count, id) = (one_line(&take.name), front.count(total), thread.summary.id);
        writeln!(out, "Take {name}, {count} {entries}, thread {id}.")?;
        let mut done = 0;
        while done < total {
            for view in self.reader.entries(thread.summary.id, take).page(done..(done + PAGE).min(total))? {
                write_entry(out, front, &view)?;
            }
            done += PAGE.min(total - done);
            progress(done, total);
        }
        out.flush()?;
        Ok(total)
    }
}

fn write_entry(out: &mut dyn Write, front: &dyn ExportFormatter, view: &EntryView) -> io::Result<()> {
    let entry = &view.entry;
    writeln!(out, "\n## {}. {}\n", view.number, one_line(&entry.role))?;
    write!(out, "*{}", front.time(entry.created))?;
    if entry.edited.is_some() {
        write!(out, ", edited")?;
    }
    if let Some(model) = &entry.model {
        write!(out, ", {}", one_line(model))?;
    }
    writeln!(out, "*")?;
    for block in &entry.blocks {
        match block {
            Block::Text { text, .. } => writeln!(out, "\n{}", text.trim_end())?,
            Block::Thinking { text, .. } => {
                writeln!(out)?;
                for line in text.trim_end().lines() {
                    writeln!(out, "> {line}")?;
                }
            }
            Block::ToolCall { name, input, .. } => {
                writeln!(out, "\nCalls **{}**:", one_line(name))?;
                write_fenced(out, "json", input.as_str())?;
            }
            Block::ToolResult { text, failed, .. } => {
                writeln!(out, "\n{}", if *failed { "Failed:" } else { "Result:" })?;
                write_fenced(out, "", text)?;
            }
            Block::Image { media, .. } => writeln!(out, "\n[{}]", one_line(media))?,
            Block::Unknown { .. } => {
                let mut text = Vec::new();
                front.json(&mut text, &ExportItem::Block(block))?;
                write_fenced(out, "json", &String::from_utf8_lossy(&text))?;
            }
        }
    }
    Ok(())
}

fn write_fenced(out: &mut dyn Write, language: &str, text: &str) -> io::Result<()> {
    let longest = text.split(|character| character != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat((longest + 1).max(3));
    writeln!(out, "\n{fence}{language}\n{}\n{fence}", text.trim_end())
}

/// Replaces line breaks for headings.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_closes_its_code_fence() {
        let mut out = Vec::new();
        write_fenced(&mut out, "json", "a\n````\nb ` c\n").expect("memory is enough");
        assert_eq!(String::from_utf8(out).expect("text"), "\n`````json\na\n````\nb ` c\n`````\n");
    }
}
