//! `retake --continue` and `retake --resume`: a chat on an earlier thread.

use std::io::{self, BufRead, IsTerminal, Write};
use std::process::ExitCode;

use retake_store::ThreadRow;
use retake_timeline::ThreadFilter;

use super::{chat, thread};
use crate::context::Context;
use crate::failure::{Code, Failure};
use crate::ui::bytes::counted;
use crate::ui::label::Label;
use crate::ui::style::stderr;
use crate::ui::table::{Column, Table};

/// How many threads are listed at once.
const SHOWN: usize = 15;

/// Chats on the current thread.
pub(crate) fn continue_current(context: &Context) -> Result<ExitCode, Failure> {
    let reader = context.timeline()?.read()?;
    context.thread(&reader, None).map_err(|failure| match failure.code {
        Code::NotFound => {
            Failure::new(Code::NotFound, "there is no thread to continue; `retake chat` starts one")
        }
        _ => failure,
    })?;
    drop(reader);
    chat::Arguments::default().run(context)
}

/// Chats on the named thread, or on one that the user picks. Without a terminal, lists the threads.
pub(crate) fn resume(context: &Context, named: Option<String>) -> Result<ExitCode, Failure> {
    let chosen = match named {
        Some(named) => named,
        None if context.general.json || !io::stdin().is_terminal() || !io::stderr().is_terminal() => {
            thread::list::Arguments::default().run(context)?;
            return Ok(ExitCode::SUCCESS);
        }
        None => match pick(context)? {
            Some(chosen) => chosen,
            None => return Ok(ExitCode::SUCCESS),
        },
    };
    thread::switch::Arguments { thread: chosen }.run(context)?;
    // The switch changed the current thread, which the context has already read.
    chat::Arguments::default().run(&Context::new(context.general.clone())?)
}

/// Asks for a thread by number or by a part of its title; `None` if the user gives up.
fn pick(context: &Context) -> Result<Option<String>, Failure> {
    let filter = ThreadFilter { project: Some(context.project()?.id), ..ThreadFilter::default() };
    let mut rows = context.timeline()?.read()?.threads(&filter)?;
    rows.sort_by_key(|row| std::cmp::Reverse(row.summary.updated));
    if rows.is_empty() {
        return Err(Failure::new(Code::NotFound, "there is no thread to resume; `retake chat` starts one"));
    }
    let mut listed: Vec<&ThreadRow> = rows.iter().collect();
    loop {
        let mut out = stderr(context.general.color);
        write!(out, "{}", draw(context, &listed))?;
        if listed.len() > SHOWN {
            context.note(&format!("{} more; type a part of the title.", listed.len() - SHOWN))?;
        }
        write!(out, "Number, or part of a title [1]: ")?;
        out.flush()?;
        let mut line = String::new();
        if io::stdin().lock().read_line(&mut line)? == 0 {
            writeln!(out)?;
            return Ok(None);
        }
        let found = choose(&listed, &rows, line.trim());
        match found.as_slice() {
            [] => context.note("No thread has that in its title.")?,
            [one] => return Ok(Some(one.summary.id.to_string())),
            _ => listed = found,
        }
    }
}

/// The threads that an answer means: one by its number in the list, or all whose title or start has the text.
fn choose<'rows>(
    listed: &[&'rows ThreadRow],
    rows: &'rows [ThreadRow],
    typed: &str,
) -> Vec<&'rows ThreadRow> {
    let shown = &listed[..listed.len().min(SHOWN)];
    let number = if typed.is_empty() { Ok(1) } else { typed.parse::<usize>() };
    if let Some(row) = number.ok().and_then(|number| shown.get(number.checked_sub(1)?)) {
        return vec![row];
    }
    let typed = typed.to_lowercase();
    let has = |text: &str| text.to_lowercase().contains(&typed);
    rows.iter().filter(|row| has(&row.summary.title) || has(&row.summary.active.preview)).collect()
}

fn draw(context: &Context, rows: &[&ThreadRow]) -> String {
    let styles = &context.styles;
    let mut table = Table::new([
        Column::right("#"),
        Column::left("THREAD").flexible(),
        Column::left("TAKE").dispensable(),
        Column::right("ENTRIES").dispensable(),
        Column::right("CHANGED"),
    ]);
    for (number, row) in (1..).zip(rows.iter().take(SHOWN)) {
        let thread = &row.summary;
        let mut title = Label::new().with(styles.title, &thread.title);
        if !thread.active.preview.is_empty() && thread.active.preview != thread.title {
            title = title.with(styles.muted, &format!("  {}", thread.active.preview));
        }
        let entries = counted(thread.active.entries, "", "");
        table.row([
            Label::new().with(styles.count, &format!("{number}")),
            title,
            Label::new().plain(&thread.active.name),
            Label::new().with(styles.count, entries.trim_end()),
            Label::new().with(styles.muted, &context.ago(thread.updated)),
        ]);
    }
    table.render(context.screen.columns(), styles.heading)
}
