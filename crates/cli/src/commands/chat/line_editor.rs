//! The line editor of the chat.

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anstyle::Style;
use retake_model::id::ThreadId;
use rustyline::config::Configurer;
use rustyline::error::ReadlineError;
use rustyline::history::{History, MemHistory};
use rustyline::{
    Behavior, Cmd, ColorMode, CompletionType, ConditionalEventHandler, Config, Editor, Event, EventContext,
    EventHandler, KeyCode, KeyEvent, Modifiers, Movement, RepeatCount,
};
use signal_hook::consts::SIGINT;
use signal_hook::low_level::emulate_default_handler;

use super::suggestions::Suggestions;
use crate::ui::signals::Foreground;

/// How many lines can be recalled.
const MAX_LINES: usize = retake_store::runtime::MAX_TYPED_LINES as usize;

/// Sent to the terminal when a signal ends the program at the prompt; the editor sends the same when it returns.
const LEAVE_PASTE_MODE: &[u8] = b"\x1b[?2004l\r\n";

pub(super) struct LineEditor {
    editor: Editor<Suggestions, MemHistory>,
    /// Whether Ctrl-C was typed; the same error also means that another process sent the signal.
    interrupt_typed: Arc<AtomicBool>,
}

pub(super) enum Typed {
    Text(String),
    /// Ctrl-C on an empty line.
    Cleared,
    /// Ctrl-D on an empty line.
    End,
}

impl LineEditor {
    pub(super) fn new(folder: &Path, recalled: Vec<String>, colours: bool) -> io::Result<Self> {
        let config = Config::builder()
            // Standard output may be a file: the prompt belongs to the terminal.
            .behavior(Behavior::PreferTerm)
            .color_mode(if colours { ColorMode::Enabled } else { ColorMode::Disabled })
            .completion_type(CompletionType::List)
            .completion_show_all_if_ambiguous(true)
            .max_history_size(MAX_LINES)
            .map_err(failed)?
            .history_ignore_space(true)
            .build();
        let mut history = MemHistory::with_config(&config);
        for line in recalled {
            history.add_owned(line).map_err(failed)?;
        }
        let mut editor = Editor::with_history(config, history).map_err(failed)?;
        let suggestions = Suggestions::new(folder);
        let line_break = Arc::clone(&suggestions.line_break);
        editor.set_helper(Some(suggestions));
        editor.set_tab_stop(4);
        let enter = || EventHandler::Conditional(Box::new(SendOrContinue(Arc::clone(&line_break))));
        editor.bind_sequence(KeyEvent(KeyCode::Enter, Modifiers::NONE), enter());
        // A line that was typed while a turn ran ends with a line feed.
        editor.bind_sequence(KeyEvent::ctrl('J'), enter());
        editor.bind_sequence(KeyEvent(KeyCode::Enter, Modifiers::ALT), EventHandler::Simple(Cmd::Newline));
        let interrupt_typed = Arc::new(AtomicBool::new(false));
        let clear = ClearFirst(Arc::clone(&interrupt_typed));
        editor.bind_sequence(KeyEvent::ctrl('C'), EventHandler::Conditional(Box::new(clear)));
        Ok(Self { editor, interrupt_typed })
    }

    /// Sets the thread whose takes and entries are completed.
    pub(super) fn complete_in(&mut self, thread: Option<ThreadId>) {
        if let Some(helper) = self.editor.helper_mut() {
            helper.thread = thread.map(|thread| thread.to_string());
        }
    }

    /// Makes a line available to Up and Ctrl-R.
    pub(super) fn remember(&mut self, text: &str) {
        // A line that is not remembered was still carried out.
        let _ = self.editor.add_history_entry(text);
    }

    /// Reads one message. A signal that ends the program restores the terminal first.
    pub(super) fn read(&mut self, style: Style) -> io::Result<Typed> {
        let foreground = Foreground::begin()?;
        foreground.on_termination(|| {
            let terminal = std::fs::OpenOptions::new().write(true).open("/dev/tty");
            let _ = terminal.and_then(|mut terminal| terminal.write_all(LEAVE_PASTE_MODE));
        });
        foreground.started(0);
        let read = self.editor.readline(&("› ", format!("{style}›{style:#} ")));
        foreground.end();
        match read {
            Ok(text) => Ok(Typed::Text(text)),
            Err(ReadlineError::Interrupted) if self.interrupt_typed.swap(false, Ordering::Relaxed) => {
                Ok(Typed::Cleared)
            }
            Err(ReadlineError::Interrupted) => {
                emulate_default_handler(SIGINT)?;
                Ok(Typed::End)
            }
            Err(ReadlineError::Eof) => Ok(Typed::End),
            Err(error) => Err(failed(error)),
        }
    }
}

fn failed(error: ReadlineError) -> io::Error {
    match error {
        ReadlineError::Io(error) => error,
        ReadlineError::Errno(error) => error.into(),
        other => io::Error::other(other),
    }
}

/// Enter sends the message; after a backslash, it starts a new line. Only a completion can replace the backslash and
/// leave the cursor behind the new text.
struct SendOrContinue(Arc<AtomicBool>);

impl ConditionalEventHandler for SendOrContinue {
    fn handle(&self, _: &Event, _: RepeatCount, _: bool, context: &EventContext<'_>) -> Option<Cmd> {
        let continues = context.pos() == context.line().len() && context.line().ends_with('\\');
        self.0.store(continues, Ordering::Relaxed);
        Some(if continues { Cmd::Complete } else { Cmd::AcceptLine })
    }
}

/// Ctrl-C clears the line; on an empty one, it says how to leave.
struct ClearFirst(Arc<AtomicBool>);

impl ConditionalEventHandler for ClearFirst {
    fn handle(&self, _: &Event, _: RepeatCount, _: bool, context: &EventContext<'_>) -> Option<Cmd> {
        let is_empty = context.line().is_empty();
        self.0.store(is_empty, Ordering::Relaxed);
        Some(if is_empty { Cmd::Interrupt } else { Cmd::Kill(Movement::WholeBuffer) })
    }
}
