//! `conductor policy`: stored policies, and questions to them.
//!
//! A version is never changed, and a run keeps those it started with. It does not know what a policy says.

mod overrides;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use conductor_domain::id::RunId;
use conductor_domain::policy::PolicyLayer;
use conductor_policy::authority::LOW_TRUST;
use conductor_web::api::{
    AcceptedView, ExpectedView, FlawList, PolicyPlace, PolicyTexts, RulingView, SetPolicy,
};
use conductor_web::visible;

use crate::exit::{Exit, Failure};
use crate::session::Session;
use crate::show::table::Table;
use crate::show::words::count;

/// Says who may do what: stored policies, and questions to them
#[derive(Debug, clap::Subcommand)]
pub(crate) enum PolicyCommand {
    /// Lists the stored policies
    List,
    /// Prints policies; Conductor's own where nothing is named
    Show(ShowArgs),
    /// Lists every version of the policies of a project or a repository
    History(Whose),
    /// Says what is wrong with a file, at which line and column; stores nothing
    Validate(SetArgs),
    /// Stores a new version; runs that start from now on are held to it
    Set(SetArgs),
    /// Answers whether somebody may do something, with the reason and the policy that decided
    Check(QuestionArgs),
    /// Answers like `check`, with every policy that decided it
    Explain(QuestionArgs),
    /// Checks a file of expected decisions: `implementer bash worktree -> allow`, one a line
    Test(TestArgs),
    /// Lifts one policy's no to one call of a run's agents, for a while
    Override(overrides::OverrideArgs),
    /// Lists the overrides of a run
    Overrides(overrides::NamedRun),
    /// Takes an override back
    Revoke(overrides::RevokeArgs),
}

/// Whose policies.
#[derive(Debug, clap::Args)]
pub(crate) struct Of {
    /// Those of a project
    #[arg(long, value_name = "NAME", conflicts_with_all = ["repo", "run"])]
    project: Option<String>,
    /// Those of a repository, over its project's
    #[arg(long, value_name = "OWNER/NAME", conflicts_with = "run")]
    repo: Option<String>,
    /// Those that a run locked when it started
    #[arg(long, value_name = "RUN", value_parser = run_id)]
    run: Option<RunId>,
}

fn run_id(text: &str) -> Result<RunId, String> {
    RunId::parse(text.to_owned()).map_err(|error| error.to_string())
}

impl Whose {
    fn place(self) -> PolicyPlace {
        PolicyPlace {
            project: self.project,
            repo: self.repo,
            run: None,
            version: None,
        }
    }
}

impl Of {
    fn place(self) -> PolicyPlace {
        PolicyPlace {
            project: self.project,
            repo: self.repo,
            run: self.run,
            version: None,
        }
    }
}

/// Which text.
#[derive(Debug, clap::Args)]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    of: Of,
    /// An earlier version than the newest
    #[arg(long, value_name = "N", conflicts_with = "run", requires = "Of")]
    version: Option<u32>,
}

/// A new version.
#[derive(Debug, clap::Args)]
pub(crate) struct SetArgs {
    /// The file with the policies; an empty one takes all of them back
    #[arg(required_unless_present = "preset")]
    file: Option<PathBuf>,
    /// Policies that Conductor brings along, instead of a file: low-trust, for repositories that strangers write in
    #[arg(long, value_name = "NAME", conflicts_with = "file")]
    preset: Option<Preset>,
    #[command(flatten)]
    whose: Whose,
}

/// Whose stored policies.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
pub(crate) struct Whose {
    /// Those for all repositories of a project
    #[arg(long, value_name = "NAME")]
    project: Option<String>,
    /// Those for one repository
    #[arg(long, value_name = "OWNER/NAME")]
    repo: Option<String>,
}

/// Policies that Conductor brings along.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub(crate) enum Preset {
    /// Only the words of owners are trusted, and every command of an agent is approved by a person.
    LowTrust,
}

