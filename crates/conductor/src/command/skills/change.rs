//! The commands that change something: add, install, apply, update, remove.
//!
//! This module does not know how anything is put into a place.

use conductor_port::target::Changed;
use conductor_skill::config::Config;
use conductor_skill::edit;
use conductor_skill::lock::Locked;
use conductor_skill::name::SkillName;
use conductor_skill::plan::Action;
use conductor_skill::resolve::Freshness;
use conductor_skill::store::Store;
use conductor_skill::work::{self, Outcome, Plan, Report, Work};
use serde::Serialize;

use super::choose::Choice;
use super::desk::{Desk, Writing, of_config, scope};
use super::{How, Scope, show};
use crate::exit::{Exit, Failure};
use crate::out::Out;
use crate::show::table::Table;

/// Adds skills to the file.
pub(super) async fn add(desk: &Desk, choice: Choice) -> Result<Exit, Failure> {
    let Some((text, chosen)) = chosen(desk, &choice, Writing::Allowed).await? else {
        return Ok(Exit::Ok);
    };
    let _claim = desk.claim(&desk.parse(&text)?)?;
    edit::write(&desk.file, &text).map_err(|error| of_config(&error))?;
    for name in &chosen {
        desk.out
            .talk(&format!("✔ {name} added to {}", desk.file.display()));
    }
    desk.out.data(&Added { added: chosen }, |_| String::new())?;
    Ok(Exit::Ok)
}

#[derive(Debug, Serialize)]
struct Added {
    added: Vec<SkillName>,
}

/// Adds skills and installs them.
pub(super) async fn install(desk: &Desk, choice: Choice, how: &How) -> Result<Exit, Failure> {
    let writing = if how.dry_run {
        Writing::Nothing
    } else {
        Writing::Allowed
    };
    let Some((text, chosen)) = chosen(desk, &choice, writing).await? else {
        return Ok(Exit::Ok);
    };
    let environments = choice.environments()?;
    let config = desk.parse(&text)?;
    let mut work = desk.work(config, writing)?;
    let scope = work::Scope {
        skills: chosen,
        // A container that does not run is no reason against another place.
        environments,
        changed: changed(how),
        freshness: Freshness::Newest,
    };
    let plan = work.plan(&scope).await;
    let is_risky = show::labels(desk.out, &plan);
    if how.dry_run {
        show::plan(desk.out, &plan)?;
        return Ok(show::ending(&plan.troubles, has_conflict(&plan), how));
    }
    if is_risky && !choice.yes && desk.out.can_ask() {
        let answer = Out::ask("install this? [y/N] ").await;
        if !answer.is_some_and(|answer| matches!(answer.as_str(), "y" | "Y" | "yes")) {
            desk.out.talk("nothing was installed");
            return Ok(Exit::Failed);
        }
    }
    // Content that cannot be had is not wanted for ever.
    if plan.resolved.is_empty() {
        show::plan(desk.out, &plan)?;
        return Ok(Exit::Failed);
    }
    let _claim = desk.claim(&work.config)?;
    edit::write(&desk.file, &text).map_err(|error| of_config(&error))?;
    let report = carry_out(desk, &mut work, plan, how).await?;
    // Whoever asks for one skill wants to know when it is not there.
    let is_left = report.items.iter().any(|done| done.outcome == Outcome::Skipped);
    let exit = show::ending(&report.failures, is_left, how);
    Ok(if is_left && exit == Exit::Ok {
        Exit::Failed
    } else {
        exit
    })
}

/// Brings every place to what is wanted.
pub(super) async fn apply(desk: &Desk, given: &Scope, how: &How) -> Result<Exit, Failure> {
    let writing = if how.dry_run {
        Writing::Nothing
    } else {
        Writing::Allowed
    };
    let mut work = desk.work(desk.config()?, writing)?;
    let scope = scope(&work.config, &work.lock, given, how)?;
    if how.dry_run {
        return planned(desk, &work, &scope, how).await;
    }
    let _claim = desk.claim(&work.config)?;
    let plan = work.plan(&scope).await;
    let report = carry_out(desk, &mut work, plan, how).await?;
    let is_left = report.items.iter().any(|done| done.outcome == Outcome::Skipped);
    Ok(show::ending(&report.failures, is_left, how))
}

