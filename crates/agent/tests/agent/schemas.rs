//! Serialized values match their schemas exactly.

mod validator;

use retake_agent::approval::{ApprovalMode, ApprovalQuestion, Decision, Fingerprint};
use retake_agent::compare::{Comparison, compare};
use retake_agent::{Cancel, CompressOutcome, Reply, TurnEvent, TurnOutcome};
use retake_model::agent::{
    Agent, AgentState, AgentStateKind, FaultOrigin, ToolOutcome, ToolRun, ToolStatus, TurnEnd,
};
use retake_model::command::Compression;
use retake_model::content::{ContentId, Kind};
use retake_model::diff::DiffError;
use retake_model::entry::{Block, EntryVersion, Usage};
use retake_model::environment::Environment;
use retake_model::id::{EntryId, TurnId};
use retake_model::json::Json;
use retake_model::operation::{Actor, FileChange, TurnStep};
use retake_model::path::{RootPath, TreePath};
use retake_model::replay::OnConflict;
use retake_model::settings::Settings;
use retake_model::state::Visibility;
use retake_model::summary::{TakeSummary, ThreadSummary};
use retake_model::take::{FileItem, FileList, SentContext};
use retake_model::turn::{PartialAnswer, RunningTurn, TurnMessage};
use retake_store::{
    BudgetState, CollectReport, EntryPresentation, MaintenanceStage, Problem, ProjectUsage, PurgeReport,
    RedactionReport, RepairReport, SalvageReport, Snippet, StoreUsage, VerifyReport, WalState,
};
use retake_timeline::{
    Blame, Caller, ChangeOutcome, ChangeReport, Changes, ClosedWorktree, Command, Detail, DiffOptions,
    EntryView, ExportSummary, Exporter, FileLog, FileReport, FilesAt, Goal, HistoryItem, HistoryMove,
    ImportMode, ImportSummary, InsertPosition, MoveOptions, MoveOutcome, OpenedWorktree, PlanRequest,
    Project, PromoteOutcome, RecordedChanges, RecoveredMove, RestoreOutcome, Scope, Tree, TurnAdvanceOutcome,
    UndoStatus, Unit, Worktree,
};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde::Serialize;
use serde_json::json;

use crate::world::{RecordingObserver, World, calls, text};

fn generator() -> SchemaGenerator {
    SchemaSettings::draft2020_12().for_serialize().into_generator()
}

/// Checks a value against its schema.
fn check<T: Serialize + JsonSchema>(value: &T) {
    let schema = generator().into_root_schema_for::<T>().to_value();
    let value = serde_json::to_value(value).expect("JSON");
    if let Err(why) = validator::validate(&schema, &value) {
        panic!("{}: {why}\n{value:#}\n{schema:#}", T::schema_name());
    }
}

fn check_all<T: Serialize + JsonSchema>(values: impl IntoIterator<Item = T>) {
    let values: Vec<T> = values.into_iter().collect();
    assert!(!values.is_empty(), "{}", T::schema_name());
    values.iter().for_each(check);
}

#[test]
fn schema_names_are_unique() {
    let mut all = generator();
    macro_rules! add {
        ($($type:ty),* $(,)?) => { $( all.subschema_for::<$type>(); )* };
    }
    add!(
        Decision,
        Fingerprint,
        ApprovalMode,
        ApprovalQuestion,
        Comparison,
        CompressOutcome,
        TurnOutcome,
        TurnEvent
    );
    add!(Agent, DiffError, EntryVersion, FileChange, RootPath, OnConflict, Settings, Visibility);
    add!(TakeSummary, ThreadSummary, Environment, FileItem, FileList, SentContext, TurnMessage, RunningTurn);
    add!(
        BudgetState,
        CollectReport,
        WalState,
        PurgeReport,
        RedactionReport,
        RepairReport,
        SalvageReport,
        ProjectUsage,
        EntryPresentation,
        Snippet
    );
    add!(
        MaintenanceStage,
        StoreUsage,
        VerifyReport,
        TurnAdvanceOutcome,
        Worktree,
        Blame,
        ChangeReport,
        Changes,
        ClosedWorktree,
        ChangeOutcome
    );
    add!(
        EntryView,
        ExportSummary,
        FileLog,
        FileReport,
        FilesAt,
        Scope,
        HistoryItem,
        ImportSummary,
        MoveOutcome,
        HistoryMove
    );
    add!(
        OpenedWorktree,
        Project,
        PromoteOutcome,
        RecoveredMove,
        RestoreOutcome,
        RecordedChanges,
        UndoStatus,
        Tree
    );
    let names: Vec<String> = all.definitions().keys().cloned().collect();
    assert!(names.len() > 90, "{}", names.len());
    // schemars appends a number to the name of a second type of the same name.
    let numbered = |name: &&String| name.ends_with(|letter: char| letter.is_ascii_digit());
    assert_eq!(names.iter().find(numbered), None);
}

