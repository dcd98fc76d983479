//! One take as Markdown, for people.
//!
//! Text is Markdown already and stays as it is. What is not text stands in fences that are longer than any
//! that it holds, so that nothing in a tool's output can end them.

use std::io::{self, Write};

use retake_model::entry::Block;
use retake_timeline::{EntryView, Looking};

use super::Counts;
use super::transcript::PAGE;
use crate::context::{Context, Meant};
use crate::failure::Failure;
use crate::ui::bytes::counted;
use crate::ui::time::exact;

pub(super) fn write(
    out: &mut dyn Write,
    context: &Context,
    looking: &Looking<'_>,
    meant: &Meant,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Counts, Failure> {
    let total = meant.take.entries.len();
    writeln!(out, "# {}\n", one_line(&meant.state.title))?;
    let entries = counted(total, "entry", "entries");
    writeln!(out, "Take {}, {entries}, thread {}.", one_line(&meant.take.name), meant.thread.summary.id)?;
    let mut done = 0;
    while done < total {
        for view in looking.page(meant.thread.summary.id, &meant.take, done..(done + PAGE).min(total))? {
            write_entry(out, context, &view)?;
        }
        done += PAGE.min(total - done);
        progress(done, total);
    }
    Ok(Counts { entries: Some(total), ..Counts::default() })
}

fn write_entry(out: &mut dyn Write, context: &Context, view: &EntryView) -> io::Result<()> {
    let entry = &view.entry;
    writeln!(out, "\n## {}. {}\n", view.number, one_line(&entry.role))?;
    write!(out, "*{}", exact(entry.created, &context.zone))?;
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
            Block::Unknown { .. } => write_fenced(out, "json", &crate::ui::json::to_text(block))?,
        }
    }
    Ok(())
}

fn write_fenced(out: &mut dyn Write, language: &str, text: &str) -> io::Result<()> {
    let longest = text.split(|character| character != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat((longest + 1).max(3));
    writeln!(out, "\n{fence}{language}\n{}\n{fence}", text.trim_end())
}

/// For headings, which end with their line.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_ends_its_fence() {
        let mut out = Vec::new();
        write_fenced(&mut out, "json", "a\n````\nb ` c\n").expect("memory is enough");
        assert_eq!(String::from_utf8(out).expect("text"), "\n`````json\na\n````\nb ` c\n`````\n");
    }
}
