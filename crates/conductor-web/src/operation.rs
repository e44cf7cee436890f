//! Every address of the API: what it is for, what it takes and answers, and how the command line and the pages say it.
//!
//! Router, OpenAPI document and `docs/api.md` are made of this one table, so that none of them knows an address that the
//! others do not. This module does not know how anything is answered.

use std::sync::Arc;

use axum::routing::{MethodRouter, get, post};
use conductor_domain::staff::Rank;
use schemars::{JsonSchema, Schema, SchemaGenerator};

use crate::api::{
    AcceptedView, ActionRequest, AddOperator, AddProject, Approvals, ApproveSeveral, AuditView, BulkView,
    CallList, CancelAll, ChangeRank, ChangeView, EffectList, EventList, ExpectedView, FlawList, GrantEgress,
    GrantList, GrantOverride, Health, InstanceView, IssueToken, IssuedToken, KillSwitch, LinkView,
    MetricsView, Nothing, OperatorList, PlanRisks, PolicyExpectations, PolicyList, PolicyPlace,
    PolicyQuestion, PolicyTexts, ProjectList, RecordList, RecordView, RegisterRepo, ReplayView, RepoList,
    RepoView, Reprioritize, RevokeOverride, RulingView, RunDetail, RunList, SetPassword, SetPolicy, SignOut,
    StartRun, Started, TokenList, VersionList, WriteList,
};
use crate::door::Door;
use crate::guard::Reach;
use crate::handle::run::{EventsQuery, ListQuery};
use crate::handle::work::{CallsQuery, ChangeQuery};
use crate::metrics::MetricsQuery;
use crate::search::RecordQuery;
use crate::stream::FollowQuery;
use crate::{handle, openapi, page, stream};

/// Makes the schema of a type.
pub(crate) type Shape = fn(&mut SchemaGenerator) -> Schema;

/// One address with one method.
#[derive(Debug, Clone, Copy)]
pub struct Operation {
    /// `GET` or `POST`.
    pub method: &'static str,
    /// The address below `/api/v1`.
    pub path: &'static str,
    /// Its name, for programs.
    pub name: &'static str,
    /// What it does, for people.
    pub says: &'static str,
    /// The commands that do the same, without `conductor`; empty where no person would.
    pub commands: &'static [&'static str],
    /// Who may.
    pub rank: Rank,
    /// Whether the answer is about what whoever asks can reach, and nothing else.
    is_narrowed: bool,
    /// Whether anything is another way afterwards.
    pub(crate) changes: bool,
    /// Whether what it takes must stand nowhere, not even as a hash.
    pub(crate) is_secret: bool,
    /// The forms that do the same, as addresses of pages.
    pub forms: &'static [&'static str],
    pub(crate) query: Option<Shape>,
    pub(crate) takes: Option<Shape>,
    pub(crate) answers: Answers,
    pub(crate) route: fn() -> MethodRouter<Arc<Door>>,
}

/// What comes back when all goes well.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Answers {
    /// Data.
    Ok(Shape),
    /// Data about what is new.
    Created(Shape),
    /// Events as they happen.
    Stream,
    /// Kept bytes.
    Bytes,
    /// A file of so many of these as there are.
    File(Shape),
    /// This table as an OpenAPI document.
    Document,
}

impl Answers {
    /// The status.
    pub(crate) fn status(self) -> &'static str {
        match self {
            Self::Created(_) => "201",
            Self::Ok(_) | Self::Stream | Self::Bytes | Self::File(_) | Self::Document => "200",
        }
    }
}

fn shape<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

const fn reading(
    path: &'static str,
    name: &'static str,
    says: &'static str,
    answers: Shape,
    route: fn() -> MethodRouter<Arc<Door>>,
) -> Operation {
    Operation {
        method: "GET",
        path,
        name,
        says,
        commands: &[],
        rank: Rank::Viewer,
        is_narrowed: false,
        changes: false,
        is_secret: false,
        forms: &[],
        query: None,
        takes: None,
        answers: Answers::Ok(answers),
        route,
    }
}

