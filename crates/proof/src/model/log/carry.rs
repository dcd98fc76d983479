//! What one step changed, carried over to the present picture.

use retake_model::id::TakeId;

use super::super::picture::{TakePicture, ThreadPicture};

/// The present picture with one step taken back or made again: it goes from one picture to the other. A take that others
/// changed since stays as it is, unless the step is its own.
pub(super) fn carry(
    present: &ThreadPicture,
    from: &ThreadPicture,
    to: &ThreadPicture,
    owned: &[TakeId],
) -> ThreadPicture {
    let mut after = present.clone();
    if present.title == from.title {
        after.title.clone_from(&to.title);
    }
    if present.tags == from.tags {
        after.tags.clone_from(&to.tags);
    }
    if present.pinned == from.pinned {
        after.pinned = to.pinned;
    }
    if present.roles == from.roles {
        after.roles.clone_from(&to.roles);
    }
    if present.settings == from.settings {
        after.settings.clone_from(&to.settings);
    }
    if present.active == from.active {
        after.active = to.active;
    }
    if present.deleted == from.deleted {
        after.deleted = to.deleted;
    }
    let ids = from.takes.iter().chain(&to.takes).map(|take| take.id);
    for id in ids {
        let (old, new) = (from.take(id), to.take(id));
        let here = after.takes.iter().position(|take| take.id == id);
        let untouched = here.map(|place| &after.takes[place]) == old;
        if old == new {
            continue;
        }
        if !(untouched || owned.contains(&id)) {
            // Its name goes back, whatever else was done to it.
            if let (Some(old), Some(new), Some(here)) = (old, new, here)
                && old.name != new.name
                && after.takes[here].name == old.name
            {
                after.takes[here].name.clone_from(&new.name);
            }
            continue;
        }
        put(&mut after.takes, here, new, to.takes.iter().position(|take| take.id == id));
    }
    if after.take(after.active).is_none() {
        after.active = after.takes[0].id;
    }
    after
}

fn put(takes: &mut Vec<TakePicture>, here: Option<usize>, new: Option<&TakePicture>, place: Option<usize>) {
    match (here, new) {
        (Some(here), Some(new)) => takes[here] = new.clone(),
        // A thread always has a take.
        (Some(_), None) if takes.len() == 1 => {}
        (Some(here), None) => {
            takes.remove(here);
        }
        (None, Some(new)) => {
            let place = place.unwrap_or(takes.len()).min(takes.len());
            takes.insert(place, new.clone());
        }
        (None, None) => {}
    }
}
