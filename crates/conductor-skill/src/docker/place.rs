//! Brings one skill into one container: copied beside its place, read back to the last byte, then put there.
//!
//! This module does not know whether the skill may be put there; its caller has looked.

use conductor_port::target::{FileFault, Placement, TargetFault};

use super::container::Container;
use super::survey::{Kind, SWAP, Seen};
use super::{BEHIND_LINK, DockerAdapter, FRESH, Inside, OLD, archive};
use crate::tree::{MARKER, Tree};

/// One skill on its way into one container.
pub(super) struct Work<'a> {
    pub(super) container: &'a Container,
    pub(super) tree: &'a Tree,
    pub(super) to: &'a Placement,
    pub(super) marker: &'a str,
    pub(super) digest: &'a str,
}

impl DockerAdapter {
    pub(super) async fn place_with_shell(
        &self,
        work: &Work<'_>,
        user: (u64, u64),
    ) -> Result<(), TargetFault> {
        let Work {
            container,
            tree,
            to,
            marker,
            ..
        } = work;
        let fresh = to.beside(FRESH).display().to_string();
        let (place, old) = (
            to.path().display().to_string(),
            to.beside(OLD).display().to_string(),
        );
        let top = format!("{FRESH}{}", to.name());
        let copied = self
            .copy_in(work, &to.root().display().to_string(), &top, user)
            .await?;
        let seen = self.look(container, std::slice::from_ref(&fresh)).await;
        let arrived = match seen {
            Ok(Inside::Shell(survey)) => survey.paths.into_iter().next().unwrap_or_default(),
            Ok(Inside::Bare) => return Err(self.failed("looking into", "its shell is gone")),
            Err(fault) => return Err(self.because(copied, fault)),
        };
        let verified = self.verify(tree, marker, to, copied, &arrived);
        let step = match verified {
            Ok(()) => self
                .script(container, SWAP, &[&fresh, &place, &old])
                .await
                .and_then(|finished| {
                    if finished.status == 0 {
                        Ok(())
                    } else {
                        Err(self.failed(&format!("renaming {fresh} to {place} in"), &finished.stderr))
                    }
                }),
            Err(fault) => Err(fault),
        };
        if step.is_err() {
            // The first fault is the one to tell; a container that is gone needs no tidying.
            let _first_fault_counts = self
                .docker
                .call(["exec", &container.id, "rm", "-rf", "--", &fresh], None)
                .await;
        }
        step
    }

    pub(super) async fn place_without_shell(&self, work: &Work<'_>) -> Result<(), TargetFault> {
        let Work {
            container,
            tree,
            to,
            marker,
            digest,
        } = work;
        let owner = container.numeric_user().unwrap_or((0, 0));
        let behind = format!("{BEHIND_LINK}{}-{}", to.name(), digest);
        let root = to.root().display().to_string();
        // From the top, so that docker makes the directories on the way.
        let below_top = root.trim_start_matches('/');
        let copied = self
            .copy_in(work, "/", &format!("{below_top}/{behind}"), owner)
            .await?;
        let arrived = match self.read_out(container, &to.root().join(&behind)).await {
            Ok(Some(archive::Read::Directory { listing, marker })) => Seen {
                kind: Kind::Directory,
                marker,
                listing,
            },
            Ok(Some(archive::Read::Link(_) | archive::Read::Other) | None) => Seen::default(),
            Err(fault) => return Err(self.because(copied, fault)),
        };
        self.verify(tree, marker, to, copied, &arrived)?;
        let link = archive::pack_link(to.name(), &behind, owner).map_err(|error| self.unpacked(&error))?;
        let into = format!("{}:{root}", container.id);
        let finished = self.docker.call(["cp", "-", &into], Some(link)).await?;
        if finished.status != 0 {
            return Err(self.failed(&format!("linking {} in", to.path().display()), &finished.stderr));
        }
        match self.read_out(container, &to.path()).await? {
            Some(archive::Read::Link(there)) if there == behind => Ok(()),
            Some(_) | None => Err(self.failed(
                &format!("linking {} in", to.path().display()),
                "the link is not there",
            )),
        }
    }

    /// Copies the tree in and returns what docker said when it failed.
    async fn copy_in(
        &self,
        work: &Work<'_>,
        into: &str,
        top: &str,
        owner: (u64, u64),
    ) -> Result<Option<String>, TargetFault> {
        let stream =
            archive::pack(work.tree, top, work.marker, owner).map_err(|error| self.unpacked(&error))?;
        let into = format!("{}:{into}", work.container.id);
        let finished = self.docker.call(["cp", "-", &into], Some(stream)).await?;
        Ok((finished.status != 0).then_some(finished.stderr))
    }

    /// Lets pass only what arrived to the last byte; tells the rest file by file.
    fn verify(
        &self,
        tree: &Tree,
        marker: &str,
        to: &Placement,
        copied: Option<String>,
        arrived: &Seen,
    ) -> Result<(), TargetFault> {
        let mut files = tree.listing().faults(&arrived.listing);
        if arrived.marker.as_deref().map(str::trim) != Some(marker.trim()) {
            files.push(FileFault {
                path: MARKER.to_owned(),
                why: "is missing".to_owned(),
            });
        }
        let is_nothing = arrived.kind == Kind::Absent;
        match copied {
            None if files.is_empty() => Ok(()),
            // Nothing arrived at all, and docker says why.
            Some(said) if is_nothing => {
                Err(self.failed(&format!("copying {} into", to.path().display()), &said))
            }
            Some(said) if files.is_empty() => Err(self.failed("copying into", &said)),
            Some(said) => {
                for file in &mut files {
                    file.why = format!("{}: {said}", file.why);
                }
                Err(self.incomplete(to, files))
            }
            None => Err(self.incomplete(to, files)),
        }
    }

    fn incomplete(&self, to: &Placement, files: Vec<FileFault>) -> TargetFault {
        TargetFault::Incomplete {
            path: format!("{}:{}", self.name.as_str(), to.path().display()),
            files,
        }
    }

    /// When both steps failed, the first tells more.
    fn because(&self, copied: Option<String>, fault: TargetFault) -> TargetFault {
        match copied {
            Some(said) => self.failed("copying into", &said),
            None => fault,
        }
    }
}
