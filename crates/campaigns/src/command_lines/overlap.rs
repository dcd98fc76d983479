//! Two programs in one folder at once, while the user creates a file there.

use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, Instant};

use super::world::{CommandLine, Output, StepError, World};
use crate::violation::BoxError;

const START_TIMEOUT: Duration = Duration::from_mins(1);

impl World {
    pub(super) fn overlap(&mut self) -> Result<(), StepError> {
        let project = self.some_project().to_owned();
        let titles: Vec<String> = self
            .threads
            .iter()
            .filter(|thread| thread.project == project)
            .map(|thread| thread.title.clone())
            .collect();
        let number = self.number();
        let go = self.signals().join(format!("go-{number}"));
        let mut running = Vec::new();
        for which in 0..2 {
            let title = titles[self.rng.index(titles.len())].clone();
            let up = self.signals().join(format!("up-{number}-{which}"));
            // The program ends by itself if no signal comes.
            let script = format!(
                "echo {number} > own-{number}-{which}; : > \"$W/signals/up-{number}-{which}\"; i=0; \
                 while [ ! -e \"$W/signals/go-{number}\" ] && [ $i -lt 3000 ]; do sleep 0.02; i=$((i+1)); done; \
                 echo {number} > late-{number}-{which}"
            );
            let line = CommandLine::new(&project, &["exec", "-t", &title, "--", "sh", "-c", &script]);
            let mut child = self.start(&line)?;
            self.script
                .push(format!("while [ ! -e \"$W/signals/up-{number}-{which}\" ]; do sleep 0.02; done"));
            wait_for(&up, &mut child)?;
            running.push((title, child));
        }
        let mine = format!("mine-{number}");
        let by_hand = format!("echo {number} > {mine}; : > \"$W/signals/go-{number}\"");
        self.by_hand(&project, &by_hand)?;
        if !go.exists() {
            return Err(StepError::Trouble("the signal was not given".into()));
        }
        self.script.push("wait".to_owned());
        let mut threads = Vec::new();
        for (title, child) in running {
            let output = Output::of(&child.wait_with_output()?);
            if output.code != Some(0) {
                return Err(StepError::Broken(format!(
                    "one of two programs at once failed: {}",
                    output.errors
                )));
            }
            threads.push(title);
        }
        self.observed = self.observe()?;
        self.made_during_overlap.insert((project.clone(), PathBuf::from(mine)));
        self.summary.overlaps += 1;
        for title in threads {
            let line = CommandLine::new(&project, &["undo", "-t", &title]).changing(&project);
            self.undo(&line, &project)?;
        }
        Ok(())
    }
}

fn wait_for(signal: &Path, child: &mut Child) -> Result<(), BoxError> {
    let started = Instant::now();
    while !signal.exists() {
        if let Some(status) = child.try_wait()? {
            return Err(format!("a program under `exec` ended early: {status}").into());
        }
        if started.elapsed() > START_TIMEOUT {
            return Err("a program under `exec` did not start".into());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}
