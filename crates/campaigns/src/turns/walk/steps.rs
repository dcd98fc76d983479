//! Steps of the walk other than turns: moves, changes, compression, switches and hand edits.

use super::{
    Caller, CampaignError, Cancel, ChangeError, Command, CommandError, CompressError, CompressOptions,
    DriverFault, EntryId, EntryVersion, FileError, Folder, Goal, InsertPosition, Interference,
    InterferingObserver, Interruption, KeepRecent, MoveOptions, MoveOutcome, NewEntry, OnConflict,
    PlannedInterference, QUICK_ANSWER, RetryRequest, SharedChanges, StepReport, TakeId, ThreadState,
    TurnCampaign, TurnError, Wire, fine, wrong,
};

impl TurnCampaign {
    /// A retry that cannot start must leave nothing.
    pub(super) fn retry_in_vain(&mut self, take: TakeId, at: EntryId) -> Result<StepReport, CampaignError> {
        let before = self.world.version()?;
        let mut beginning = self.world.beginning("Again.");
        let mut name = None;
        match self.rng.below(4) {
            0 => beginning.prompt = self.prompt(" \n"),
            1 => beginning.expected = Some(before + 7),
            2 => name = Some(self.world.active()?.name),
            _ => self.world.use_unreachable_provider(),
        }
        let world = &self.world;
        let mut watcher = InterferingObserver {
            world,
            take,
            cancel: Cancel::new(),
            interruption: Interruption::None,
            left: 0,
            ended: Vec::new(),
            undone: false,
            made: None,
            stop_requested: None,
        };
        let again = RetryRequest {
            from: take,
            at,
            name,
            on_conflict: OnConflict::default(),
            shared: SharedChanges::default(),
        };
        let refused = world.runtime.retry(world.thread, again, beginning, &Cancel::new(), &mut watcher);
        self.counts.refused += 1;
        match refused {
            Ok(_) => wrong("a refused retry", "it began"),
            Err(_) if self.world.version()? != before => wrong("a refused retry", "it changed the thread"),
            Err(_) => fine("a refused retry"),
        }
    }

    pub(super) fn go(
        &mut self,
        goal: Goal,
        last: Option<(ThreadState, Folder)>,
    ) -> Result<StepReport, CampaignError> {
        let name = format!("{goal:?}");
        let gone =
            self.world.working_copy.go(self.world.thread, goal, Caller::human(), MoveOptions::default());
        let moved = match gone {
            Ok(MoveOutcome { moved: Some(moved), .. }) => moved,
            Ok(_) | Err(FileError::Change(ChangeError::NothingToUndo | ChangeError::NothingToRedo)) => {
                return fine(&format!("{name} to nowhere"));
            }
            Err(error) => return wrong(&name, error),
        };
        self.counts.moves += 1;
        match self.known.get(&moved.position) {
            Some(takes) => self.takes = *takes,
            None => return wrong(&name, format!("the jump led to {}, which never existed", moved.position)),
        }
        if let (Some((state, files)), Goal::Undo(_, 1)) = (last, goal) {
            let reader = self.world.runtime.timeline.read().map_err(CampaignError::trouble)?;
            if reader.state(self.world.thread).map_err(CampaignError::trouble)? != state {
                return wrong(&name, "the conversation is not as it was before the turn");
            }
            let there = Folder::read(&self.world.project).map_err(CampaignError::trouble)?;
            if let Some(found) = there.differences(&files).first() {
                return wrong(&name, format!("the undo did not revert the files of the turn: {found:?}"));
            }
        }
        fine(&name)
    }

    pub(super) fn change(&mut self, command: Command) -> Result<StepReport, CampaignError> {
        let name = format!("{command:?}").chars().take(40).collect::<String>();
        match self.world.runtime.timeline.change(self.world.thread, command, Caller::human()) {
            Ok(_) => fine(&name),
            Err(error) => wrong(&name, error),
        }
    }