/// A question.
#[derive(Debug, clap::Args)]
pub(crate) struct QuestionArgs {
    /// Who: a role, conductor, operator:LEVEL, person:LOGIN:STANDING
    actor: String,
    /// What for: bash, create_file, github_comment_issue, merge, start_run and so on
    action: String,
    /// To what: worktree[:PATH], command:TEXT, own-issue, other-issue, repository:OWNER/NAME and so on
    target: String,
    #[command(flatten)]
    of: Of,
}

/// Expectations.
#[derive(Debug, clap::Args)]
pub(crate) struct TestArgs {
    /// The file
    file: PathBuf,
    #[command(flatten)]
    of: Of,
}

/// Runs the command.
pub(crate) async fn policy(session: &Session, command: PolicyCommand) -> Result<Exit, Failure> {
    match command {
        PolicyCommand::List => list(session).await?,
        PolicyCommand::Show(args) => {
            let place = PolicyPlace {
                version: args.version,
                ..args.of.place()
            };
            let texts = session.source().await?.policy_texts(&place).await?;
            session.out.data(&texts, shown)?;
        }
        PolicyCommand::History(whose) => history(session, whose.place()).await?,
        PolicyCommand::Validate(args) => return validate(session, args).await,
        PolicyCommand::Set(args) => set(session, args).await?,
        PolicyCommand::Check(args) => {
            let ruling = ask(session, args).await?;
            session.out.data(&ruling, ruled)?;
        }
        PolicyCommand::Explain(args) => {
            let ruling = ask(session, args).await?;
            session.out.data(&ruling, explained)?;
        }
        PolicyCommand::Test(args) => return test(session, args).await,
        PolicyCommand::Override(args) => overrides::grant(session, args).await?,
        PolicyCommand::Overrides(named) => overrides::list(session, &named).await?,
        PolicyCommand::Revoke(args) => overrides::revoke(session, &args).await?,
    }
    Ok(Exit::Ok)
}

/// Reads a text that an operator wrote.
pub(crate) fn read_text(path: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(path).map_err(|error| {
        let what = format!("reading {}: {error}", path.display());
        Failure::coded("CDR0430", what, "name a text file that you may read").exiting(Exit::Usage)
    })
}

async fn list(session: &Session) -> Result<(), Failure> {
    let list = session.source().await?.policies().await?;
    session.out.data(&list, |list| {
        let mut table = Table::new(["PROJECT", "REPOSITORY", "VERSION", "TEXT", "BY"]);
        for known in &list.policies {
            table.row([
                known.project.to_string(),
                known.repo.clone().unwrap_or_else(|| "all".to_owned()),
                known.version.to_string(),
                known.text.short().to_owned(),
                known.by.to_string(),
            ]);
        }
        table.render("none are stored; Conductor's own count (`conductor policy show`)")
    })
}

/// The text that was named: a file's, or a preset's.
fn text_of(args: &SetArgs) -> Result<String, Failure> {
    Ok(match (&args.preset, &args.file) {
        (Some(Preset::LowTrust), _) => LOW_TRUST.to_owned(),
        (None, Some(file)) => read_text(file)?,
        (None, None) => {
            return Err(
                Failure::coded("CDR0430", "no policies were named", "name a file or a preset")
                    .exiting(Exit::Usage),
            );
        }
    })
}

async fn set(session: &Session, args: SetArgs) -> Result<(), Failure> {
    let text = text_of(&args)?;
    let wish = SetPolicy {
        project: args.whose.project,
        repo: args.whose.repo,
        text,
    };
    let client = session.client().await?;
    let accepted: AcceptedView = client.post("/policies", &wish).await?;
    let whose = wish.repo.or(wish.project).unwrap_or_default();
    session.out.talk(&if accepted.duplicate {
        format!("✔ these are the policies of {whose} already")
    } else {
        format!(
            "✔ runs of {whose} that start from now on are held to these policies; runs under way keep theirs"
        )
    });
    session.out.data(&accepted, |_| String::new())
}

