//! Policies over real files and real git: no name gets past the policy about what it means, and no tool but `bash` runs a
//! command of the agent's (SEC-1, TOOL-2).

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use conductor_domain::id::{EffectId, RunId};
use conductor_domain::policy::PolicyLayer;
use conductor_domain::role::Role;
use conductor_domain::time::Millis;
use conductor_engine::redact::KnownForms;
use conductor_engine::{Alone, Without};
use conductor_executor::{Consent, Reason, Toolchain, UnsafePlain};
use conductor_policy::authority::Authority;
use conductor_port::agent::{ToolAnswer, ToolRequest, Tools as _};
use conductor_port::executor::{Executor as _, Pattern, Profile, SandboxSpec};
use conductor_store::Memory;
use conductor_testkit::clock::VirtualClock;

const NO_COMMANDS: &str = "@id(\"no-commands\") @reason(\"nobody runs commands\")\n\
                           forbid (principal is Agent, action == Action::\"bash\", resource is Worktree);\n";

const NO_SECRETS: &str = "@id(\"no-secrets\") @reason(\"nobody looks\")\n\
                          forbid (principal is Agent, action == Action::\"view\", resource is Worktree)\n\
                          when { resource.path == \"secrets\" || resource.path like \"secrets/*\" };\n";

/// A repository, and beside it a program that leaves a trace where it is run.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Result<Self> {
        let place = Self(tempfile::tempdir()?);
        std::fs::create_dir(place.work())?;
        let program = format!("#!/bin/sh\necho \"$0 $*\" >>'{}'\ncat\n", place.trace().display());
        std::fs::write(place.program(), program)?;
        std::fs::set_permissions(place.program(), std::fs::Permissions::from_mode(0o755))?;
        place.git(&["init", "--quiet"])?;
        place.git(&["config", "user.name", "Agent"])?;
        place.git(&["config", "user.email", "agent@localhost"])?;
        place.write("README.md", "hello\n")?;
        place.write("secrets/key", "hunter2\n")?;
        place.git(&["add", "--all"])?;
        place.git(&["commit", "--quiet", "--message", "base"])?;
        Ok(place)
    }

    fn work(&self) -> PathBuf {
        self.0.path().join("work")
    }

    fn program(&self) -> PathBuf {
        self.0.path().join("program")
    }

    fn trace(&self) -> PathBuf {
        self.0.path().join("trace")
    }

    fn write(&self, name: &str, content: &str) -> Result<()> {
        let path = self.work().join(name);
        std::fs::create_dir_all(path.parent().context("a file has a directory")?)?;
        Ok(std::fs::write(path, content)?)
    }

    fn git(&self, arguments: &[&str]) -> Result<()> {
        git(&self.work(), arguments)
    }

    /// Serves the worktree's tools to an implementer who is held to a policy.
    async fn tools(&self, policy: &str) -> Result<Alone> {
        let consent = Consent::to_run_commands_without_a_sandbox(Reason::Test);
        let homes = self.0.path().join("homes");
        let executor = UnsafePlain::for_demo_and_tests(consent, homes, Toolchain::system());
        let (effect, run) = (EffectId::parse("r1.1.0")?, RunId::parse("r1")?);
        let spec = SandboxSpec::new(effect.clone(), run.clone(), Profile::Tool, self.work());
        let authority = Authority::new(&[(PolicyLayer::Run, policy)]);
        let with = Without {
            sandbox: executor.open(spec).await?,
            authority: Arc::new(authority.map_err(|flaws| anyhow::anyhow!("{flaws:?}"))?),
            redactor: Arc::new(KnownForms::default()),
            tool_log: Arc::new(Memory::new()),
            clock: Arc::new(VirtualClock::start()),
            role: Role::Implementer,
            time: Millis::seconds(60),
        };
        Ok(Alone::open(with, &effect, &run).await?)
    }
}

fn git(dir: &Path, arguments: &[&str]) -> Result<()> {
    let status = Command::new("git")
        .current_dir(dir)
        .args(arguments)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .status()?;
    ensure!(status.success(), "git {arguments:?}: {status}");
    Ok(())
}

fn view(path: &str) -> ToolRequest {
    ToolRequest::View {
        path: path.to_owned(),
    }
}

fn create(path: &str, content: &str) -> ToolRequest {
    ToolRequest::CreateFile {
        path: path.to_owned(),
        content: content.into(),
    }
}