#[test]
fn values_of_a_turn_match_their_schemas() {
    let content = "one\ntwo\n";
    let mut world = World::new(vec![
        calls(&[("w", "write", json!({"path": "new.txt", "content": content})), ("n", "nothing", json!({}))]),
        text("Done."),
    ]);
    world.runtime.approval.mode = ApprovalMode::Ask;
    let reply = Reply { allowed: true, remember: true, reason: None };
    let mut witness = RecordingObserver { reply: Some(reply), ..RecordingObserver::default() };
    let outcome = world.run_with("write", &Cancel::new(), &mut witness).expect("the turn runs");
    check(&outcome);
    assert!(witness.events.iter().any(|event| matches!(event, TurnEvent::ApprovalRequested { .. })));
    check_all(witness.events);
    let (timeline, thread) = (world.runtime.timeline.clone(), world.thread);
    let working_copy = world.runtime.working_copy.clone().expect("files are recorded");
    let project = working_copy.project();
    std::fs::write(world.project.join("new.txt"), "one\n2\n").expect("a file");
    let seen = working_copy.record_changes(thread, Caller::human()).expect("the store is readable");
    check(&seen);

    let reader = timeline.read().expect("the store is readable");
    let state = reader.state(thread).expect("a state");
    let main = state.active_take(&reader.queries()).expect("a take");
    check_all(reader.entries(thread, &main).page(0..main.entries.len()).expect("entries"));
    check_all(reader.history(thread).list(None, 100).expect("a history"));
    check(&reader.history(thread).undo_status().expect("a undo_status"));
    check(&Tree::of(&reader, Some(project), retake_store::DeletedFilter::Shown).expect("a tree"));
    check(&state.own_settings(&reader.queries()).expect("settings"));
    let files = reader.files(thread).list(None, 100).expect("files");
    let oldest = files.last().expect("the first look").files.after;
    check_all(files);
    let hunks = DiffOptions::all(Detail::Hunks(3));
    check(&reader.snapshot(oldest).changes(seen.snapshot, &hunks).expect("changes"));
    let path = RootPath { root: String::new(), path: TreePath::new(b"new.txt").expect("a path") };
    check(&reader.project(project).blame(&path, seen.snapshot, None).expect("a blame"));
    check(&reader.project(project).file_log(&path, None, 10).expect("a log"));
    drop(reader);

    let restored = working_copy.restore(thread, oldest, &[], Caller::human(), MoveOptions::default());
    check(&restored.expect("it is restored"));
    let (undo, options) = (Goal::Undo(Unit::Turn, 1), MoveOptions::default());
    let branch = Command::Branch { from: main.id, at: None, name: None };
    for request in [PlanRequest::Move(undo), PlanRequest::Change(branch.clone())] {
        check(working_copy.plan(thread, request, Caller::human(), options).expect("a plan").preview());
    }
    check(&working_copy.go(thread, undo, Caller::human(), options).expect("an undo"));
    check(&working_copy.change(thread, branch, Caller::human(), options).expect("a branch"));
    check(&timeline.undo(thread, Unit::Operation, 1, Caller::human()).expect("an undo"));
}

