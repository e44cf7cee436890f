//! The commands that only look: plan, verify, doctor, list, prompt. None writes a byte.
//!
//! This module does not know how anything is put into a place.

use std::path::PathBuf;

use conductor_skill::environment::Environment;
use conductor_skill::label::License;
use conductor_skill::manifest::Manifest;
use conductor_skill::plan::Action;
use conductor_skill::prompt;
use conductor_skill::work::Plan;
use serde::Serialize;

use super::desk::{Desk, Writing, scope};
use super::{How, Scope, show};
use crate::exit::{Exit, Failure};
use crate::out::Out;
use crate::show::table::Table;
use crate::show::words::count;

/// Says what would have to be done.
pub(super) async fn plan(desk: &Desk, given: &Scope, strict: bool) -> Result<Exit, Failure> {
    let plan = seen(desk, given).await?;
    show::plan(desk.out, &plan)?;
    if plan.troubles.is_empty() {
        let has_work = plan.items.iter().any(|item| item.action != Action::Noop);
        desk.out.talk(if has_work {
            "`conductor skills apply` does this"
        } else {
            "✔ nothing has to be done"
        });
    }
    let how = How {
        strict,
        ..How::default()
    };
    let has_conflict = plan.items.iter().any(|item| item.action == Action::Conflict);
    Ok(show::ending(&plan.troubles, has_conflict, &how))
}

/// Checks that everything is in place.
pub(super) async fn verify(desk: &Desk, given: &Scope, strict: bool) -> Result<Exit, Failure> {
    let plan = seen(desk, given).await?;
    show::plan(desk.out, &plan)?;
    let differing = plan
        .items
        .iter()
        .filter(|item| item.action != Action::Noop)
        .count();
    if differing > 0 {
        let places = count(plan.items.len(), "place");
        desk.out
            .talk(&format!("✘ not as it should be: {differing} of {places}"));
    } else if plan.troubles.is_empty() {
        desk.out.talk("✔ everything is as it should be");
    }
    Ok(match (plan.troubles.is_empty(), differing, strict) {
        (true, 0, _) => Exit::Ok,
        (true, _, true) => Exit::Differs,
        (false, _, _) | (true, _, false) => Exit::Failed,
    })
}

