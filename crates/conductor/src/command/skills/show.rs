//! Shows plans and what became of them: for people as a table, for programs in a stable shape.
//!
//! This module does not know how anything is done.

use std::collections::BTreeMap;
use std::sync::Arc;

use conductor_port::target::FileFault;
use conductor_skill::label::{Labels, License};
use conductor_skill::name::SkillName;
use conductor_skill::plan::{Action, Item, Trouble};
use conductor_skill::work::{Done, Outcome, Plan, Report, Tell};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

use super::How;
use crate::exit::{Exit, Failure};
use crate::out::{Out, Shown};
use crate::show::table::Table;
use crate::show::words::count;

/// A plan as programs read it.
#[derive(Debug, Serialize)]
pub(super) struct PlanView<'a> {
    items: &'a [Item],
    failures: &'a [Trouble],
    warnings: &'a [String],
    labels: BTreeMap<&'a SkillName, &'a Labels>,
}

impl<'a> From<&'a Plan> for PlanView<'a> {
    fn from(plan: &'a Plan) -> Self {
        Self {
            items: &plan.items,
            failures: &plan.troubles,
            warnings: &plan.warnings,
            labels: plan
                .resolved
                .iter()
                .map(|(name, resolved)| (name, &resolved.labels))
                .collect(),
        }
    }
}

/// Prints a plan.
pub(super) fn plan(out: Out, plan: &Plan) -> Result<(), Failure> {
    out.data(&PlanView::from(plan), |view| {
        let mut table = Table::new(["ACTION", "SKILL", "PLACE", "WHY"]);
        for item in view.items {
            table.row(row(item.action.word(), item, &item.reasons));
        }
        rendered(&table, view.failures)
    })?;
    talk(out, &plan.troubles, &plan.warnings);
    Ok(())
}

/// Prints what was done.
pub(super) fn report(out: Out, report: &Report) -> Result<(), Failure> {
    out.data(report, |report| {
        let mut table = Table::new(["RESULT", "SKILL", "PLACE", "WHY"]);
        for done in &report.items {
            // Why something was not there before is no news when it is.
            let reasons: &[String] = match (&done.outcome, done.item.action) {
                (Outcome::Done, Action::Create) => &[],
                (Outcome::Done | Outcome::Unchanged | Outcome::Skipped | Outcome::Failed, _) => {
                    &done.item.reasons
                }
            };
            table.row(row(result(done), &done.item, reasons));
        }
        rendered(&table, &report.failures)
    })?;
    talk(out, &report.failures, &report.warnings);
    Ok(())
}

/// Where nothing could be looked at, the failures say all there is to say.
fn rendered(table: &Table<4>, failures: &[Trouble]) -> Shown {
    if failures.is_empty() || !table.is_empty() {
        table.render("nothing is wanted anywhere")
    } else {
        Shown::Data(String::new())
    }
}

fn row(first: &str, item: &Item, reasons: &[String]) -> [String; 4] {
    let place = match item.environment.to_string().as_str() {
        "local" => item.path.clone(),
        environment => format!("{environment} {}", item.path),
    };
    [
        first.to_owned(),
        item.skill.to_string(),
        place,
        reasons.join("; "),
    ]
}

fn result(done: &Done) -> &'static str {
    match (&done.outcome, done.item.action) {
        (Outcome::Done, Action::Remove) => "✔ removed",
        (Outcome::Done, Action::Create) => "✔ installed",
        (Outcome::Done, Action::Update) => "✔ updated",
        (Outcome::Done | Outcome::Unchanged, _) => "✔ in place",
        (Outcome::Skipped, _) => "! left alone",
        (Outcome::Failed, _) => "✘ failed",
    }
}

/// Says what did not work and what a person should know.
pub(super) fn talk(out: Out, troubles: &[Trouble], warnings: &[String]) {
    for warning in warnings {
        out.talk(&format!("warning: {}", conductor_web::visible::line(warning)));
    }
    let mut told: Vec<(&str, &[FileFault])> = Vec::new();
    for trouble in troubles {
        // One container that does not run is one thing to tell, however many skills belong there.
        let this = (trouble.what.as_str(), trouble.files.as_slice());
        if told.contains(&this) {
            continue;
        }
        told.push(this);
        let mut failure = Failure::coded(trouble.code, trouble.what.clone(), trouble.hint.clone());
        if !trouble.files.is_empty() {
            let files = trouble
                .files
                .iter()
                .map(|file| format!("\n  {}: {}", file.path, file.why));
            failure.what.push_str(&files.collect::<String>());
        }
        Out::failure(&failure);
    }
}

/// Says what in the skills could run and how they are licensed, before they are installed.
pub(super) fn labels(out: Out, plan: &Plan) -> bool {
    let mut is_risky = false;
    for (name, resolved) in &plan.resolved {
        let labels = &resolved.labels;
        for labelled in &labels.risks {
            is_risky = true;
            let files = labelled
                .files
                .iter()
                .take(3)
                .cloned()
                .collect::<Vec<_>>()
                .join(", ");
            let more = if labelled.files.len() > 3 { ", …" } else { "" };
            let what = count(labelled.files.len(), labelled.risk.word());
            out.talk(&format!(
                "! {name} holds {what}: {}{more}",
                conductor_web::visible::line(&files)
            ));
        }
        let hint = labels
            .license_hint
            .as_deref()
            .map(conductor_web::visible::line)
            .unwrap_or_default();
        match labels.license {
            License::Permissive => {}
            License::NonPermissive => out.talk(&format!(
                "! {name}: its license asks for more than credit: {hint}"
            )),
            License::Unknown if hint.is_empty() => {
                out.talk(&format!("! {name}: it names no license"));
            }
            License::Unknown => out.talk(&format!("! {name}: its license is not known: {hint}")),
        }
    }
    is_risky
}

/// How a look at everything ends.
pub(super) fn ending(troubles: &[Trouble], has_conflict: bool, how: &How) -> Exit {
    if !troubles.is_empty() {
        Exit::Failed
    } else if has_conflict && how.strict {
        Exit::Differs
    } else {
        Exit::Ok
    }
}

/// Moves a bar on a terminal, place by place.
pub(super) fn progress(out: Out, places: usize) -> (Tell, ProgressBar) {
    let bar = if out.is_watched() && places > 0 {
        ProgressBar::with_draw_target(Some(places as u64), ProgressDrawTarget::stderr())
    } else {
        ProgressBar::hidden()
    };
    let style = ProgressStyle::with_template("{bar:20} {pos}/{len} {msg}");
    bar.set_style(
        style
            .unwrap_or_else(|_| ProgressStyle::default_bar())
            .progress_chars("━╸─"),
    );
    let told = bar.clone();
    let tell = move |done: &Done| {
        told.set_message(format!("{} → {}", done.item.skill, done.item.environment));
        told.inc(1);
    };
    (Arc::new(tell), bar)
}