fn replace(path: &str, old: &str, new: &str) -> ToolRequest {
    ToolRequest::StrReplace {
        path: path.to_owned(),
        old: old.to_owned(),
        new: new.to_owned(),
    }
}

fn list(path: &str) -> ToolRequest {
    ToolRequest::ListFiles {
        path: path.to_owned(),
    }
}

fn search(path: &str, text: &str) -> ToolRequest {
    ToolRequest::SearchFiles {
        path: path.to_owned(),
        pattern: Pattern::Literal(text.to_owned()),
    }
}

/// Every tool that is git to an agent.
fn gits() -> [ToolRequest; 3] {
    let message = "work".to_owned();
    [
        ToolRequest::GitStatus,
        ToolRequest::GitDiff,
        ToolRequest::GitCommit { message },
    ]
}

async fn said(tools: &Alone, request: ToolRequest) -> Result<String> {
    Ok(match tools.call(request).await? {
        ToolAnswer::Done { output } => String::from_utf8_lossy(&output).into_owned(),
        ToolAnswer::Refused { reason } => format!("refused: {reason}"),
        ToolAnswer::Stop => "stop".to_owned(),
    })
}

async fn refused_as_link(tools: &Alone, request: ToolRequest) -> Result<()> {
    let said = said(tools, request.clone()).await?;
    ensure!(
        said.starts_with("refused: ") && said.contains("symbolic link") && said.contains("the real path"),
        "{request:?}: {said}"
    );
    Ok(())
}

/// A base that links to its own git directory makes no agent a writer there, and so none a runner of commands.
#[tokio::test]
async fn a_link_to_git_leads_past_no_policy() -> Result<()> {
    let place = Place::new()?;
    symlink(".git", place.work().join("x"))?;
    symlink("../.git/hooks", place.work().join("secrets/y"))?;
    let tools = place.tools(NO_COMMANDS).await?;
    let external = format!("[diff]\n\texternal = {}\n[core]", place.program().display());
    refused_as_link(&tools, replace("x/config", "[core]", &external)).await?;
    refused_as_link(&tools, create("x/hooks/pre-commit", "#!/bin/sh\n")).await?;
    refused_as_link(&tools, create("secrets/y/pre-commit", "#!/bin/sh\n")).await?;
    refused_as_link(&tools, view("x/config")).await?;
    refused_as_link(&tools, list("x")).await?;
    refused_as_link(&tools, search("x", "core")).await?;
    let direct = said(&tools, replace(".git/config", "[core]", &external)).await?;
    assert!(direct.contains("git-directory"), "{direct}");
    said(&tools, replace("README.md", "hello", "bye")).await?;
    let diff = said(&tools, ToolRequest::GitDiff).await?;
    assert!(diff.contains("+bye") && !place.trace().exists(), "{diff}");
    Ok(())
}

/// A base that links to what a policy hides shows no more of it.
#[tokio::test]
async fn a_link_to_what_is_hidden_shows_nothing_of_it() -> Result<()> {
    let place = Place::new()?;
    std::fs::create_dir(place.work().join("docs"))?;
    symlink("../secrets", place.work().join("docs/s"))?;
    symlink("secrets/key", place.work().join("k"))?;
    let tools = place.tools(NO_SECRETS).await?;
    for request in [
        view("docs/s/key"),
        view("k"),
        list("docs/s"),
        search("docs/s", "hunter"),
        replace("docs/s/key", "hunter3", "x"),
        create("docs/s/new", "x"),
    ] {
        refused_as_link(&tools, request).await?;
    }
    let direct = said(&tools, view("secrets/key")).await?;
    assert!(direct.contains("no-secrets"), "{direct}");
    let listed = said(&tools, list("")).await?;
    assert!(
        listed.contains("docs/s (link)\n")
            && listed.contains("k (link)\n")
            && !listed.contains("secrets/key"),
        "{listed}"
    );
    let found = said(&tools, search("", "hunter")).await?;
    assert!(!found.contains("hunter2"), "{found}");
    Ok(())
}

/// Nor does git's own list of what changed name it, wherever it came from.
#[tokio::test]
async fn a_status_names_nothing_that_is_hidden() -> Result<()> {
    let place = Place::new()?;
    place.git(&["mv", "README.md", "secrets/moved"])?;
    place.write("secrets/key", "hunter3\n")?;
    place.write("secrets/\u{e4} \"new", "x")?;
    place.write("a b", "x")?;
    let status = said(&place.tools(NO_SECRETS).await?, ToolRequest::GitStatus).await?;
    assert!(
        status.contains("D  README.md\n?? \"a b\"\n\n[3 could not be looked at]\n[exited 0]\n"),
        "{status}"
    );
    let status = said(&place.tools(NO_COMMANDS).await?, ToolRequest::GitStatus).await?;
    assert!(
        status.contains(" M secrets/key\n") && status.contains("A  secrets/moved\n"),
        "{status}"
    );
    Ok(())
}