/// Takes skills away, everywhere or out of some environments.
pub(super) async fn remove(desk: &Desk, given: &Scope, how: &How) -> Result<Exit, Failure> {
    let (config, lock) = (desk.config()?, desk.lock()?);
    let scope = scope(&config, &lock, given, how)?;
    for name in &scope.skills {
        let wanted = config.skills.iter().find(|skill| skill.name == *name);
        let is_there = wanted.is_some_and(|skill| scope.has_any(skill))
            || lock
                .skill(name)
                .is_some_and(|locked| locked.targets.iter().any(|put| scope.has(name, &put.environment)));
        if !scope.environments.is_empty() && !is_there {
            return Err(Failure::coded(
                "CDR0713",
                format!("skill `{name}` is not in {}", given.targets.join(", ")),
                "`conductor skills list` shows where it is",
            )
            .exiting(Exit::Usage));
        }
    }
    let text = desk.text()?.unwrap_or_else(|| edit::EMPTY.to_owned());
    let text = edit::remove(&text, &desk.file, &scope.skills, &scope.environments)
        .map_err(|error| of_config(&error))?;
    let writing = if how.dry_run {
        Writing::Nothing
    } else {
        Writing::Allowed
    };
    let mut work = desk.work(desk.parse(&text)?, writing)?;
    if how.dry_run {
        return planned(desk, &work, &scope, how).await;
    }
    let _claim = desk.claim(&work.config)?;
    let plan = work.plan(&scope).await;
    // What stays in its place stays in the file too.
    if has_conflict(&plan) {
        show::plan(desk.out, &plan)?;
        return Ok(if how.strict { Exit::Differs } else { Exit::Failed });
    }
    edit::write(&desk.file, &text).map_err(|error| of_config(&error))?;
    let report = carry_out(desk, &mut work, plan, how).await?;
    Ok(show::ending(&report.failures, false, how))
}

/// What is new about one skill.
#[derive(Debug, Serialize)]
struct News {
    id: SkillName,
    status: &'static str,
    local: Option<String>,
    remote: Option<String>,
}

#[derive(Debug, Serialize)]
struct Update {
    registries: Vec<String>,
    skills: Vec<News>,
    failed: usize,
}

/// Asks for what is newest, and installs it where that is wanted.
pub(super) async fn update(desk: &Desk, given: &Scope, apply: bool, how: &How) -> Result<Exit, Failure> {
    let writing = if how.dry_run {
        Writing::Nothing
    } else {
        Writing::Allowed
    };
    let mut work = desk.work(desk.config()?, writing)?;
    let mut scope = scope(&work.config, &work.lock, given, how)?;
    scope.freshness = Freshness::Newest;
    let _claim = if how.dry_run {
        None
    } else {
        Some(desk.claim(&work.config)?)
    };
    let registries = if how.dry_run {
        Vec::new()
    } else {
        fetch_registries(desk, &work).await
    };
    let plan = work.plan(&scope).await;
    if apply && how.dry_run {
        show::plan(desk.out, &plan)?;
        return Ok(show::ending(&plan.troubles, has_conflict(&plan), how));
    }
    let update = Update {
        registries,
        failed: plan.troubles.len(),
        skills: plan
            .resolved
            .iter()
            .map(|(name, resolved)| {
                let locked = work.lock.skill(name);
                let version = |commit: &Option<String>, digest: &str| {
                    commit.clone().unwrap_or_else(|| digest.to_owned())
                };
                let local = locked.map(
                    |Locked {
                         resolved_commit,
                         digest,
                         ..
                     }| version(resolved_commit, digest.as_str()),
                );
                let remote = version(&resolved.commit, resolved.digest.as_str());
                News {
                    id: name.clone(),
                    status: match locked {
                        None => "missing",
                        Some(locked) if locked.digest == resolved.digest => "up-to-date",
                        Some(_) => "new-content",
                    },
                    local,
                    remote: Some(remote),
                }
            })
            .collect(),
    };
    if apply {
        let report = carry_out(desk, &mut work, plan, how).await?;
        let is_left = report.items.iter().any(|done| done.outcome == Outcome::Skipped);
        return Ok(show::ending(&report.failures, is_left, how));
    }
    desk.out.data(&update, |update| {
        let mut table = Table::new(["SKILL", "STATUS", "HERE", "THERE"]);
        let short = |text: &Option<String>| {
            text.as_deref()
                .unwrap_or("-")
                .chars()
                .take(14)
                .collect::<String>()
        };
        for news in &update.skills {
            table.row([
                news.id.to_string(),
                news.status.to_owned(),
                short(&news.local),
                short(&news.remote),
            ]);
        }
        table.render("no skills")
    })?;
    show::talk(desk.out, &plan.troubles, &plan.warnings);
    Ok(show::ending(&plan.troubles, false, how))
}