const fn changing(
    path: &'static str,
    name: &'static str,
    says: &'static str,
    takes: Shape,
    answers: Answers,
    route: fn() -> MethodRouter<Arc<Door>>,
) -> Operation {
    Operation {
        method: "POST",
        path,
        name,
        says,
        commands: &[],
        rank: Rank::Operator,
        is_narrowed: false,
        changes: true,
        is_secret: false,
        forms: &[],
        query: None,
        takes: Some(takes),
        answers,
        route,
    }
}

/// What is asked with a body, and changes nothing.
const fn asking(
    path: &'static str,
    name: &'static str,
    says: &'static str,
    takes: Shape,
    answers: Shape,
    route: fn() -> MethodRouter<Arc<Door>>,
) -> Operation {
    Operation {
        method: "POST",
        changes: false,
        takes: Some(takes),
        ..reading(path, name, says, answers, route)
    }
}

impl Operation {
    const fn by(self, commands: &'static [&'static str]) -> Self {
        Self { commands, ..self }
    }

    const fn on(self, forms: &'static [&'static str]) -> Self {
        Self { forms, ..self }
    }

    const fn needs(self, rank: Rank) -> Self {
        Self { rank, ..self }
    }

    /// For handlers that ask `Actor::reaches`, or that tell nothing of any project.
    const fn narrowed(self) -> Self {
        Self {
            is_narrowed: true,
            ..self
        }
    }

    /// Tells what it reaches.
    pub(crate) fn reach(&self) -> Reach {
        if self.is_narrowed {
            Reach::Asker
        } else if self.path.starts_with("/runs/{id}") {
            Reach::Run
        } else {
            Reach::Instance
        }
    }

    const fn secretly(self) -> Self {
        Self {
            is_secret: true,
            ..self
        }
    }

    const fn asked(self, query: Shape) -> Self {
        Self {
            query: Some(query),
            ..self
        }
    }

    const fn answering(self, answers: Answers) -> Self {
        Self { answers, ..self }
    }
}

