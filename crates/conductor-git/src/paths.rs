//! Counts the paths below trees without listing them: trees that name each other several times hold more than anybody can.
//!
//! This module does not know where the trees come from, nor how many paths are too many.

use std::collections::HashMap;

use crate::call::Call;
use crate::diff::split;
use crate::error::Error;
use crate::object::ObjectId;

/// The mode of a directory, as a tree writes it.
const DIRECTORY: &[u8] = b"40000";

/// What is in one tree.
#[derive(Debug, Default)]
struct Tree {
    /// Files, links and other repositories.
    paths: u64,
    directories: Vec<ObjectId>,
}

/// Counts the paths below two trees, with calls that are begun where both are; `roots` name trees.
pub(crate) async fn count<'a>(call: impl Fn(&str) -> Call<'a>, roots: [&str; 2]) -> Result<[u64; 2], Error> {
    let mut ids = Vec::with_capacity(roots.len());
    for root in roots {
        let id = call("rev-parse").args(["--verify", root]).text().await?;
        ids.push(ObjectId::parse(id.trim_end())?);
    }
    let every = call("rev-list")
        .args(["--objects", "--no-object-names", "--filter=blob:none"])
        .args(ids.iter().map(ObjectId::as_str))
        .text()
        .await?;
    let contents = call("cat-file").arg("--batch").input(every).bytes().await?;
    let contents = split(&contents)?.into_iter();
    let trees: Result<HashMap<ObjectId, Tree>, Error> = contents
        .map(|(id, content)| {
            let tree = read(&id, &content)?;
            Ok((id, tree))
        })
        .collect();
    let trees = trees?;
    let mut counted = HashMap::new();
    let counts: Vec<u64> = ids.iter().map(|id| below(id, &trees, &mut counted)).collect();
    Ok([counts[0], counts[1]])
}

/// Reads `mode SP name NUL id` entries, whose ids are bytes.
fn read(id: &ObjectId, content: &[u8]) -> Result<Tree, Error> {
    let length = id.as_str().len() / 2;
    let mut tree = Tree::default();
    let mut rest = content;
    while !rest.is_empty() {
        let entry = rest.iter().position(|byte| *byte == 0).and_then(|end| {
            let (head, behind) = (&rest[..end], &rest[end + 1..]);
            Some((head, behind.split_at_checked(length)?))
        });
        let Some((head, (named, behind))) = entry else {
            return Err(Error::UnexpectedOutput {
                verb: "cat-file",
                detail: format!("tree {id} ends within an entry"),
            });
        };
        if head.split(|byte| *byte == b' ').next() == Some(DIRECTORY) {
            tree.directories.push(ObjectId::parse(&hex::encode(named))?);
        } else {
            tree.paths += 1;
        }
        rest = behind;
    }
    Ok(tree)
}

/// Sums up what is below a tree, each tree once. Without recursion: an agent decides how deep they go.
fn below(root: &ObjectId, trees: &HashMap<ObjectId, Tree>, counted: &mut HashMap<ObjectId, u64>) -> u64 {
    let mut open = vec![root];
    while let Some(id) = open.last().copied() {
        // Whoever asked for these trees got all of them.
        let Some(tree) = trees.get(id).filter(|_| !counted.contains_key(id)) else {
            open.pop();
            continue;
        };
        let before = open.len();
        open.extend(
            tree.directories
                .iter()
                .filter(|id| trees.contains_key(id) && !counted.contains_key(id)),
        );
        if open.len() == before {
            let inner = tree.directories.iter().filter_map(|id| counted.get(id));
            let paths = inner.fold(tree.paths, |sum, paths| sum.saturating_add(*paths));
            counted.insert(id.clone(), paths);
        }
    }
    counted.get(root).copied().unwrap_or_default()
}
