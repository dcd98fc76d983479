//! Shell scripts that change files as users and programs do.

use crate::rng::Rng;

const IGNORE_OUT: &str = "grep -q out .gitignore 2>&- || echo 'out/' >> .gitignore";

const NAMES: [&str; 8] = ["f0", "f1", "f2", "f3", "run.sh", "note.txt", "x.log", "y.log"];

/// A few random file changes that neither block on a pipe nor write through links that lead outside.
pub(super) fn changes(rng: &mut Rng) -> String {
    let lines: Vec<String> = (0..=rng.below(3)).map(|_| change(rng)).collect();
    lines.join("; ")
}

fn change(rng: &mut Rng) -> String {
    let name = rng.pick(&NAMES).copied().unwrap_or("f0");
    let other = rng.pick(&NAMES).copied().unwrap_or("f1");
    let number = rng.below(10_000);
    let make_way = format!("[ -f {name} ] || rm -rf {name}");
    match rng.below(19) {
        0..=5 => format!("{make_way}; echo {number} > {name}"),
        6 => format!("rm -rf {name}"),
        7 => format!("[ -L d ] || {{ mkdir -p d; echo {number} > d/x; }}"),
        8 => format!("{make_way}; echo {number} > {name}; chmod 755 {name}"),
        9 => format!("{make_way}; echo {number} > {name}; chmod {}755 {name}", 1 << rng.below(3)),
        10 | 11 => format!("{make_way}; seq {number} {} > {name}", number + 2_000),
        12 => format!("rm -rf {name}; mkfifo {name}"),
        13 => "grep -q log .gitignore 2>&- || echo '*.log' >> .gitignore".to_owned(),
        14 => format!("[ ! -f {name} ] || [ {name} = {other} ] || {{ rm -rf {other}; mv {name} {other}; }}"),
        // A folder that is ignored only as a folder, and a file or link in its place.
        15 => format!("rm -rf out; mkdir out; echo {number} > out/x; {IGNORE_OUT}"),
        16 => format!("rm -rf out; echo {number} > out; {IGNORE_OUT}"),
        17 => format!("rm -rf out; ln -s {other} out; {IGNORE_OUT}"),
        _ => format!("rm -rf l; ln -s {other} l"),
    }
}

/// Changes that only a user makes: links that lead outside, and version control data.
pub(super) fn changes_by_hand(rng: &mut Rng) -> String {
    let number = rng.below(10_000);
    let system = rng.pick(&[".HG", ".svn", ".Jj", ".bzr", "CVS", "_Darcs", ".hg"]).copied().unwrap_or(".hg");
    match rng.below(10) {
        0 => format!("mkdir -p {system}; echo {number} > {system}/x"),
        1 => format!("[ -L d ] || {{ mkdir -p d/{system}; echo {number} > d/{system}/x; }}"),
        2 => format!("mkdir -p {system}; echo {number} > {system}/x; rm -rf d; ln -s {system} d"),
        3 => "rm -rf d; ln -s ../outside d".to_owned(),
        4 => "[ ! -L d ] || rm d; mkdir -p d; echo 0 > d/x".to_owned(),
        _ => changes(rng),
    }
}