/// Whatever git's configuration names, be it that of a repository that was here before: who may not run commands has git
/// run none.
#[tokio::test]
async fn git_starts_no_program_for_whoever_may_run_none() -> Result<()> {
    type Trap = fn(&Place, &str) -> Result<()>;
    let traps: [(&str, Trap); 11] = [
        ("nothing", |_place, _program| Ok(())),
        ("an external diff", |place, program| {
            place.git(&["config", "diff.external", program])
        }),
        ("a driver's command", |place, program| {
            place.write(".gitattributes", "* diff=trap\n")?;
            place.git(&["config", "diff.trap.command", program])
        }),
        ("a driver's conversion", |place, program| {
            place.write(".gitattributes", "* diff=trap\n")?;
            place.git(&["config", "diff.trap.textconv", program])
        }),
        ("a monitor", |place, program| {
            place.git(&["config", "core.fsmonitor", program])
        }),
        ("a signing program", |place, program| {
            place.git(&["config", "gpg.program", program])?;
            place.git(&["config", "log.showSignature", "true"])?;
            place.git(&["config", "commit.gpgSign", "true"])
        }),
        ("hooks in the tree", |place, program| {
            std::fs::create_dir(place.work().join("hooks"))?;
            for hook in [
                "pre-commit",
                "post-index-change",
                "reference-transaction",
                "commit-msg",
            ] {
                symlink(program, place.work().join("hooks").join(hook))?;
            }
            place.git(&["config", "core.hooksPath", "hooks"])
        }),
        ("a filter", |place, program| {
            place.write(".gitattributes", "* filter=Tr.ap\n")?;
            place.git(&["config", "filter.Tr.ap.clean", program])
        }),
        ("a filter that goes on", |place, program| {
            place.write(".gitattributes", "* filter=trap\n")?;
            place.git(&["config", "filter.trap.process", program])
        }),
        ("a configuration in the tree", |place, program| {
            place.write(".gitattributes", "* filter=trap\n")?;
            place.write("config", &format!("[filter \"trap\"]\n\tclean = {program}\n"))?;
            place.git(&["config", "include.path", "../config"])
        }),
        ("a submodule", |place, program| {
            let inner = place.work().join("in\n ner");
            std::fs::create_dir(&inner)?;
            git(&inner, &["init", "--quiet"])?;
            for (name, value) in [("user.name", "A"), ("user.email", "a@localhost")] {
                git(&inner, &["config", name, value])?;
            }
            std::fs::write(inner.join("file"), "a\n")?;
            std::fs::write(inner.join(".gitattributes"), "* filter=trap\n")?;
            git(&inner, &["add", "--all"])?;
            git(&inner, &["commit", "--quiet", "--message", "inner"])?;
            place.git(&["-c", "advice.addEmbeddedRepo=false", "add", "--all"])?;
            place.git(&["commit", "--quiet", "--message", "outer"])?;
            git(&inner, &["config", "filter.trap.clean", program])?;
            git(&inner, &["config", "core.fsmonitor", program])?;
            Ok(std::fs::write(inner.join("file"), "b\n")?)
        }),
    ];
    for (name, arm) in traps {
        let place = Place::new()?;
        arm(&place, &place.program().display().to_string())?;
        let tools = place.tools(NO_COMMANDS).await?;
        said(&tools, replace("README.md", "hello", "bye")).await?;
        said(&tools, create("new", "new\n")).await?;
        let mut heard = vec![];
        for request in gits() {
            heard.push(said(&tools, request).await?);
        }
        let trace = std::fs::read_to_string(place.trace()).unwrap_or_default();
        assert!(trace.is_empty(), "{name}: {trace}{heard:?}");
        let is_refused = heard
            .iter()
            .all(|heard| heard.contains("names programs or further files"));
        let is_done = heard[0].contains(" M README.md")
            && heard[1].contains("+bye")
            && heard[1].contains("+new")
            && heard[2].contains(" work\n");
        assert!(is_refused || is_done, "{name}: {heard:?}");
    }
    Ok(())
}