#[test]
fn every_kind_of_change_matches_its_schema() {
    let world = World::new(vec![text("Done."), text("Again.")]);
    world.run("begin");
    let (timeline, thread, take) = (world.runtime.timeline.clone(), world.thread, world.take());
    let change = |command: Command| timeline.change(thread, command, Caller::human()).expect("a change");
    let entry = |text: &str| {
        let mut version = EntryVersion::from_text("AI", text, timeline.now());
        version.extra.insert("ticket".to_owned(), Json::new("[1, null]").expect("JSON"));
        version.usage = Some(Usage { input_tokens: 3, ..Usage::default() });
        version.model = Some("a model".to_owned());
        version
    };
    let blocks = r#"[{"type":"thinking","text":"hm","signature":"s"},{"type":"text","text":"t","more":{"a":1}},
        {"type":"tool_call","call":"c","name":"n","input":null},{"type":"citation","pages":[1]},
        {"type":"tool_result","call":"c","text":"r","failed":true}]"#;
    let blocks: Vec<Block> = serde_json::from_str(blocks).expect("blocks");
    check_all(blocks.clone());
    let new = |text: &str| vec![EntryVersion { blocks: blocks.clone(), ..entry(text) }.into()];
    check(&change(Command::AddEntries { take, at: InsertPosition::End, entries: new("a") }));
    let reader = timeline.read().expect("the store is readable");
    let main = reader.state(thread).expect("a state").active_take(&reader.queries()).expect("a take");
    let page = reader.entries(thread, &main).page(0..main.entries.len()).expect("entries");
    check_all(page.clone());
    let (first, last) = (page[0].id, page[page.len() - 1].id);
    drop(reader);
    let item = FileItem {
        path: "a.rs".to_owned(),
        extra: [("lines".to_owned(), Json::new("[1,2]").expect("JSON"))].into_iter().collect(),
    };
    check(&item);
    let set = vec![("temperature".to_owned(), "0.5".to_owned())];
    for command in [
        Command::EditEntry { take, entry: last, text: "b".to_owned() },
        Command::ChangeRole { take, entry: last, role: "System".to_owned() },
        Command::RewriteEntry { take, entry: last, version: entry("c") },
        Command::Fork { from: take, at: first, name: None },
        Command::RenameTake { take, name: "first".to_owned() },
        Command::Branch { from: take, at: Some(last), name: Some("second".to_owned()) },
        Command::Switch { take },
        Command::DeleteEntries { take, entries: vec![last] },
        Command::Rename { title: "another".to_owned() },
        Command::Tag { add: vec!["tag".to_owned()], remove: Vec::new() },
        Command::Pin { pinned: true },
        Command::Share {
            visibility: Some(Visibility::Public),
            private: None,
            shared_with_support: Some(true),
        },
        Command::SetRoles { roles: vec!["User".to_owned()] },
        Command::Set { values: set },
        Command::SetDraft { take, text: "typed".to_owned() },
        Command::SetFiles { take, list: FileList::ContextFiles, items: vec![item] },
        Command::Save { name: "here".to_owned() },
        Command::Truncate { take, pairs: 0 },
        Command::ReplaceEntries { take, entries: new("d") },
    ] {
        check(&change(command));
    }
    let reader = timeline.read().expect("the store is readable");
    let seen = reader.state(thread).expect("a state").active_take(&reader.queries()).expect("a take").entries;
    drop(reader);
    let summary = entry("all of it").into();
    let compression = Compression { turn: None, seen, end: seen.len(), kept: Vec::new(), summary };
    for command in [Command::Compress { take, compression }, Command::Clear { take }, Command::Reset] {
        check(&change(command));
    }
    let second =
        Tree::of(&timeline.read().expect("the store is readable"), None, retake_store::DeletedFilter::Hidden);
    let second = second.expect("a tree").threads[0].all_takes.last().expect("a take").id;
    check(&timeline.promote(thread, second, None, Caller::human()).expect("a promotion"));
    // It is no longer the last thread of its project.
    check(&change(Command::Delete));
    check(&change(Command::Restore));
    let reader = timeline.read().expect("the store is readable");
    check_all(reader.history(thread).list(None, 1000).expect("a history"));
    check(&Tree::of(&reader, None, retake_store::DeletedFilter::Shown).expect("a tree"));

    let mut file = Vec::new();
    check(&Exporter::new(&reader).thread(thread, &mut file, &mut |_, _| ()).expect("an export"));
    let file = std::io::Cursor::new(file);
    let imported = timeline.import(file, world.runtime.project, ImportMode::Copy, |_, _| ());
    check(&imported.expect("an import"));
    let store = timeline.store();
    check(&store.verify(&mut |_| ()).expect("it can be read"));
    check(&store.usage().expect("a sum"));
    check_all(store.usage_by_project().expect("shares"));
    check_all([1, 1 << 40].map(|budget| store.budget_state(budget).expect("a sum")));
    check(&timeline.project(&world.project).expect("a project"));
}

