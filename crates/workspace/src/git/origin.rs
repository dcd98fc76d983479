//! What identifies a repository on every machine: the address of its remote, and its first commit.

use std::path::Path;
use std::time::{Duration, Instant};

use super::objects::{ObjectDatabase, ObjectKind, id_of};
use super::{config, locate, refs};

/// The walk to the first commit ends after this time; the first commit is then unknown.
const LONGEST_WALK: Duration = Duration::from_secs(10);

/// What identifies a repository on every machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The address of the remote, without scheme, user and suffix: `example.org/team/project`.
    pub remote: String,
    /// The first commit of the main branch.
    pub root_commit: String,
    /// The folder within the work tree; empty for its top.
    pub folder: String,
}

/// Reads what identifies the repository of a folder; `None` if it has no remote that other machines can name, or its
/// first commit is unknown, as in a shallow clone.
pub fn origin(folder: &Path) -> Option<Origin> {
    let repository = locate::locate(folder)?;
    let remote = normalized(&config::remote(&repository.common)?)?;
    let top = repository.root.as_ref()?.canonicalize().ok()?;
    let within = folder.canonicalize().ok()?.strip_prefix(&top).ok()?.to_str()?.to_owned();
    if repository.common.join("shallow").exists() || repository.common.join("info/grafts").exists() {
        return None;
    }
    let (git, common) = (&repository.git, &repository.common);
    let named = ["refs/remotes/origin/HEAD", "refs/heads/main", "refs/heads/master"];
    let start = named.into_iter().find_map(|name| refs::resolve(git, common, name.as_bytes()));
    let start = start.or_else(|| refs::head(git, common).commit)?;
    Some(Origin { remote, root_commit: root_of(&ObjectDatabase::open(common), start)?, folder: within })
}

/// Follows the first parents.
fn root_of(objects: &ObjectDatabase, mut commit: String) -> Option<String> {
    let began = Instant::now();
    while began.elapsed() < LONGEST_WALK {
        let (ObjectKind::Commit, text) = objects.read(&id_of(&commit)?)? else { return None };
        let parent = text.split(|byte| *byte == b'\n').take_while(|line| !line.is_empty());
        match parent.into_iter().find_map(|line| line.strip_prefix(b"parent ")) {
            Some(parent) => commit = str::from_utf8(parent).ok()?.trim().to_owned(),
            None => return Some(commit),
        }
    }
    None
}

/// The same text for all ways to write the address of a remote; `None` for a path of this machine.
fn normalized(address: &str) -> Option<String> {
    let (host, path) = match address.split_once("://") {
        Some((scheme, rest)) => {
            if scheme.eq_ignore_ascii_case("file") {
                return None;
            }
            let (host, path) = rest.split_once('/')?;
            let port = match scheme.to_ascii_lowercase().as_str() {
                "https" => ":443",
                "http" => ":80",
                "git" => ":9418",
                _ => ":22",
            };
            (host.strip_suffix(port).unwrap_or(host), path)
        }
        // `user@host:path`, but not a path with a colon.
        None => address.split_once(':').filter(|(host, _)| !host.contains('/'))?,
    };
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host).to_ascii_lowercase();
    let path = path.trim_matches('/');
    let path = path.strip_suffix(".git").unwrap_or(path).trim_end_matches('/');
    let is_local = host == "localhost" || host.starts_with("localhost:") || host.starts_with("127.");
    (!host.is_empty() && !path.is_empty() && !is_local).then(|| format!("{host}/{path}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_ways_to_write_an_address_are_one() {
        let expected = Some("example.org/team/project".to_owned());
        for address in [
            "https://example.org/team/project",
            "https://EXAMPLE.org:443/team/project.git",
            "http://example.org/team/project/",
            "ssh://git@example.org/team/project.git",
            "ssh://git@example.org:22/team/project.git/",
            "git@example.org:team/project.git",
            "example.org:/team/project",
            "git://example.org/team/project",
        ] {
            assert_eq!(normalized(address), expected, "{address}");
        }
        for address in
            ["/srv/git/a.git", "../a", "file:///srv/a", "./a:b", "https://example.org/", "localhost:a", ""]
        {
            assert_eq!(normalized(address), None, "{address}");
        }
        assert_ne!(normalized("https://example.org:8443/team/project"), expected);
        assert_ne!(normalized("https://example.org/Team/project"), expected);
    }
}
