//! Commands on takes, on a plain vector of them.

use retake_model::id::{EntryId, TakeId, ThreadId};
use retake_model::take::{FileItem, FileList};

use super::super::fault::ModelFault;
use super::super::names;
use super::super::observe::paths;
use super::super::plain::{EntryContent, Part, PlainEntry, PlainTake, PlainThread};
use super::{CommandContext, ExpectedRefusal, find, place_of};

pub(super) fn branch(
    picture: &mut PlainThread,
    from: TakeId,
    at: Option<EntryId>,
    name: Option<&str>,
    around: &mut CommandContext<'_>,
) -> Result<(), ExpectedRefusal> {
    let source = find(picture, from)?.clone();
    let mut end = match at {
        Some(entry) => place_of(&source, entry)? + 1,
        None => 0,
    };
    if around.fault == Some(ModelFault::BranchSharesTooFew) {
        end = end.saturating_sub(1);
    }
    let entries = source.entries[..end].to_vec();
    add(picture, source, entries, at, EntryContent::nothing(), name, around)
}

pub(super) fn fork(
    picture: &mut PlainThread,
    from: TakeId,
    at: EntryId,
    name: Option<&str>,
    around: &mut CommandContext<'_>,
) -> Result<(), ExpectedRefusal> {
    let source = find(picture, from)?.clone();
    let end = place_of(&source, at)?;
    let mut message = source.entries[end].entry_content.clone();
    if around.fault == Some(ModelFault::ForkOmitsPictures) {
        message.parts.retain(|part| !matches!(part, Part::Picture(_)));
    }
    if !message.is_from_user() {
        return Err(ExpectedRefusal::NotAUserMessage);
    }
    let entries = source.entries[..end].to_vec();
    let shared = entries.last().map(|entry| entry.id);
    add(picture, source, entries, shared, message, name, around)
}

pub(super) fn rename(picture: &mut PlainThread, take: TakeId, name: &str) -> Result<(), ExpectedRefusal> {
    find(picture, take)?;
    let name = names::meaning(name).ok_or(ExpectedRefusal::Name)?;
    if picture.takes.iter().any(|other| other.name == name && other.id != take) {
        return Err(ExpectedRefusal::NameTaken);
    }
    find(picture, take)?.name = name;
    Ok(())
}

pub(super) fn files(
    picture: &mut PlainThread,
    take: TakeId,
    list: FileList,
    items: &[FileItem],
) -> Result<(), ExpectedRefusal> {
    let take = find(picture, take)?;
    let which = match list {
        FileList::Files => 0,
        FileList::ContextFiles => 1,
        FileList::Screenshots => 2,
    };
    take.files[which] = paths(items);
    Ok(())
}

/// Makes a take active, and removes those that went on differently from its newest fork.
pub(super) fn keep(
    picture: &mut PlainThread,
    id: TakeId,
    fault: Option<ModelFault>,
) -> Result<(), ExpectedRefusal> {
    let kept = find(picture, id)?.clone();
    let index = |take: &PlainTake, entry: Option<EntryId>| match entry {
        None => Some(0),
        Some(entry) => take.entries.iter().position(|known| known.id == entry).map(|place| place + 1),
    };
    let forks = picture.takes.iter().filter(|take| take.parent == Some(id));
    let newest = forks.filter_map(|take| Some((index(&kept, take.fork_point)?, take.fork_point))).max();
    let goes = |take: &PlainTake| match newest {
        Some((_, entry)) => take.parent == Some(id) && take.fork_point == entry,
        None => match kept.parent {
            None => false,
            Some(parent) if take.id == parent => {
                index(take, kept.fork_point).is_some_and(|end| end < take.entries.len())
            }
            Some(parent) => take.parent == Some(parent) && take.fork_point == kept.fork_point,
        },
    };
    let mut left: Vec<TakeId> =
        picture.takes.iter().filter(|take| take.id != id && goes(take)).map(|take| take.id).collect();
    if fault == Some(ModelFault::KeepLeavesAnAlternative) {
        left.pop();
    }
    picture.takes.retain(|take| !left.contains(&take.id));
    picture.active = id;
    Ok(())
}

/// Removes a take. Its parent becomes active, otherwise the oldest take.
pub(super) fn remove(
    picture: &mut PlainThread,
    id: TakeId,
    last: ExpectedRefusal,
) -> Result<PlainTake, ExpectedRefusal> {
    if picture.takes.len() == 1 {
        return Err(last);
    }
    let place = picture.takes.iter().position(|take| take.id == id).ok_or(ExpectedRefusal::NoSuchTake)?;
    let gone = picture.takes.remove(place);
    if picture.active == id {
        let parent = gone.parent.filter(|parent| picture.take(*parent).is_some());
        picture.active = parent.unwrap_or(picture.takes[0].id);
    }
    Ok(gone)
}

/// The source thread and the new thread after a promotion.
pub fn promote(
    before: &PlainThread,
    thread: ThreadId,
    take: TakeId,
    title: Option<&str>,
) -> Result<(PlainThread, PlainThread), ExpectedRefusal> {
    let mut source = before.clone();
    find(&mut source, take)?;
    let moved = remove(&mut source, take, ExpectedRefusal::OnlyTake)?;
    let title = match title {
        Some(title) => names::meaning(title).ok_or(ExpectedRefusal::Name)?,
        None => moved.name.clone(),
    };
    let promoted = PlainThread {
        title,
        parent: Some((thread, moved.parent, moved.fork_point)),
        active: moved.id,
        takes: vec![PlainTake { name: "main".to_owned(), parent: None, running: None, ..moved }],
        pinned: false,
        ..before.clone()
    };
    Ok((source, promoted))
}

fn add(
    picture: &mut PlainThread,
    source: PlainTake,
    entries: Vec<PlainEntry>,
    fork_point: Option<EntryId>,
    draft: EntryContent,
    asked: Option<&str>,
    around: &mut CommandContext<'_>,
) -> Result<(), ExpectedRefusal> {
    let asked = match asked {
        Some(name) => Some(names::meaning(name).ok_or(ExpectedRefusal::Name)?),
        None => None,
    };
    let taken = |name: &str| picture.takes.iter().any(|take| take.name == name);
    if asked.as_deref().is_some_and(taken) {
        return Err(ExpectedRefusal::NameTaken);
    }
    let (id, made_up) = around.learn.take();
    // A generated name must be free and derived from the source's; which one it is does not matter.
    let family = source.name.split("_take_").next().unwrap_or_default();
    let fits = made_up.rsplit_once("_take_").is_some_and(|(beginning, number)| {
        // A name that would be too long is shortened.
        let whole = beginning == family || made_up.chars().count() == 100;
        family.starts_with(beginning) && whole && number.parse::<u64>().is_ok()
    });
    let free = fits && !taken(&made_up);
    let name = asked.unwrap_or_else(|| if free { made_up } else { format!("a free name of {family}") });
    let created = around.now;
    let parent = Some(source.id);
    let (draft, attached) = (draft.text(), draft.pictures());
    let running = None;
    let made =
        PlainTake { id, name, created, entries, draft, attached, parent, fork_point, running, ..source };
    picture.takes.push(made);
    picture.active = id;
    Ok(())
}