/// Brings the indexes of all registries up to date; one that does not answer is told and left as it was.
async fn fetch_registries(desk: &Desk, work: &Work) -> Vec<String> {
    let store = Store::new(work.config.storage.clone());
    let mut fetched = Vec::new();
    for registry in &work.config.registries {
        match fetch_registry(work, &store, &registry.url, &registry.name).await {
            Ok(()) => fetched.push(registry.name.clone()),
            Err(failure) => desk
                .out
                .talk(&format!("warning: registry {}: {}", registry.name, failure.what)),
        }
    }
    fetched
}

async fn fetch_registry(work: &Work, store: &Store, url: &str, name: &str) -> Result<(), Failure> {
    let place = store.registry(name);
    let parent = place.parent().unwrap_or(&place);
    let disk = |error: std::io::Error| Failure::because(format!("keeping the index of {name}"), &error);
    std::fs::create_dir_all(parent).map_err(disk)?;
    let fresh = tempfile::tempdir_in(store.root()).map_err(disk)?;
    let commit = work
        .upstream
        .resolve(url, None)
        .await
        .map_err(|fault| Failure::new(fault.to_string()))?;
    let index = fresh.path().join("index");
    std::fs::create_dir(&index).map_err(disk)?;
    work.upstream
        .export(url, &commit, &index)
        .await
        .map_err(|fault| Failure::new(fault.to_string()))?;
    if place.exists() {
        std::fs::rename(&place, fresh.path().join("old")).map_err(disk)?;
    }
    std::fs::rename(&index, &place).map_err(disk)
}

/// The file with the chosen skills in it, and their names; nothing when they were only to be listed.
async fn chosen(
    desk: &Desk,
    choice: &Choice,
    writing: Writing,
) -> Result<Option<(String, Vec<SkillName>)>, Failure> {
    let text = desk.text()?.unwrap_or_else(|| edit::EMPTY.to_owned());
    let config: Config = desk.parse(&text)?;
    // Looking at a source writes nothing that is not wanted anyway.
    let writing = if choice.list { Writing::Nothing } else { writing };
    let Work { config, upstream, .. } = desk.work(config, writing)?;
    let offers = choice.offers(desk, &*upstream).await?;
    if choice.list {
        desk.out.data(&offers, |offers| {
            let mut table = Table::new(["SKILL", "DESCRIPTION"]);
            for offer in offers {
                table.row([
                    offer.name.to_string(),
                    crate::show::words::title(&offer.description),
                ]);
            }
            table.render("no skills")
        })?;
        return Ok(None);
    }
    let mut skills = choice.choose(offers, desk.out.can_ask())?;
    for skill in &mut skills {
        // Whoever names one more place has not given up the others.
        if let Some(known) = config.skills.iter().find(|known| known.name == skill.name) {
            let named = std::mem::replace(&mut skill.targets, known.targets.clone());
            let new = named.into_iter().filter(|target| !known.targets.contains(target));
            skill.targets.extend(new);
        }
    }
    let names = skills.iter().map(|skill| skill.name.clone()).collect();
    let text = edit::add(&text, &desk.file, &skills).map_err(|error| of_config(&error))?;
    Ok(Some((text, names)))
}

async fn planned(desk: &Desk, work: &Work, scope: &work::Scope, how: &How) -> Result<Exit, Failure> {
    let plan = work.plan(scope).await;
    show::plan(desk.out, &plan)?;
    Ok(show::ending(&plan.troubles, has_conflict(&plan), how))
}

async fn carry_out(desk: &Desk, work: &mut Work, plan: Plan, how: &How) -> Result<Report, Failure> {
    let (tell, bar) = show::progress(desk.out, plan.items.len());
    let report = work
        .apply(plan, changed(how), tell)
        .await
        .map_err(|error| of_config(&error));
    bar.finish_and_clear();
    let report = report?;
    show::report(desk.out, &report)?;
    Ok(report)
}

fn changed(how: &How) -> Changed {
    if how.force {
        Changed::Discard
    } else {
        Changed::Keep
    }
}

fn has_conflict(plan: &Plan) -> bool {
    plan.items.iter().any(|item| item.action == Action::Conflict)
}
