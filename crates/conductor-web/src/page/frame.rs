//! What stands around every page: where one is, what waits for a person, whether everything is stopped.
//!
//! This module does not know what is on the page.

use axum::response::Html;
use conductor_domain::staff::Rank;
use conductor_port::views::RunFilter;

use crate::actor::Actor;
use crate::door::Door;
use crate::error::Error;
use crate::page::asset;

/// The part of the site that a page belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Section {
    Home,
    Runs,
    Approvals,
    Projects,
    Audit,
    Metrics,
    Policies,
    Stop,
    Settings,
    Elsewhere,
}

/// What stands around a page.
#[derive(Debug, Clone)]
pub(crate) struct Frame {
    pub(crate) title: String,
    pub(crate) section: Section,
    /// How many runs wait for a person.
    pub(crate) waiting: u32,
    pub(crate) kill_switch: bool,
    pub(crate) operator: String,
    /// What whoever looks may do.
    pub(crate) rank: Rank,
    pub(crate) version: String,
    /// Where the script hears that something changed.
    pub(crate) live: String,
    /// Where the script looks what the page says by now, where that is not the page's own address: an answer to a form.
    pub(crate) here: Option<String>,
    pub(crate) style: &'static str,
    pub(crate) script: &'static str,
}

/// So many waiting runs are counted; more are "many".
const COUNTED: u32 = 100;

impl Frame {
    /// Reads what stands around a page.
    pub(crate) async fn of(
        door: &Door,
        actor: &Actor,
        section: Section,
        title: impl Into<String>,
    ) -> Result<Self, Error> {
        let waiting = RunFilter {
            needs_human: true,
            limit: COUNTED,
            ..RunFilter::default()
        };
        Ok(Self {
            title: title.into(),
            section,
            waiting: door.reader.count(&waiting).await?,
            kill_switch: door.reader.instance().await?.kill_switch,
            operator: actor.name().to_string(),
            rank: actor.rank,
            version: door.settings.version.clone(),
            live: "/live".to_owned(),
            here: None,
            style: asset::STYLE.path,
            script: asset::SCRIPT.path,
        })
    }

    /// Marks the answer to a form, which is kept up to date by what stands at an address of its own.
    pub(crate) fn answering(self, here: Option<impl Into<String>>) -> Self {
        let here = here.map(Into::into);
        Self { here, ..self }
    }

    /// Tells whether whoever looks may act on runs.
    pub(crate) fn may_operate(&self) -> bool {
        self.rank >= Rank::Operator
    }

    /// Tells whether whoever looks may change what there is, and who works here.
    pub(crate) fn may_administer(&self) -> bool {
        self.rank >= Rank::Admin
    }

    /// Tells whether a page belongs to a part of the site, for the navigation.
    pub(crate) fn is_in(&self, section: Section) -> bool {
        self.section == section
    }
}

/// Renders a page.
pub(crate) fn page(template: &impl askama::Template) -> Html<String> {
    Html(template.render().expect("rendering into memory cannot fail"))
}
