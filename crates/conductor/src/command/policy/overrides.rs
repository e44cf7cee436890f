//! `conductor policy override|overrides|revoke`: what lifts one policy's no to one call of one run, for a while.
//!
//! It does not know which policies can be lifted.

use conductor_domain::id::RunId;
use conductor_domain::role::Role;
use conductor_web::api::{AcceptedView, GrantOverride, OverrideView, RevokeOverride};
use conductor_web::visible;
use conductor_web::words::time;

use crate::exit::Failure;
use crate::session::Session;
use crate::show::table::Table;

/// An override.
#[derive(Debug, clap::Args)]
pub(crate) struct OverrideArgs {
    /// The run's id, as in `conductor run list`
    run: RunId,
    /// The policy that says no, as the refusal names it
    #[arg(long, value_name = "ID")]
    policy: String,
    /// Whose calls: planner, implementer, reviewer or tester
    #[arg(value_parser = role)]
    role: Role,
    /// The tool: bash, create_file and so on
    tool: String,
    /// To what: worktree[:PATH], command:TEXT, own-issue, other-issue and so on
    target: String,
    /// Why, in 10 characters or more; it is kept and shown
    #[arg(long, short = 'm', value_name = "TEXT")]
    because: String,
    /// For how many minutes, at most 1440
    #[arg(long = "for", value_name = "MINUTES", default_value_t = 30)]
    minutes: u32,
}

/// A run by its id.
#[derive(Debug, clap::Args)]
pub(crate) struct NamedRun {
    /// The run's id, as in `conductor run list`
    run: RunId,
}

/// An override of a run.
#[derive(Debug, clap::Args)]
pub(crate) struct RevokeArgs {
    /// The run's id, as in `conductor run list`
    run: RunId,
    /// The override's number, as in `conductor policy overrides`
    number: u32,
}

fn role(text: &str) -> Result<Role, String> {
    let known = |role: &Role| role.to_string().eq_ignore_ascii_case(text);
    let role = Role::ALL.into_iter().find(known);
    role.ok_or_else(|| "write planner, implementer, reviewer or tester".to_owned())
}

/// Grants an override.
pub(super) async fn grant(session: &Session, args: OverrideArgs) -> Result<(), Failure> {
    let wish = GrantOverride {
        policy: args.policy,
        role: args.role,
        tool: args.tool,
        target: args.target,
        justification: args.because,
        minutes: args.minutes,
    };
    let client = session.client().await?;
    let path = format!("/runs/{}/overrides", args.run);
    let accepted: AcceptedView = client.post(&path, &wish).await?;
    session.out.talk(&format!(
        "✔ run {}: {} does not stand in the way of this call for {} minutes",
        args.run, wish.policy, wish.minutes
    ));
    session.out.data(&accepted, |_| String::new())
}

/// Lists the overrides of a run.
pub(super) async fn list(session: &Session, named: &NamedRun) -> Result<(), Failure> {
    let granted = session.source().await?.run(&named.run).await?.overrides;
    session.out.data(&granted, |granted| {
        let mut table = Table::new(["NUMBER", "POLICY", "CALL", "UNTIL", "BY", "WHY", "TAKEN BACK"]);
        for one in granted {
            table.row(row(one));
        }
        table.render("this run was granted none")
    })
}

fn row(one: &OverrideView) -> [String; 7] {
    let role = one.role.to_string().to_lowercase();
    let revoked = one.revoked_by.as_ref();
    [
        one.number.to_string(),
        visible::line(&one.policy),
        visible::line(&format!("{role} {} {}", one.tool, one.target)),
        time::exact(one.until),
        one.by.to_string(),
        visible::line(&one.justification),
        revoked.map(|by| format!("by {by}")).unwrap_or_default(),
    ]
}

/// Takes an override back.
pub(super) async fn revoke(session: &Session, args: &RevokeArgs) -> Result<(), Failure> {
    let client = session.client().await?;
    let path = format!("/runs/{}/overrides/revoke", args.run);
    let number = args.number;
    let accepted: AcceptedView = client.post(&path, &RevokeOverride { number }).await?;
    session
        .out
        .talk(&format!("✔ run {}: override {number} is taken back", args.run));
    session.out.data(&accepted, |_| String::new())
}
