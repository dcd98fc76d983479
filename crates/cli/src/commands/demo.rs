//! `retake demo`: a one-minute tour.
//!
//! Every command really runs, through this program, in a temporary project and store. If one fails, the tour fails.

mod tour;

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use clap::Args;
use serde::Serialize;

use crate::context::Context;
use crate::failure::{Code, Failure};
use crate::ui::sanitize::{LineBreaks, sanitize};
use crate::ui::style::ColorWhen;
use crate::ui::width::wrap;
use tour::{FILES, Input, NEXT, Scene, TOUR};

/// Take a one-minute tour in a temporary project.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake demo
  retake demo --fast          without pauses
  retake demo --keep          keep the project to experiment with")]
pub(crate) struct Arguments {
    /// Do not pause between commands.
    #[arg(long)]
    fast: bool,
    /// Keep the project and its store.
    #[arg(long)]
    keep: bool,
}

#[derive(Serialize)]
struct Answer {
    commands: Vec<CommandRun>,
    /// The folder of the tour, with `--keep`.
    folder: Option<String>,
}

#[derive(Serialize)]
struct CommandRun {
    command: String,
    purpose: &'static str,
    output: String,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let stage = DemoProject::set()?;
        let pace = if self.fast || context.general.json || !io::stdout().is_terminal() {
            Pace::Fast
        } else {
            Pace::Reading
        };
        let mut answer = Answer { commands: Vec::new(), folder: None };
        if !context.general.json {
            print_paragraph(context, tour::WELCOME)?;
        }
        for scene in TOUR {
            if !context.general.json {
                print_step(context, scene, pace)?;
            }
            let output = stage.run(context, scene)?;
            answer.commands.push(CommandRun { command: typed(scene), purpose: scene.why, output });
            pace.pause(scene.shown);
        }
        if self.keep {
            answer.folder = Some(stage.keep().to_string_lossy().into_owned());
        }
        context.answer(&answer, |out, styles| {
            let (heading, muted) = (styles.heading, styles.muted);
            writeln!(out, "\n{heading}Next steps{heading:#}\n")?;
            for (command, why) in NEXT {
                writeln!(out, "  {:<36} {muted}{why}{muted:#}", format!("retake {command}"))?;
            }
            if let Some(folder) = &answer.folder {
                let folder = sanitize(folder, LineBreaks::Fold);
                writeln!(out, "\nThe project and store of the tour are in {folder}. To continue there:\n")?;
                writeln!(out, "  cd {folder}/project && export RETAKE_HOME={folder}/store")?;
            }
            Ok(())
        })
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Pace {
    Reading,
    Fast,
}

impl Pace {
    fn pause(self, length: Duration) {
        if self == Self::Reading {
            std::thread::sleep(length);
        }
    }
}

/// The temporary folders of the tour.
struct DemoProject {
    folder: tempfile::TempDir,
    program: PathBuf,
}

impl DemoProject {
    fn set() -> Result<Self, Failure> {
        let folder = tempfile::Builder::new().prefix("retake-demo-").tempdir()?;
        let stage = Self { folder, program: std::env::current_exe()? };
        // Makes the folder its own work tree, in case the temporary folder is inside another one.
        for (name, text) in FILES {
            std::fs::create_dir_all(stage.project())?;
            std::fs::write(stage.project().join(name), text)?;
        }
        for below in ["objects", "refs"] {
            std::fs::create_dir_all(stage.project().join(".git").join(below))?;
        }
        std::fs::write(stage.project().join(".git/HEAD"), "ref: refs/heads/main\n")?;
        Ok(stage)
    }

    fn project(&self) -> PathBuf {
        self.folder.path().join("project")
    }

    /// Runs a command of the tour. Its output goes to standard output, unless `--json` is set.
    fn run(&self, context: &Context, scene: &Scene) -> Result<String, Failure> {
        let mut command = match scene.typed {
            Input::Retake(arguments) => {
                let mut command = Command::new(&self.program);
                command.args(arguments);
                command
            }
            Input::Shell(line) => {
                let mut command = Command::new("sh");
                command.args(["-c", line]);
                command
            }
        };
        command
            .current_dir(self.project())
            .env("RETAKE_HOME", self.folder.path().join("store"))
            .env("RETAKE_CONFIG", self.folder.path().join("config.toml"))
            .env("RETAKE_PAGER", "")
            .stdin(Stdio::null());
        match context.general.color {
            ColorWhen::Auto => {}
            ColorWhen::Always => drop(command.env("CLICOLOR_FORCE", "1")),
            ColorWhen::Never => drop(command.env("NO_COLOR", "1")),
        }
        if context.general.json {
            command.stdout(Stdio::piped());
        }
        let ended = command.spawn()?.wait_with_output()?;
        if !ended.status.success() {
            let message = format!("the tour stopped: `{}` failed: {}", typed(scene), ended.status);
            return Err(Failure::new(Code::Failed, message));
        }
        Ok(String::from_utf8_lossy(&ended.stdout).into_owned())
    }

    fn keep(self) -> PathBuf {
        self.folder.keep()
    }
}

/// Prints the explanation and the command line.
fn print_step(context: &Context, scene: &Scene, pace: Pace) -> Result<(), Failure> {
    if !scene.why.is_empty() {
        print_paragraph(context, &format!("\n{}", scene.why))?;
        // Reading speed: about five words a second.
        pace.pause(Duration::from_millis(200 * scene.why.split(' ').count() as u64));
    }
    let style = context.styles.command;
    let mut out = anstream::AutoStream::new(io::stdout(), context.colours());
    writeln!(out, "{style}$ {}{style:#}", typed(scene))?;
    Ok(out.flush()?)
}

fn print_paragraph(context: &Context, text: &str) -> Result<(), Failure> {
    let style = context.styles.muted;
    let mut out = anstream::AutoStream::new(io::stdout(), context.colours());
    for line in wrap(text, context.screen.text_columns()) {
        writeln!(out, "{style}{line}{style:#}")?;
    }
    Ok(out.flush()?)
}

/// The command as a user would type it.
fn typed(scene: &Scene) -> String {
    let arguments = match scene.typed {
        Input::Retake(arguments) => arguments,
        Input::Shell(line) => return line.to_owned(),
    };
    let words = arguments.iter().map(|argument| {
        let plain = |character: char| character.is_alphanumeric() || "-_./".contains(character);
        match argument {
            argument if argument.chars().all(plain) => (*argument).to_owned(),
            argument if argument.contains('"') => format!("'{argument}'"),
            argument => format!("\"{argument}\""),
        }
    });
    std::iter::once("retake".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}