/// Every address of the API, in reading order.
pub const OPERATIONS: &[Operation] = &[
    reading("/health", "health", "Tells that the server answers, and whether something keeps it from its work.", shape::<Health>, || {
        get(handle::instance::health)
    })
    .narrowed(),
    reading("/openapi.json", "openapi", "This interface as an OpenAPI 3.1 document.", shape::<Health>, || {
        get(openapi::serve)
    })
    .answering(Answers::Document)
    .narrowed(),
    reading("/instance", "instance", "Shows what concerns more than one run.", shape::<InstanceView>, || {
        get(handle::instance::instance)
    }),
    reading("/projects", "list_projects", "Lists the projects.", shape::<ProjectList>, || {
        get(handle::instance::projects)
    })
    .by(&["project list"]),
    changing("/projects", "add_project", "Adds a project.", shape::<AddProject>, Answers::Created(shape::<AcceptedView>), || {
        post(handle::instance::add_project)
    })
    .needs(Rank::Admin)
    .by(&["project add"])
    .on(&["/projects/add"]),
    reading("/repos", "list_repos", "Lists the repositories.", shape::<RepoList>, || get(handle::instance::repos))
        .by(&["repo list"]),
    changing("/repos", "register_repo", "Registers a repository, or changes its registration.", shape::<RegisterRepo>, Answers::Created(shape::<RepoView>), || {
        post(handle::instance::register_repo)
    })
    .needs(Rank::Admin)
    .by(&["repo add"])
    .on(&["/repos/add"]),
    reading("/egress", "list_egress", "Lists what sandboxes may reach.", shape::<GrantList>, || get(handle::instance::grants))
        .by(&["egress list"]),
    changing("/egress", "allow_egress", "Lets the sandboxes of a project reach a host.", shape::<GrantEgress>, Answers::Created(shape::<AcceptedView>), || {
        post(handle::instance::allow_egress)
    })
    .needs(Rank::Admin)
    .by(&["egress allow"])
    .on(&["/runs/{id}/allow"]),
    changing("/egress/revoke", "revoke_egress", "Takes that back.", shape::<GrantEgress>, Answers::Ok(shape::<AcceptedView>), || {
        post(handle::instance::revoke_egress)
    })
    .needs(Rank::Admin)
    .by(&["egress revoke"]),
    reading("/policies", "list_policies", "Lists the stored policies.", shape::<PolicyList>, || get(handle::policy::list))
        .by(&["policy list"]),
    changing("/policies", "set_policy", "Stores a new version of the policies of a project or a repository.", shape::<SetPolicy>, Answers::Created(shape::<AcceptedView>), || {
        post(handle::policy::set)
    })
    .needs(Rank::Admin)
    .by(&["policy set"])
    .on(&["/policies/set"]),
    reading("/policies/texts", "policy_texts", "Shows texts of policies, in the order of their layers.", shape::<PolicyTexts>, || {
        get(handle::policy::texts)
    })
    .asked(shape::<PolicyPlace>)
    .by(&["policy show"]),
    reading("/policies/versions", "policy_versions", "Lists every version of the policies of a project or a repository, newest first.", shape::<VersionList>, || {
        get(handle::policy::versions)
    })
    .asked(shape::<PolicyPlace>)
    .by(&["policy history"]),
    asking("/policies/validate", "validate_policy", "Says what is wrong with a text, at which line and column; stores nothing.", shape::<SetPolicy>, shape::<FlawList>, || {
        post(handle::policy::validate)
    })
    .by(&["policy validate"])
    .on(&["/policies/set"]),
    asking("/policies/check", "check_policy", "Answers for a request that nobody makes; changes nothing.", shape::<PolicyQuestion>, shape::<RulingView>, || {
        post(handle::policy::check)
    })
    .by(&["policy check", "policy explain"]),
    asking("/policies/test", "test_policy", "Checks expected decisions; changes nothing.", shape::<PolicyExpectations>, shape::<ExpectedView>, || {
        post(handle::policy::expect)
    })
    .by(&["policy test"]),
    changing("/kill-switch", "turn_kill_switch", "Stops all agent execution, or lets it go on.", shape::<KillSwitch>, Answers::Ok(shape::<AcceptedView>), || {
        post(handle::instance::kill_switch)
    })
    .by(&["kill-switch"])
    .on(&["/stop"]),
    reading("/approvals", "list_approvals", "Lists what waits for a person, oldest first, with what exactly is asked.", shape::<Approvals>, || {
        get(handle::run::approvals)
    })
    .narrowed()
    .by(&["approvals"]),
    reading("/bulk/plans", "list_plan_risks", "Lists the plans that wait for approval, with why each is not of low risk.", shape::<PlanRisks>, || {
        get(handle::bulk::plans)
    })
    .by(&["bulk plans"]),
    changing("/bulk/approve", "approve_several", "Approves plans of low risk, each by the digest of what was looked at.", shape::<ApproveSeveral>, Answers::Ok(shape::<BulkView>), || {
        post(handle::bulk::approve)
    })
    .by(&["bulk approve"])
    .on(&["/bulk/approve"]),
    changing("/bulk/reprioritize", "reprioritize_several", "Moves several runs in the queue.", shape::<Reprioritize>, Answers::Ok(shape::<BulkView>), || {
        post(handle::bulk::reprioritize)
    })
    .by(&["bulk reprioritize"])
    .on(&["/bulk/reprioritize"]),
    changing("/bulk/cancel", "cancel_all", "Cancels every open run of a project.", shape::<CancelAll>, Answers::Ok(shape::<BulkView>), || {
        post(handle::bulk::cancel)
    })
    .by(&["bulk cancel"])
    .on(&["/bulk/cancel"]),
    reading("/runs", "list_runs", "Lists runs, newest first.", shape::<RunList>, || get(handle::run::list))
        .asked(shape::<ListQuery>)
        .narrowed()
        .by(&["run list"]),
    changing("/runs", "start_run", "Starts a run from an issue.", shape::<StartRun>, Answers::Created(shape::<Started>), || {
        post(handle::run::start)
    })
    .narrowed()
    .by(&["run start"])
    .on(&["/start"]),
    reading("/runs/{id}", "show_run", "Shows a run with everything that a person needs to judge it.", shape::<RunDetail>, || {
        get(handle::run::show)
    })
    .by(&["run show", "policy overrides"]),
    changing("/runs/{id}/actions", "act_on_run", "Asks something of a run: approve, revise, reject, answer, pause, resume, retry, cancel, fail, reprioritize.", shape::<ActionRequest>, Answers::Ok(shape::<AcceptedView>), || {
        post(handle::run::act)
    })
    .by(&[
        "run approve",
        "run revise",
        "run reject",
        "run answer",
        "run pause",
        "run resume",
        "run retry",
        "run cancel",
        "run fail",
        "run reprioritize",
    ])
    .on(&["/runs/{id}/act"]),
    changing("/runs/{id}/overrides", "grant_override", "Lifts one policy's no to one call of a run's agents for a while, with a justification.", shape::<GrantOverride>, Answers::Created(shape::<AcceptedView>), || {
        post(handle::overrides::grant)
    })
    // Whoever may write policies may lift one.
    .needs(Rank::Admin)
    .by(&["policy override"])
    .on(&["/runs/{id}/override"]),
    changing("/runs/{id}/overrides/revoke", "revoke_override", "Takes an override back.", shape::<RevokeOverride>, Answers::Ok(shape::<AcceptedView>), || {
        post(handle::overrides::revoke)
    })
    .by(&["policy revoke"])
    .on(&["/runs/{id}/override/revoke"]),
    reading("/runs/{id}/events", "list_events", "Lists the records of a run, in order.", shape::<EventList>, || {
        get(handle::run::events)
    })
    .asked(shape::<EventsQuery>)
    .by(&["run show"]),
    reading("/runs/{id}/effects", "list_effects", "Lists what a run asked of the world.", shape::<EffectList>, || {
        get(handle::run::effects)
    }),
    reading("/runs/{id}/writes", "list_writes", "Lists the writes of a run at the forge.", shape::<WriteList>, || {
        get(handle::run::writes)
    })
    .by(&["run writes"]),
    reading("/runs/{id}/calls", "list_calls", "Lists the calls of tools that a run's agents made, newest first, with what policy decided.", shape::<CallList>, || {
        get(handle::work::calls)
    })
    .asked(shape::<CallsQuery>)
    .by(&["run calls"]),
    reading("/runs/{id}/change", "show_change", "Shows what the newest commit of a run changes, by files.", shape::<ChangeView>, || {
        get(handle::work::change)
    })
    .asked(shape::<ChangeQuery>)
    .by(&["run diff"]),
    reading("/runs/{id}/stream", "follow_run", "Follows a run live: `record`, `state` and `talk` events; `Last-Event-ID` resumes.", shape::<EventList>, || {
        get(stream::follow)
    })
    .asked(shape::<FollowQuery>)
    .answering(Answers::Stream)
    .by(&["run watch"]),
    reading("/runs/{id}/replay", "replay_run", "Recomputes every decision of a run and compares.", shape::<ReplayView>, || {
        get(handle::audit::replay)
    })
    .by(&["run replay"]),
    reading("/artifacts/{digest}", "artifact", "Hands kept bytes out, as an attachment.", shape::<Health>, || {
        get(handle::audit::artifact)
    })
    .answering(Answers::Bytes),
    reading("/audit", "verify_audit", "Checks the chains of all records.", shape::<AuditView>, || get(handle::audit::verify))
        .by(&["audit verify"]),
    reading("/audit/records", "search_records", "Finds records of all streams by their words and what stands beside them, newest first; those about who works here for admins alone.", shape::<RecordList>, || {
        get(handle::audit::records)
    })
    .asked(shape::<RecordQuery>)
    .by(&["audit search"]),
    reading("/audit/export/{format}", "export_records", "Hands everything that is found out as a file: `csv`, or `json` with the links of the chain.", shape::<RecordView>, || {
        get(handle::audit::export)
    })
    .asked(shape::<RecordQuery>)
    .answering(Answers::File(shape::<RecordView>))
    .by(&["audit export"]),
    reading("/metrics", "metrics", "Counts the runs of some days: how many, how long, how often they tried, how long people let them wait.", shape::<MetricsView>, || {
        get(handle::audit::metrics)
    })
    .asked(shape::<MetricsQuery>)
    .by(&["metrics"]),
    changing("/links", "make_link", "Makes a link that signs one browser in, once.", shape::<Nothing>, Answers::Created(shape::<LinkView>), || {
        post(page::enter::link)
    })
    .needs(Rank::Admin)
    .by(&["open"]),
    changing("/sign-out", "sign_out", "Ends all links and sessions of an operator; your own when nobody is named.", shape::<SignOut>, Answers::Ok(shape::<AcceptedView>), || {
        post(handle::staff::end_sessions)
    })
    // A token that leaked must not keep its operator outside; people sign themselves out on the page.
    .needs(Rank::Admin)
    .by(&["operator sign-out"])
    .on(&["/sign-out", "/operators/change"]),
    reading("/operators", "list_operators", "Lists who works here from afar.", shape::<OperatorList>, || {
        get(handle::staff::operators)
    })
    .by(&["operator list"]),
    changing("/operators", "add_operator", "Adds an operator.", shape::<AddOperator>, Answers::Created(shape::<AcceptedView>), || {
        post(handle::staff::add_operator)
    })
    .secretly()
    .needs(Rank::Admin)
    .by(&["operator add"])
    .on(&["/operators/add"]),
    changing("/operators/{name}/rank", "change_rank", "Changes what an operator may do.", shape::<ChangeRank>, Answers::Ok(shape::<AcceptedView>), || {
        post(handle::staff::change_rank)
    })
    .needs(Rank::Admin)
    .by(&["operator rank"])
    .on(&["/operators/change"]),
    changing("/operators/{name}/password", "set_password", "Sets an operator's password and ends their sessions.", shape::<SetPassword>, Answers::Ok(shape::<AcceptedView>), || {
        post(handle::staff::set_password)
    })
    .secretly()
    .needs(Rank::Admin)
    .by(&["operator password"])
    .on(&["/password"]),
    changing("/operators/{name}/remove", "remove_operator", "Removes an operator with tokens and sessions.", shape::<Nothing>, Answers::Ok(shape::<AcceptedView>), || {
        post(handle::staff::remove_operator)
    })
    .needs(Rank::Admin)
    .by(&["operator remove"])
    .on(&["/operators/change"]),
    reading("/tokens", "list_tokens", "Lists your tokens; everybody's for admins.", shape::<TokenList>, || {
        get(handle::staff::tokens)
    })
    .by(&["token list"]),
    changing("/tokens", "issue_token", "Issues a token for a program; its secret is shown this once.", shape::<IssueToken>, Answers::Created(shape::<IssuedToken>), || {
        post(handle::staff::issue_token)
    })
    // A token that leaked must not make others that outlive it; people issue their own on the page.
    .needs(Rank::Admin)
    .by(&["token issue"])
    .on(&["/tokens/issue"]),
    changing("/tokens/{id}/revoke", "revoke_token", "Makes a token worth nothing.", shape::<Nothing>, Answers::Ok(shape::<AcceptedView>), || {
        post(handle::staff::revoke_token)
    })
    .needs(Rank::Viewer)
    .by(&["token revoke"])
    .on(&["/tokens/revoke"]),
];

