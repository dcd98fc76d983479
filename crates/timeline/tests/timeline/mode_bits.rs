//! Setuid, setgid and sticky bits: a move that loses one reports it.

use std::os::unix::fs::PermissionsExt;

use crate::support::FileWorld;

fn set_mode(world: &FileWorld, path: &str, mode: u32) {
    std::fs::set_permissions(world.path(path), PermissionsExt::from_mode(mode)).expect("our file");
}

fn mode(world: &FileWorld, path: &str) -> u32 {
    std::fs::metadata(world.path(path)).expect("a file").permissions().mode() & 0o7777
}

#[test]
fn an_undo_reports_a_setuid_bit_that_it_loses() {
    let world = FileWorld::new();
    for path in ["edited", "removed", "touched", "plain"] {
        world.write(path, "one\n");
        set_mode(&world, path, if path == "plain" { 0o755 } else { 0o4755 });
    }
    world.record_changes();
    world.agent(|world| {
        world.write("edited", "two\n");
        set_mode(world, "edited", 0o4755);
        world.remove("removed");
        set_mode(world, "touched", 0o4700);
        world.write("plain", "two\n");
    });
    let undone = world.undo();
    let noted: Vec<(String, bool)> =
        undone.paths.iter().map(|path| (path.path.to_string(), path.note.is_some())).collect();
    let expected = [("edited", true), ("plain", false), ("removed", true), ("touched", false)];
    assert_eq!(noted, expected.map(|(path, noted)| (path.to_owned(), noted)));
    assert_eq!(mode(&world, "edited"), 0o755);
    assert_eq!(mode(&world, "removed"), 0o755);
    assert_eq!(mode(&world, "touched"), 0o4755, "where only permissions change, it stays");
}