    pub(super) fn compress(&mut self) -> Result<StepReport, CampaignError> {
        let wire = Wire::ALL[self.rng.index(4)];
        self.world.use_wire(wire, QUICK_ANSWER)?;
        self.world.assistant.begin(wire, self.rng.split(), false);
        let take = self.world.active()?.id;
        if self.rng.once_in(2) {
            let draft = Interference::Draft(format!("a draft of step {}", self.counts.steps));
            PlannedInterference::new(draft).plan(&self.world, take, None);
        }
        let keep = KeepRecent::Entries(self.rng.below(20));
        match self.world.runtime.compress(
            self.world.thread,
            take,
            keep,
            CompressOptions::default(),
            &Cancel::new(),
        ) {
            Ok(_)
            | Err(
                CompressError::Model(_)
                | CompressError::Turn(TurnError::Change(ChangeError::Refused(
                    CommandError::NothingToCompress | CommandError::EmptySummary,
                ))),
            ) => fine("a compression"),
            Err(error) => wrong("a compression", error),
        }
    }

    pub(super) fn switch(&mut self) -> Result<StepReport, CampaignError> {
        let takes = self.world.takes()?;
        let Some(take) = self.rng.pick(&takes).map(|take| take.id) else { return fine("no switch") };
        match self.world.working_copy.change(
            self.world.thread,
            Command::Switch { take },
            Caller::human(),
            MoveOptions::default(),
        ) {
            Ok(_) => fine("a switch"),
            Err(error) => wrong("a switch", error),
        }
    }

    pub(super) fn delete_take(&mut self) -> Result<StepReport, CampaignError> {
        let takes = self.world.takes()?;
        let Some(take) = self.rng.pick(&takes).map(|take| take.id) else { return fine("no deletion") };
        let delete = Command::DeleteTake { take };
        match self.world.working_copy.change(
            self.world.thread,
            delete,
            Caller::human(),
            MoveOptions::default(),
        ) {
            Ok(_) => {
                self.takes -= 1;
                fine("a deletion of a take")
            }
            Err(error) => wrong("a deletion of a take", error),
        }
    }

    /// The user changes a file of their own.
    pub(super) fn by_hand(&mut self) -> Result<StepReport, CampaignError> {
        let path = self.world.project.join(format!("hand-{}.txt", self.rng.below(3)));
        std::fs::write(path, format!("by hand {}\n", self.counts.steps)).map_err(CampaignError::trouble)?;
        self.world
            .working_copy
            .record_changes(self.world.thread, Caller::human())
            .map_err(CampaignError::trouble)?;
        fine("work by hand")
    }

    /// Injects the fault once, if it applies here.
    pub(super) fn make(&mut self, mistake: DriverFault) -> Result<bool, CampaignError> {
        let (thread, take) = (self.world.thread, self.world.active()?);
        let timeline = &self.world.runtime.timeline;
        match mistake {
            DriverFault::ResultWithoutFiles => {
                std::fs::write(self.world.project.join("a.txt"), "written\n")
                    .map_err(CampaignError::trouble)?;
                let version = EntryVersion::from_text("Tool", "Wrote a.txt.", timeline.now());
                let entries = vec![NewEntry::from(version)];
                let add = Command::AddEntries { take: take.id, at: InsertPosition::End, entries };
                timeline.change(thread, add, Caller::human()).map_err(CampaignError::trouble)?;
            }
            DriverFault::OrphanFork => {
                let branch = Command::Branch { from: take.id, at: None, name: None };
                self.world
                    .working_copy
                    .change(thread, branch, Caller::human(), MoveOptions::default())
                    .map_err(CampaignError::trouble)?;
            }
            // The scripted model injects it in every request.
            DriverFault::CallWithoutResult => return Ok(false),
            // The observer injects it.
            DriverFault::StopWithoutEffect | DriverFault::SummaryNotStopped | DriverFault::ChangeLost => {
                return Ok(false);
            }
        }
        self.plan.mistake = None;
        Ok(true)
    }
}
