//! Policies: which texts count where, an editor that says what is wrong before anything is stored, every version, and what
//! would happen.
//!
//! A text is stored by the instance, which checks it again. This module does not know what a policy says.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::{Html, IntoResponse as _, Redirect, Response};
use conductor_domain::policy::PolicyLayer;
use serde::Deserialize;

use crate::actor::Actor;
use crate::api::{FlawView, PolicyPlace, RulingView, SetPolicy};
use crate::change;
use crate::door::Door;
use crate::error::Error;
use crate::extract::{Asked, Filled};
use crate::handle;
use crate::page::calls::Decision;
use crate::page::frame::{Frame, Section, page};
use crate::page::run::{self, TextLine};
use crate::page::trouble::Trouble;
use crate::render::code;
use crate::visible;

/// What the address asks for; an empty field is one that a form left out.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct PoliciesQuery {
    #[serde(default)]
    project: String,
    #[serde(default)]
    repo: String,
    /// A version to look at.
    version: Option<u32>,
    #[serde(default)]
    actor: String,
    #[serde(default)]
    action: String,
    #[serde(default)]
    target: String,
}

/// The editor's fields.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SetForm {
    action: Wish,
    #[serde(default)]
    project: String,
    #[serde(default)]
    repo: String,
    #[serde(default)]
    text: String,
    /// How many versions there were when the page was loaded.
    version: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Wish {
    Check,
    Store,
}

#[derive(Template)]
#[template(path = "policies.html")]
struct PoliciesPage {
    frame: Frame,
    places: Vec<Place>,
    here: Option<Here>,
    query: PoliciesQuery,
    answer: Option<Answer>,
    layers: Vec<Layer>,
}

/// A project or repository.
struct Place {
    name: String,
    project: String,
    repo: String,
    stored: String,
    is_here: bool,
}

/// The project or repository that the page is about.
struct Here {
    name: String,
    what: &'static str,
    project: String,
    repo: String,
    /// The newest version; zero where nothing was ever stored.
    newest: u32,
    text: String,
    checked: Option<Checked>,
    versions: Vec<Version>,
    compared: Option<Compared>,
}

/// What a check of the editor's text found.
struct Checked {
    flaws: Vec<FlawView>,
}

struct Version {
    number: u32,
    by: String,
    digest: String,
}

/// A version beside the one before it.
struct Compared {
    number: u32,
    before: u32,
    lines: Vec<TextLine>,
}

/// A text that counts here.
struct Layer {
    name: String,
    version: String,
    lines: Vec<TextLine>,
    is_own: bool,
}

/// What would happen.
struct Answer {
    asked: String,
    wrong: Option<String>,
    ruling: Option<RulingView>,
    decision: Decision,
}

impl PoliciesQuery {
    fn place(&self) -> PolicyPlace {
        let given = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
        PolicyPlace {
            project: given(&self.project).filter(|_| self.repo.is_empty()),
            repo: given(&self.repo),
            run: None,
            version: None,
        }
    }
}

/// Shows the policies of one place, or of Conductor itself.
pub(crate) async fn show(
    State(door): State<Arc<Door>>,
    actor: Actor,
    Asked(query): Asked<PoliciesQuery>,
) -> Result<Html<String>, Trouble> {
    render(&door, &actor, query, None).await
}

/// Checks what stands in the editor, or stores it; what is wrong is said beside it.
pub(crate) async fn set(
    State(door): State<Arc<Door>>,
    actor: Actor,
    Filled(form): Filled<SetForm>,
) -> Result<Response, Trouble> {
    let query = PoliciesQuery {
        project: form.project.clone(),
        repo: form.repo.clone(),
        ..PoliciesQuery::default()
    };
    let place = query.place();
    // Browsers send line ends of their own.
    let wish = SetPolicy {
        project: place.project.clone(),
        repo: place.repo.clone(),
        text: form.text.replace("\r\n", "\n"),
    };
    let mut flaws = handle::policy::flaws(&door, &wish).await?;
    for flaw in &mut flaws {
        flaw.message = visible::line(&flaw.message);
    }
    if form.action == Wish::Store && flaws.is_empty() {
        let newest = door.reader.policy_versions(&place).await?.versions.len();
        if u32::try_from(newest).unwrap_or(u32::MAX) != form.version {
            return Err(Error::Invalid {
                what: "somebody stored another version since this page was loaded; look at it first"
                    .to_owned(),
            }
            .into());
        }
        handle::policy::store(&door, &actor, &wish).await?;
        return Ok(Redirect::to(&address(&query)).into_response());
    }
    let edited = (wish.text, Checked { flaws });
    Ok(render(&door, &actor, query, Some(edited)).await?.into_response())
}

fn address(query: &PoliciesQuery) -> String {
    let pairs = [("project", &query.project), ("repo", &query.repo)];
    let pairs: Vec<_> = pairs.into_iter().filter(|(_, value)| !value.is_empty()).collect();
    format!(
        "/policies?{}",
        serde_urlencoded::to_string(pairs).unwrap_or_default()
    )
}

