//! Tests of the commands with the real program, in temporary folders.

mod agent_commands;
mod answers;
mod bounded;
mod branch_git;
mod chat;
mod command_line;
mod compare;
mod completions;
mod context_size;
mod drafts;
mod empty;
mod exec;
mod file_commands;
mod files_edges;
mod files_moving;
mod files_recovery;
mod files_roots;
mod going_back;
mod help_examples;
mod history_commands;
mod history_screens;
mod named_takes;
mod other_folder;
mod promises_of_options;
mod python_client;
mod read_mode;
mod readme;
mod serve;
mod shared_settings;
mod shortcuts;
mod signals;
mod sync;
mod terminal;
mod terminals;
mod tools;
mod turns;
mod typescript_client;

mod support {
    //! The real program in a sandbox; the studio's tests use the same.

    pub(crate) use retake_testing::{Output, Sandbox, free_port};
}
