//! Every link in the documentation leads to an existing file and heading.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::Path;

use crate::root;

/// The lines of a Markdown text outside code blocks.
fn prose(text: &str) -> impl Iterator<Item = String> {
    let mut fence: Option<String> = None;
    text.lines().map(str::to_owned).collect::<Vec<_>>().into_iter().filter(move |line| {
        let marks: String =
            line.trim_start().chars().take_while(|letter| matches!(letter, '`' | '~')).collect();
        let is_fence = marks.len() >= 3;
        match &fence {
            Some(open) if is_fence && marks.starts_with(open.as_str()) => fence = None,
            None if is_fence => fence = Some(marks),
            None => return true,
            Some(_) => {}
        }
        false
    })
}

/// Removes code spans from a line.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join("")
}

/// The link targets of a text: `[text](target)`, `[name]: target`, `href="target"` and `src="target"`.
fn links(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for line in prose(text) {
        let line = without_code(&line);
        for (mark, end) in [("](", ')'), ("href=\"", '"'), ("src=\"", '"')] {
            for rest in line.split(mark).skip(1) {
                let target = rest.split(end).next().unwrap_or_default();
                found.push(target.split(' ').next().unwrap_or_default().to_owned());
            }
        }
        if let Some((_, target)) = line.strip_prefix('[').and_then(|rest| rest.split_once("]: ")) {
            found.push(target.trim().to_owned());
        }
    }
    found
}

/// The heading anchors of a text, as GitHub generates them.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut times: HashMap<String, usize> = HashMap::new();
    let mut found = BTreeSet::new();
    for line in prose(text) {
        let title = line.trim_start_matches('#');
        if title.len() == line.len() || !title.starts_with(' ') {
            continue;
        }
        let kept = |letter: &char| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_');
        let slug: String = title.trim().to_lowercase().chars().filter(kept).collect();
        let slug = slug.replace(' ', "-");
        let seen = times.entry(slug.clone()).or_default();
        found.insert(if *seen == 0 { slug } else { format!("{slug}-{seen}") });
        *seen += 1;
    }
    found
}

/// The broken links of a file.
fn broken(file: &Path) -> Vec<String> {
    let text = fs::read_to_string(file).expect("documentation is text");
    let folder = file.parent().expect("a folder");
    let mut wrong = Vec::new();
    for link in links(&text) {
        let elsewhere = link.contains("://") || link.starts_with("mailto:");
        if elsewhere {
            continue;
        }
        let (path, anchor) =
            link.split_once('#').map_or((link.as_str(), None), |(path, at)| (path, Some(at)));
        let target = if path.is_empty() { file.to_owned() } else { folder.join(path) };
        if !target.exists() {
            wrong.push(format!("{}: {link}: there is no such file", file.display()));
        } else if let Some(anchor) = anchor
            && !anchors(&fs::read_to_string(&target).unwrap_or_default()).contains(anchor)
        {
            wrong.push(format!("{}: {link}: there is no such heading", file.display()));
        }
    }
    wrong
}

#[test]
fn every_link_in_the_documentation_resolves() {
    let mut files = Vec::new();
    for folder in [root(), root().join("docs")] {
        let entries = fs::read_dir(folder).expect("a folder of the repository");
        files.extend(entries.map(|entry| entry.expect("a readable entry").path()));
    }
    files.retain(|file| file.extension().is_some_and(|extension| extension == "md"));
    assert!(files.len() > 8, "documentation was found: {files:?}");
    let count: usize = files.iter().map(|file| links(&fs::read_to_string(file).expect("text")).len()).sum();
    assert!(count > 10, "links were found: {count}");
    let wrong: Vec<String> = files.iter().flat_map(|file| broken(file)).collect();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn a_broken_link_is_caught() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("page.md");
    let check = |text: &str| {
        fs::write(&file, text).expect("a file");
        broken(&file).len()
    };
    let headings = "# Two words & more\n\n## Again\n\n## Again\n\n";
    for bad in ["[a](gone.md)", "[a](#gone)", "[a](page.md#gone)", "<img src=\"gone.png\">", "[a]: gone.md"] {
        assert_eq!(check(&format!("{headings}{bad}\n")), 1, "{bad}");
    }
    let good = "[a](#two-words--more) [b](page.md#again-1) [c](https://example.org/gone#x) `[d](gone.md)`";
    assert_eq!(check(&format!("{headings}{good}\n```\n[e](gone.md)\n# Not a heading\n```\n")), 0);
    assert_eq!(check(&format!("{headings}[a](#not-a-heading)\n```\n# Not a heading\n```\n")), 1);
}