async fn history(session: &Session, place: PolicyPlace) -> Result<(), Failure> {
    let list = session.source().await?.policy_versions(&place).await?;
    session.out.data(&list, |list| {
        let mut table = Table::new(["VERSION", "TEXT", "BY"]);
        for known in &list.versions {
            table.row([
                known.version.to_string(),
                known.text.short().to_owned(),
                known.by.to_string(),
            ]);
        }
        table.render("nothing was ever stored here; what it inherits counts")
    })
}

async fn validate(session: &Session, args: SetArgs) -> Result<Exit, Failure> {
    let text = text_of(&args)?;
    let file = args.file.map(|file| file.display().to_string());
    let own = match args.whose.repo {
        Some(_) => PolicyLayer::Repository,
        None => PolicyLayer::Project,
    };
    let wish = SetPolicy {
        project: args.whose.project,
        repo: args.whose.repo,
        text,
    };
    let found: FlawList = session.client().await?.post("/policies/validate", &wish).await?;
    session.out.data(&found, |found| {
        let mut text = String::new();
        for flaw in &found.flaws {
            let what = visible::line(&flaw.message);
            // As compilers say it, so that an editor finds the place; other texts than the checked have no file.
            let place = match &file {
                Some(file) if flaw.layer == own => file.clone(),
                Some(_) | None => flaw.layer.to_string(),
            };
            let _string = writeln!(text, "{place}:{}:{}: {what}", flaw.line, flaw.column);
        }
        text
    })?;
    if found.flaws.is_empty() {
        session.out.talk("✔ nothing is wrong with it");
        return Ok(Exit::Ok);
    }
    Ok(Exit::Failed)
}

async fn ask(session: &Session, args: QuestionArgs) -> Result<RulingView, Failure> {
    let question = format!("{} {} {}", args.actor, args.action, args.target);
    let source = session.source().await?;
    source.judge(args.of.place(), question).await
}

async fn test(session: &Session, args: TestArgs) -> Result<Exit, Failure> {
    let text = read_text(&args.file)?;
    let seen = session.source().await?.expect(args.of.place(), text).await?;
    session.out.data(&seen, expected)?;
    Ok(if seen.mismatches.is_empty() {
        Exit::Ok
    } else {
        Exit::Failed
    })
}

fn shown(texts: &PolicyTexts) -> String {
    let mut shown = String::new();
    for text in &texts.texts {
        if texts.texts.len() > 1 {
            let _string = writeln!(shown, "// {} policies, version {}", text.layer, text.version);
        }
        shown.push_str(&visible::text(&text.text).text);
        if !shown.ends_with('\n') {
            shown.push('\n');
        }
    }
    shown
}

fn ruled(ruling: &RulingView) -> String {
    format!(
        "{} by {}: {}\n",
        ruling.decision,
        visible::line(&ruling.policy),
        visible::line(&ruling.reason)
    )
}

fn explained(ruling: &RulingView) -> String {
    let mut text = ruled(ruling);
    for rule in &ruling.rules {
        let _string = writeln!(
            text,
            "  {} {} ({}{}): {}",
            rule.decision,
            visible::line(&rule.id),
            rule.layer,
            if rule.is_final { ", final" } else { "" },
            visible::line(&rule.reason)
        );
    }
    if ruling.rules.is_empty() {
        text.push_str("  no policy speaks of it, and what no policy permits is denied\n");
    }
    let _string = writeln!(text, "  all texts together: {}", ruling.version);
    text
}

fn expected(seen: &ExpectedView) -> String {
    let mut text = String::new();
    for mismatch in &seen.mismatches {
        let _string = writeln!(
            text,
            "line {}: {}",
            mismatch.line,
            visible::line(&mismatch.message)
        );
    }
    let _string = writeln!(
        text,
        "{} held, {} did not",
        count(seen.held, "expectation"),
        seen.mismatches.len()
    );
    text
}