async fn render(
    door: &Door,
    actor: &Actor,
    query: PoliciesQuery,
    edited: Option<(String, Checked)>,
) -> Result<Html<String>, Trouble> {
    let place = query.place();
    let counting = door.reader.policies_counting(&place).await?;
    // Asked for no text, the desk gives Conductor's own.
    let mut texts = door.rules.texts(&[]).await?;
    if !counting.is_empty() {
        texts.extend(door.rules.texts(&counting).await?);
    }
    let layers = texts.into_iter().map(|text| Layer {
        name: text.layer.to_string(),
        version: match text.version {
            0 => String::new(),
            version => format!("version {version}"),
        },
        lines: coloured(&text.text),
        is_own: text.layer == PolicyLayer::Shipped,
    });
    let layers = layers.collect();
    let frame = Frame::of(door, actor, Section::Policies, "Policies").await?;
    let frame = frame.answering(edited.is_some().then(|| address(&query)));
    let here = here(door, &query, edited).await?;
    let answer = answer(door, &query, &place).await?;
    Ok(page(&PoliciesPage {
        frame,
        places: places(door, &query).await?,
        here,
        query,
        answer,
        layers,
    }))
}

async fn places(door: &Door, query: &PoliciesQuery) -> Result<Vec<Place>, Error> {
    let instance = door.reader.instance().await?;
    let stored = door.reader.policies().await?.policies;
    let version = |project: &str, repo: Option<&str>| {
        let known = stored.iter().find(|policy| match repo {
            Some(name) => policy.repo.as_deref() == Some(name),
            None => policy.repo.is_none() && policy.project.as_str() == project,
        });
        known.map_or_else(
            || "nothing of its own".to_owned(),
            |policy| format!("version {} by {}", policy.version, policy.by),
        )
    };
    let mut places = Vec::new();
    for project in &instance.projects {
        let name = project.to_string();
        places.push(Place {
            stored: version(&name, None),
            is_here: query.repo.is_empty() && query.project == name,
            repo: String::new(),
            project: name.clone(),
            name: name.clone(),
        });
        for known in instance.repos.iter().filter(|known| known.project == *project) {
            places.push(Place {
                name: visible::line(&known.repo),
                project: String::new(),
                stored: version(&name, Some(&known.repo)),
                is_here: query.repo.eq_ignore_ascii_case(&known.repo),
                repo: known.repo.clone(),
            });
        }
    }
    Ok(places)
}

async fn here(
    door: &Door,
    query: &PoliciesQuery,
    edited: Option<(String, Checked)>,
) -> Result<Option<Here>, Error> {
    let place = query.place();
    let (name, what) = match (&place.project, &place.repo) {
        (_, Some(repo)) => (repo.clone(), "repository"),
        (Some(project), None) => (project.clone(), "project"),
        (None, None) => return Ok(None),
    };
    let versions = door.reader.policy_versions(&place).await?.versions;
    let newest = versions.first().map_or(0, |version| version.version);
    let compared = match query.version {
        None => None,
        Some(number) => {
            let after = version_text(door, &place, number).await?;
            let before = match number {
                0 | 1 => String::new(),
                _ => version_text(door, &place, number - 1).await?,
            };
            Some(Compared {
                number,
                before: number.saturating_sub(1),
                lines: run::change(&visible::text(&change::between(&before, &after)).text),
            })
        }
    };
    let (text, checked) = match edited {
        Some((text, checked)) => (text, Some(checked)),
        None if newest == 0 => (String::new(), None),
        None => (version_text(door, &place, newest).await?, None),
    };
    Ok(Some(Here {
        name,
        what,
        project: query.project.clone(),
        repo: query.repo.clone(),
        newest,
        text,
        checked,
        versions: versions
            .into_iter()
            .map(|version| Version {
                number: version.version,
                by: version.by.to_string(),
                digest: version.text.to_string(),
            })
            .collect(),
        compared,
    }))
}

async fn version_text(door: &Door, place: &PolicyPlace, version: u32) -> Result<String, Error> {
    let place = PolicyPlace {
        version: Some(version),
        ..place.clone()
    };
    let of = door.reader.policies_shown(&place).await?;
    let text = door.rules.texts(&of).await?.pop();
    Ok(text.map(|text| text.text).unwrap_or_default())
}

async fn answer(door: &Door, query: &PoliciesQuery, place: &PolicyPlace) -> Result<Option<Answer>, Error> {
    let words = [&query.actor, &query.action, &query.target].map(|word| word.trim());
    if words.iter().all(|word| word.is_empty()) {
        return Ok(None);
    }
    let asked = words.join(" ");
    let of = door.reader.policies_counting(place).await?;
    let (ruling, wrong) = match door.rules.judge(&of, &asked).await? {
        Ok(ruling) => (Some(seen(ruling)), None),
        Err(wrong) => (None, Some(visible::line(&wrong))),
    };
    Ok(Some(Answer {
        asked: visible::line(&asked),
        decision: Decision::of(ruling.as_ref().map_or("", |ruling| ruling.decision.as_str())),
        wrong,
        ruling,
    }))
}

/// What policies say, with nothing hidden in it.
fn seen(mut ruling: RulingView) -> RulingView {
    ruling.reason = visible::line(&ruling.reason);
    ruling.policy = visible::line(&ruling.policy);
    for rule in &mut ruling.rules {
        rule.id = visible::line(&rule.id);
        rule.reason = visible::line(&rule.reason);
    }
    ruling
}

fn coloured(text: &str) -> Vec<TextLine> {
    let shown = visible::text(text).text;
    let line = |line: &str| TextLine {
        class: "",
        pieces: code::pieces(line, code::CEDAR),
    };
    shown.lines().map(line).collect()
}