#[test]
fn a_comparison_of_takes_matches_its_schema() {
    let world = World::new(vec![text("One."), text("Two.")]);
    world.run("begin");
    let (timeline, thread, take) = (&world.runtime.timeline, world.thread, world.take());
    timeline
        .change(thread, Command::Branch { from: take, at: None, name: None }, Caller::human())
        .expect("a branch");
    world.run("begin otherwise");
    let reader = timeline.read().expect("the store is readable");
    let state = reader.state(thread).expect("a state");
    let found = |id| state.take(&reader.queries(), id).expect("the store is readable").expect("a take");
    let takes = &[&found(take), &found(state.active)];
    check(&compare(&reader, thread, takes, &world.runtime.prices).expect("a comparison"));
}

#[test]
fn rare_values_match_their_schemas() {
    let (entry, turn) = (EntryId::from_bytes([7; 16]), TurnId::from_bytes([255; 16]));
    let blob = ContentId::of(Kind::Blob, b"x");
    let run = |status: ToolStatus| ToolRun { call: "c".to_owned(), name: "shell".to_owned(), status };
    let calls = vec![run(ToolStatus::Pending), run(ToolStatus::Running)];
    let states = [
        AgentState::Waiting,
        AgentState::Calling { attempt: 1, steered: true },
        AgentState::ShuttingDown { unfinished: true },
    ];
    check_all(calls);
    check_all(states.map(|state| Agent { turn, state }));
    check_all([
        TurnMessage::Interrupt,
        TurnMessage::Steer { entry, text: "t".to_owned() },
        TurnMessage::Decide { call: "c".to_owned(), allowed: true, remember: false, reason: None },
    ]);
    check_all([
        Actor::Human,
        Actor::ToolCall { call: "c".to_owned() },
        Actor::Client { name: "n".to_owned() },
    ]);
    check_all([TurnEnd::Completed, TurnEnd::Failed, TurnEnd::Interrupted]);
    check_all([FaultOrigin::Model, FaultOrigin::Tool, FaultOrigin::Setup]);
    check_all([Block::Image { media: "image/png".to_owned(), blob, extra: [].into_iter().collect() }]);
    check(&Environment { git_dirty: Some(true), ..Environment::default() });
    check(&Settings::default());
    check(&Usage {
        extra: [("cost".to_owned(), Json::new("0.5").expect("JSON"))].into_iter().collect(),
        ..Usage::default()
    });
    let world = World::new(Vec::new());
    let now = world.runtime.timeline.now();
    let partial = PartialAnswer { entry, blocks: vec![Block::of_text("so far")], model: None, began: now };
    let (thread, take) = (world.thread, world.take());
    let state = Some(AgentState::Processing { attempt: 1, steered: false });
    check(&RunningTurn { thread, take, turn, started: now, process: 1, partial: Some(partial), state });
    check_all([
        TurnEvent::State { state: AgentStateKind::PostTools },
        TurnEvent::HookStarted { command: "make fmt".to_owned() },
        TurnEvent::HookProgress { text: "x".to_owned(), omitted_bytes: 1 },
        TurnEvent::HookEnded { outcome: ToolOutcome::Failed, text: "x".to_owned(), files: 1 },
    ]);
    check_all([TurnStep::HookStarted, TurnStep::HookEnded { outcome: ToolOutcome::Succeeded }]);
    check_all([
        Problem::Database { message: "m".to_owned() },
        Problem::ObjectMalformed { number: 1, kind: Kind::Blob, id: blob },
        Problem::RowChecksumsDiffer { count: 2 },
    ]);
    check_all([ApprovalMode::Ask, ApprovalMode::AllowEdits, ApprovalMode::AllowAll, ApprovalMode::Deny]);
    check_all([Decision::Allow, Decision::Ask, Decision::Deny]);
}