async fn seen(desk: &Desk, given: &Scope) -> Result<Plan, Failure> {
    let work = desk.work(desk.config()?, Writing::Nothing)?;
    let scope = scope(&work.config, &work.lock, given, &How::default())?;
    Ok(work.plan(&scope).await)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Severity {
    Error,
    Warning,
}

#[derive(Debug, Serialize)]
struct Finding {
    code: &'static str,
    severity: Severity,
    skill_id: String,
    target_path: Option<String>,
    message: String,
    remediation: String,
}

#[derive(Debug, Serialize)]
struct Diagnosis {
    summary: Summary,
    findings: Vec<Finding>,
}

#[derive(Debug, Serialize)]
struct Summary {
    total: usize,
    error: usize,
    warning: usize,
}

/// Looks for what could be wrong; one finding per fact.
pub(super) async fn doctor(desk: &Desk, given: &Scope, strict: bool) -> Result<Exit, Failure> {
    let plan = seen(desk, given).await?;
    let findings = findings(&plan);
    let number = |severity| {
        findings
            .iter()
            .filter(|finding| finding.severity == severity)
            .count()
    };
    let diagnosis = Diagnosis {
        summary: Summary {
            total: findings.len(),
            error: number(Severity::Error),
            warning: number(Severity::Warning),
        },
        findings,
    };
    desk.out.data(&diagnosis, |diagnosis| {
        let mut table = Table::new(["", "CODE", "SKILL", "FOUND"]);
        for finding in &diagnosis.findings {
            let mark = match finding.severity {
                Severity::Error => "✘ error",
                Severity::Warning => "! warn",
            };
            table.row([
                mark.to_owned(),
                finding.code.to_owned(),
                finding.skill_id.clone(),
                finding.message.clone(),
            ]);
            table.row([
                String::new(),
                String::new(),
                String::new(),
                format!("hint: {}", finding.remediation),
            ]);
        }
        table.render("✔ nothing is wrong")
    })?;
    let Summary { total, error, .. } = diagnosis.summary;
    Ok(if strict && total > 0 {
        Exit::Differs
    } else if error > 0 {
        Exit::Failed
    } else {
        Exit::Ok
    })
}

fn findings(plan: &Plan) -> Vec<Finding> {
    let mut findings = Vec::new();
    for trouble in &plan.troubles {
        findings.push(Finding {
            code: match trouble.code {
                "CDR0707" => "DOCKER_NOT_FOUND",
                "CDR0708" => "ADAPTER_HEALTH_FAIL",
                "CDR0705" | "CDR0716" => "SOURCE_MISSING",
                "CDR0706" => "SKILL_INVALID",
                _ => "TARGET_UNUSABLE",
            },
            severity: Severity::Error,
            skill_id: trouble.skill.to_string(),
            target_path: None,
            message: trouble.what.clone(),
            remediation: trouble.hint.clone(),
        });
    }
    for item in &plan.items {
        let (code, severity, remediation) = match item.action {
            Action::Noop => continue,
            Action::Create => ("TARGET_PATH_MISSING", Severity::Error, "conductor skills apply"),
            Action::Update => ("TARGET_OUT_OF_DATE", Severity::Error, "conductor skills apply"),
            Action::Conflict => (
                "PLAN_CONFLICT",
                Severity::Error,
                "move what is there away, or apply --force what was changed by hand",
            ),
            Action::Remove => ("TARGET_LEFT_OVER", Severity::Warning, "conductor skills apply"),
        };
        findings.push(Finding {
            code,
            severity,
            skill_id: item.skill.to_string(),
            target_path: Some(format!("{} {}", item.environment, item.path)),
            message: format!("{} {}: {}", item.environment, item.path, item.reasons.join("; ")),
            remediation: remediation.to_owned(),
        });
    }
    for (name, resolved) in &plan.resolved {
        let mut warn = |code, message: String, remediation: &str| {
            findings.push(Finding {
                code,
                severity: Severity::Warning,
                skill_id: name.to_string(),
                target_path: None,
                message,
                remediation: remediation.to_owned(),
            });
        };
        for problem in &resolved.problems {
            warn("SKILL_INVALID", problem.clone(), "mend the skill at its source");
        }
        let hint = resolved.labels.license_hint.clone().unwrap_or_default();
        match resolved.labels.license {
            License::Permissive => {}
            License::NonPermissive => warn("LICENSE_NON_PERMISSIVE", hint, "ask whether you may use it"),
            License::Unknown => warn(
                "LICENSE_UNKNOWN",
                format!("no license that is known {hint}"),
                "ask its author",
            ),
        }
        let risks: Vec<&str> = resolved
            .labels
            .risks
            .iter()
            .map(|labelled| labelled.risk.word())
            .collect();
        if !risks.is_empty() {
            warn(
                "RISK_REVIEW_REQUIRED",
                format!("holds: {}", risks.join(", ")),
                "read these files, or set safety.no_exec",
            );
        }
    }
    findings
}

#[derive(Debug, Serialize)]
struct Listed {
    id: String,
    source: String,
    mode: &'static str,
    resolved_commit: Option<String>,
    resolved_version: Option<String>,
    digest: Option<String>,
    targets: Vec<ListedTarget>,
}

#[derive(Debug, Serialize)]
struct ListedTarget {
    environment: Environment,
    path: String,
    installed: bool,
}

/// Lists the skills.
pub(super) fn list(desk: &Desk, given: &Scope) -> Result<Exit, Failure> {
    let config = desk.config()?;
    let lock = desk.lock()?;
    let scope = scope(&config, &lock, given, &How::default())?;
    let skills: Vec<Listed> = config
        .skills
        .iter()
        .filter(|skill| scope.has_any(skill))
        .map(|skill| {
            let locked = lock.skill(&skill.name);
            let wanted = skill
                .targets
                .iter()
                .filter(|target| scope.has(&skill.name, &target.environment));
            let targets = wanted.map(|target| {
                let put = locked.and_then(|locked| {
                    locked.targets.iter().find(|put| {
                        put.environment == target.environment
                            && put.path.parent().is_some_and(|root| {
                                target.root == root.display().to_string()
                                    || target.root.starts_with('~')
                                        && root.ends_with(target.root.trim_start_matches(['~', '/']))
                            })
                    })
                });
                ListedTarget {
                    environment: target.environment.clone(),
                    path: put.map_or_else(
                        || format!("{}/{}", target.root, skill.name),
                        |put| put.path.display().to_string(),
                    ),
                    installed: put.is_some(),
                }
            });
            Listed {
                id: skill.name.to_string(),
                source: skill.source.to_string(),
                mode: skill.mode.word(),
                resolved_commit: locked.and_then(|locked| locked.resolved_commit.clone()),
                resolved_version: locked.and_then(|locked| locked.resolved_version.clone()),
                digest: locked.map(|locked| locked.digest.to_string()),
                targets: targets.collect(),
            }
        })
        .collect();
    desk.out.data(&skills, |skills| {
        let mut table = Table::new(["SKILL", "WHERE", "", "SOURCE"]);
        for skill in skills {
            for target in &skill.targets {
                let state = if target.installed { "installed" } else { "wanted" };
                let place = format!("{} {}", target.environment, target.path);
                table.row([skill.id.clone(), place, state.to_owned(), skill.source.clone()]);
            }
        }
        table.render("no skills; `conductor skills install <source>` adds some")
    })?;
    Ok(Exit::Ok)
}

/// Prints the listing of skills for an agent's prompt.
pub(super) fn prompt(desk: &Desk, directories: Vec<PathBuf>) -> Result<Exit, Failure> {
    let directories = if directories.is_empty() {
        let lock = desk.lock()?;
        let puts = lock.skills.iter().flat_map(|locked| &locked.targets);
        puts.filter(|put| put.environment == Environment::Local)
            .map(|put| put.path.clone())
            .collect()
    } else {
        directories
    };
    let mut skills = Vec::new();
    for directory in directories {
        let directory = std::path::absolute(&directory)
            .map_err(|error| Failure::because(format!("finding {}", directory.display()), &error))?;
        skills.push(
            Manifest::read(&directory).map_err(|error| {
                Failure::coded("CDR0706", error.to_string(), "mend the skill at its source")
            })?,
        );
    }
    let text = prompt::prompt(&skills);
    if desk.out.is_json() {
        desk.out.data(&text, Clone::clone)?;
    } else {
        Out::text(&format!("{text}\n"))?;
    }
    Ok(Exit::Ok)
}