/// Tells whether what is sent to an address must stand nowhere.
pub(crate) fn is_secret(address: &str) -> bool {
    let secret = OPERATIONS.iter().filter(|operation| operation.is_secret);
    secret
        .into_iter()
        .any(|operation| address.ends_with(operation.path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::FORMS;

    /// UI-4: every single action of the form beside a run has a command of its name; that the form offers none besides, the
    /// compiler sees.
    #[test]
    fn every_action_of_a_run_has_its_command() {
        let of_runs = OPERATIONS
            .iter()
            .find(|operation| operation.forms.contains(&"/runs/{id}/act"));
        let commands = of_runs.expect("it acts").commands;
        let schema = schemars::schema_for!(crate::api::ActionRequest).to_value();
        let actions = schema["oneOf"].as_array().expect("one form for each");
        assert_eq!(actions.len(), 10);
        for action in actions {
            let word = action["properties"]["action"]["const"]
                .as_str()
                .expect("its name");
            let command = format!("run {word}");
            assert!(commands.contains(&command.as_str()), "there is no `{command}`");
        }
    }

    /// UI-4: what a form does, the API does; leaving is the browser's own.
    #[test]
    fn every_form_has_its_operation() {
        for (form, _, _) in FORMS.iter().filter(|(form, _, _)| *form != "/leave") {
            assert!(
                OPERATIONS.iter().any(|operation| operation.forms.contains(form)),
                "the API cannot do what the form {form} does"
            );
        }
        for named in OPERATIONS.iter().flat_map(|operation| operation.forms) {
            assert!(
                FORMS.iter().any(|(form, _, _)| form == named),
                "there is no form {named}"
            );
        }
    }
}
