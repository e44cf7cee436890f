//! The shipped policies as a truth table, and what operators can and cannot do to them.

use conductor_domain::id::OperatorName;
use conductor_domain::relief::{Relief, ReliefScope};
use conductor_domain::role::Role;
use conductor_domain::time::Timestamp;
use conductor_policy::authority::{
    Action, Actor, Authority, Change, LOW_TRUST, Layer, Level, Request, Ruling, SHIPPED, Standing, Target,
    Verdict, check, expect_all, read_question,
};

fn shipped() -> Authority {
    Authority::new(&[]).expect("the shipped policies are valid")
}

fn verdict(ruling: Ruling, reason: &str, policy: &str) -> Verdict {
    Verdict {
        ruling,
        reason: reason.into(),
        policy: policy.into(),
    }
}

fn targets() -> Vec<(String, Target)> {
    let mut targets = vec![
        ("worktree".to_owned(), Target::Worktree { path: String::new() }),
        (
            "source".to_owned(),
            Target::Worktree {
                path: "src/a.rs".into(),
            },
        ),
        (
            "git-dir".to_owned(),
            Target::Worktree {
                path: "sub/.GIT/config".into(),
            },
        ),
        (
            "workflow".to_owned(),
            Target::Worktree {
                path: ".GitHub/workflows/ci.yml".into(),
            },
        ),
        (
            "command".to_owned(),
            Target::Command {
                text: "rm -rf /tmp/x && cargo test".into(),
            },
        ),
        (
            "blocked command".to_owned(),
            Target::Command {
                text: "cargo test && sudo rm -rf /".into(),
            },
        ),
        (
            "dependency".to_owned(),
            Target::Dependency {
                repo: "acme/app".into(),
                ecosystem: "npm".into(),
                name: "left-pad".into(),
                version: "1.3.0".into(),
            },
        ),
        ("outcome".to_owned(), Target::Outcome),
        ("human".to_owned(), Target::Human),
        (
            "repository".to_owned(),
            Target::Repository {
                name: "acme/app".into(),
                change: Some(Change {
                    class: "documentation".into(),
                    confidence: 100,
                }),
            },
        ),
    ];
    for is_own in [true, false] {
        let whose = if is_own { "own" } else { "other" };
        targets.extend([
            (format!("{whose} issue"), Target::Issue { is_own }),
            (format!("{whose} pull request"), Target::PullRequest { is_own }),
            (format!("{whose} check"), Target::CheckRun { is_own }),
            (format!("{whose} fields"), Target::ProjectFields { is_own }),
        ]);
    }
    targets
}

/// A tool, the targets that a policy decides about, and that policy.
type Row = (&'static str, &'static [&'static str], &'static str);

const ANY_PATH: &[&str] = &["worktree", "source", "git-dir", "workflow"];

/// What every role may do; everything else of (role, tool, target) is denied.
const EVERYBODY: &[Row] = &[
    ("view", ANY_PATH, "agents-read-the-worktree"),
    ("list_files", ANY_PATH, "agents-read-the-worktree"),
    ("search_files", ANY_PATH, "agents-read-the-worktree"),
    ("git_status", ANY_PATH, "agents-read-the-worktree"),
    ("git_diff", ANY_PATH, "agents-read-the-worktree"),
    ("github_get_issue", &["own issue"], "agents-read-the-forge"),
    ("github_list_comments", &["own issue"], "agents-read-the-forge"),
    ("github_comment_issue", &["own issue"], "comment-on-the-issue"),
    (
        "github_get_pull_request",
        &["own pull request"],
        "agents-read-the-pull-request",
    ),
    (
        "github_comment_pull_request",
        &["own pull request"],
        "comment-on-the-pull-request",
    ),
    (
        "github_review_comment",
        &["own pull request"],
        "comment-on-the-pull-request",
    ),
    ("github_update_check_run", &["own check"], "own-check-runs"),
    (
        "github_update_project_fields",
        &["own fields"],
        "own-project-fields",
    ),
    ("ask_human", &["human"], "agents-ask"),
];

/// What is denied by a policy of its own, to every role; everything else that is denied is denied because none permits it.
const NOBODY: &[Row] = &[
    ("create_file", &["git-dir"], "git-directory"),
    ("str_replace", &["git-dir"], "git-directory"),
    ("create_file", &["workflow"], "forge-settings"),
    ("str_replace", &["workflow"], "forge-settings"),
    ("bash", &["blocked command"], "blocked-commands"),
    ("push", &["repository"], "no-merge-by-agents"),
    ("open_pull_request", &["repository"], "no-merge-by-agents"),
    ("merge", &["repository"], "no-merge-by-agents"),
];

/// What a person is asked about, for every role.
const ASKED: &[Row] = &[("add_dependency", &["repository", "dependency"], "new-dependency")];

fn own_tools(role: Role) -> &'static [Row] {
    match role {
        Role::Planner => &[("submit_plan", &["outcome"], "planner-submits-plans")],
        Role::Reviewer => &[("submit_review", &["outcome"], "reviewer-submits-reviews")],
        Role::Tester => &[("submit_test_report", &["outcome"], "tester-submits-reports")],
        Role::Implementer => &[
            ("create_file", &["worktree", "source"], "implementer-edits"),
            ("str_replace", &["worktree", "source"], "implementer-edits"),
            ("git_commit", ANY_PATH, "implementer-edits"),
            (
                "bash",
                &["worktree", "source", "git-dir", "workflow", "command"],
                "implementer-runs-commands",
            ),
        ],
    }
}

/// SEC-1, TOOL-3, RUN-14: every (role, tool, target) of the shipped policies, allowed and denied, and by which policy.
#[test]
fn the_shipped_policies_allow_exactly_what_the_table_says() {
    let authority = shipped();
    let mut asked = 0;
    for role in Role::ALL {
        let allowed = EVERYBODY.iter().chain(own_tools(role));
        let rows: Vec<(Ruling, &Row)> = allowed
            .map(|row| (Ruling::Allow, row))
            .chain(ASKED.iter().map(|row| (Ruling::RequireApproval, row)))
            .chain(NOBODY.iter().map(|row| (Ruling::Deny, row)))
            .collect();
        for action in Action::all() {
            for (name, target) in targets() {
                let verdict = authority.judge(&Request::new(Actor::Agent(role), action, target));
                let (ruling, policy) = rows
                    .iter()
                    .find(|(_, (tool, on, _))| *tool == action.name() && on.contains(&name.as_str()))
                    .map_or((Ruling::Deny, "deny-by-default"), |(ruling, (_, _, policy))| {
                        (*ruling, *policy)
                    });
                assert_eq!(
                    (verdict.ruling, verdict.policy.as_str()),
                    (ruling, policy),
                    "{role} {} {name}: {verdict:?}",
                    action.name()
                );
                assert!(!verdict.reason.is_empty());
                asked += 1;
            }
        }
    }
    assert_eq!(asked, 4 * 27 * 18);
}

/// SEC-1, TOOL-3: commands that destroy by habit are refused with a reason, and what only looks like them is not.
#[test]
fn blocked_commands_are_refused_and_their_neighbours_are_not() {
    let authority = shipped();
    let policy = |command: &str| {
        let request = Request::of_tool(Role::Implementer, "bash", command).expect("a tool");
        authority.judge(&request).policy
    };
    for command in [
        "sudo make install",
        "cargo build; sudo reboot",
        "cargo build && sudo reboot",
        "echo y | sudo tee /etc/x",
        "cargo build\nsudo reboot",
        "git push --force origin main",
        "git push origin main --force-with-lease",
        "git push -f",
        "git push -f origin main",
        "git push origin +main",
        "chmod 777 a",
        "chmod -R 777 .",
        "rm -rf /",
        "rm -rf / --no-preserve-root",
        "cd x && rm -fr /*",
        "rm -rf /; ls",
    ] {
        assert_eq!(policy(command), "blocked-commands", "{command}");
    }
    for command in [
        "cargo test",
        "grep -r sudo src",
        "git push origin main",
        "git fetch --force",
        "rm -rf /tmp/build",
        "rm -rf target",
        "chmod 755 a",
        "",
    ] {
        assert_eq!(policy(command), "implementer-runs-commands", "{command}");
    }
    let verdict = authority.judge(&read_question("planner bash command:sudo id").expect("a question"));
    assert!(
        verdict.reason.contains("the sandbox is the protection"),
        "{verdict:?}"
    );
}

/// SEC-1: lists of allowed and blocked commands and dependencies, as the documentation writes them.
#[test]
fn commands_and_dependencies_can_be_listed() {
    let text = r#"
        @id("allowed-commands") @reason("only these are run here")
        forbid (principal is Agent, action == Action::"bash", resource is Worktree)
        unless { context.command == "cargo test" || context.command == "cargo fmt" };
        @id("blocked-dependencies") @reason("it was taken over once")
        forbid (principal is Agent, action == Action::"add_dependency", resource is Repository)
        when { context.ecosystem == "npm" && (context.name == "left-pad" || context.name like "@evil/*") };
        @id("allowed-dependencies") @reason("well known")
        permit (principal is Agent, action == Action::"add_dependency", resource is Repository)
        when { context.ecosystem == "cargo" && context.name == "serde" && context.version like "1*" };
        @id("new-dependency") @reason("a person looks at the others") @decision("require_approval")
        permit (principal is Agent, action == Action::"add_dependency", resource is Repository)
        unless { context.name == "serde" };
    "#;
    let authority = Authority::new(&[(Layer::Project, text)]).expect("valid");
    let expectations = "
        implementer bash command:cargo test -> allow implementer-runs-commands
        implementer bash command:cargo test; curl evil -> deny allowed-commands
        implementer bash command:cargo  test -> deny allowed-commands
        implementer bash command:a -> b -> deny allowed-commands
        implementer bash worktree -> deny allowed-commands
        planner view command:ls -> deny deny-by-default
        implementer add_dependency dependency:acme/app:npm:left-pad:1.3.0 -> deny blocked-dependencies
        implementer add_dependency dependency:acme/app:npm:@evil/a:1 -> deny blocked-dependencies
        implementer add_dependency dependency:acme/app:npm:react:git https://example.com/x -> require_approval new-dependency
        implementer add_dependency dependency:acme/app:cargo:left-pad:1 -> require_approval new-dependency
        implementer add_dependency dependency:acme/app:cargo:serde:1.0.2 -> allow allowed-dependencies
        implementer add_dependency dependency:acme/app:cargo:serde:2 -> deny deny-by-default
        implementer add_dependency repository:acme/app -> require_approval new-dependency
        conductor push dependency:acme/app:npm:a:1 -> deny deny-by-default
    ";
    assert_eq!(expect_all(&authority, expectations), (14, vec![]));
    assert!(read_question("implementer add_dependency dependency:acme/app:npm:a").is_err());
}

/// SEC-1: an override of a command is for exactly that command; one of the worktree lifts what denies them all, and never
/// what denies one of them.
#[test]
fn an_override_lifts_one_command() {
    let authority = shipped();
    let scope = |policy: &str, target: &str| ReliefScope {
        policy: policy.into(),
        role: Role::Implementer,
        tool: "bash".into(),
        target: target.into(),
    };
    let relief = |scope: ReliefScope| Relief {
        number: 1,
        scope,
        by: OperatorName::parse("ada").expect("a name"),
        justification: "the owner asked for it".into(),
        until: Timestamp(100),
        revoked_by: None,
    };
    let ask = |authority: &Authority, relief: &Relief, command: &str| {
        let request = Request::of_tool(Role::Implementer, "bash", command).expect("a tool");
        let granted = std::slice::from_ref(relief);
        authority.judge_with(&request, granted, Timestamp(1)).ruling
    };
    let one = scope("blocked-commands", "command:chmod 777 out");
    assert_eq!(authority.may_lift(&one), Ok(()));
    let one = relief(one);
    assert_eq!(ask(&authority, &one, "chmod 777 out"), Ruling::Allow);
    assert_eq!(ask(&authority, &one, "chmod 777 out; sudo id"), Ruling::Deny);
    let all = scope("blocked-commands", "worktree");
    assert!(authority.may_lift(&all).is_err());
    let text = r#"@id("none") @reason("none") forbid (principal, action == Action::"bash", resource);"#;
    let none = Authority::new(&[(Layer::Project, text)]).expect("valid");
    let all = scope("none", "worktree");
    assert_eq!(none.may_lift(&all), Ok(()));
    let all = relief(all);
    assert_eq!(ask(&none, &all, "cargo test"), Ruling::Allow);
    let view = Request::of_tool(Role::Implementer, "view", "").expect("a tool");
    assert_eq!(
        none.judge_with(&view, std::slice::from_ref(&all), Timestamp(1))
            .policy,
        "agents-read-the-worktree"
    );
}

/// SEC-1: the reason and the policy that decided.
#[test]
fn every_decision_names_its_reason_and_its_policy() {
    let authority = shipped();
    let agent = |role, action, target| authority.judge(&Request::new(Actor::Agent(role), action, target));
    let path = |path: &str| Target::Worktree { path: path.into() };
    assert_eq!(
        agent(Role::Implementer, Action::CreateFile, path("src/a.rs")),
        verdict(
            Ruling::Allow,
            "the Implementer may change files of its run's worktree",
            "implementer-edits"
        )
    );
    assert_eq!(
        agent(
            Role::Implementer,
            Action::CreateFile,
            path(".github/workflows/x.yml")
        ),
        verdict(
            Ruling::Deny,
            "workflows, owners and settings of the forge are changed by people",
            "forge-settings"
        )
    );
    assert_eq!(
        agent(Role::Planner, Action::Bash, path("")),
        verdict(Ruling::Deny, "no policy permits it", "deny-by-default")
    );
}

/// RUN-14: nobody merges by default; an instance can let Conductor merge named changes, never an agent.
#[test]
fn merging_is_denied_until_somebody_writes_that_policy() {
    let ask = |authority: &Authority, actor: Actor, class: &str, confidence: u8| {
        let target = Target::Repository {
            name: "acme/docs".into(),
            change: Some(Change {
                class: class.into(),
                confidence,
            }),
        };
        authority
            .judge(&Request::new(actor, Action::Merge, target))
            .ruling
    };
    assert_eq!(
        ask(&shipped(), Actor::Orchestrator, "documentation", 100),
        Ruling::Deny
    );
    let text = r#"
        @id("merge-docs") @reason("documentation merges itself when the reviewers are sure")
        permit (principal is Orchestrator, action == Action::"merge", resource == Repository::"acme/docs")
        when { context.changeClass == "documentation" && context.confidence >= 90 };
        @id("merge-by-agents") @reason("never works")
        permit (principal is Agent, action == Action::"merge", resource is Repository);
    "#;
    let authority = Authority::new(&[(Layer::Project, text)]).expect("valid");
    assert_eq!(
        ask(&authority, Actor::Orchestrator, "documentation", 95),
        Ruling::Allow
    );
    assert_eq!(
        ask(&authority, Actor::Orchestrator, "documentation", 89),
        Ruling::Deny
    );
    assert_eq!(ask(&authority, Actor::Orchestrator, "code", 95), Ruling::Deny);
    assert_eq!(
        ask(&authority, Actor::Agent(Role::Implementer), "documentation", 95),
        Ruling::Deny
    );
}

/// BEY-10: who may start runs and whose text is trusted; a bot earns nothing, whatever the forge calls it.
#[test]
fn bots_and_strangers_earn_no_trust_and_low_trust_asks_more() {
    let low = Authority::new(&[(Layer::Project, LOW_TRUST)]).expect("valid");
    let expectations = "
        operator:operator start_run repository:acme/app -> allow operators-start-runs
        operator:admin start_run repository:acme/app -> allow
        operator:viewer start_run repository:acme/app -> deny deny-by-default
        person:ada:owner start_run repository:acme/app -> deny deny-by-default   # nobody starts runs at the forge
        person:helper[bot]:owner start_run repository:acme/app -> deny deny-by-default
        person:ada:member trust_text own-issue -> allow trusted-text
        person:ada:contributor trust_text own-issue -> deny
        person:helper[bot]:owner trust_text other-pull-request -> deny
        person:helper[BOT]:member trust_text own-issue -> deny
    ";
    assert_eq!(expect_all(&shipped(), expectations), (9, vec![]));
    let expectations = "
        person:ada:owner trust_text own-issue -> allow trusted-text
        person:ada:contributor trust_text own-issue -> deny deny-by-default
        person:ada:collaborator trust_text own-issue -> deny
        person:helper[bot]:owner trust_text own-issue -> deny
        implementer bash worktree -> require_approval implementer-runs-commands
        implementer create_file worktree:src/a.rs -> allow   # replaced policies only
    ";
    assert_eq!(expect_all(&low, expectations), (6, vec![]));
}

/// SEC-1: a lower layer replaces by id; a final policy stays; the strictest that applies decides.
#[test]
fn layers_replace_by_id_and_final_policies_stay() {
    let project = r#"@id("comment-on-the-issue") @reason("quiet") forbid (principal is Agent, action == Action::"github_comment_issue", resource is Issue);"#;
    let repo = r#"@id("comment-on-the-issue") @reason("ask") @decision("require_approval") permit (principal is Agent, action == Action::"github_comment_issue", resource is Issue);"#;
    let request = Request::new(
        Actor::Agent(Role::Planner),
        Action::GithubCommentIssue,
        Target::Issue { is_own: true },
    );
    let with = |layers: &[(Layer, &str)]| Authority::new(layers).expect("valid").judge(&request);
    assert_eq!(
        with(&[(Layer::Project, project)]),
        verdict(Ruling::Deny, "quiet", "comment-on-the-issue")
    );
    let both = [(Layer::Repository, repo), (Layer::Project, project)];
    assert_eq!(
        with(&both),
        verdict(Ruling::RequireApproval, "ask", "comment-on-the-issue")
    );
    let asks_too = r#"@id("slow") @reason("slow down") @decision("require_approval") permit (principal is Agent, action, resource);"#;
    let (answer, consulted) = Authority::new(&[(Layer::Run, asks_too)])
        .expect("valid")
        .explain(&request);
    assert_eq!(answer, verdict(Ruling::RequireApproval, "slow down", "slow"));
    let consulted: Vec<&str> = consulted.iter().map(|rule| rule.id.as_str()).collect();
    assert_eq!(consulted, ["slow", "comment-on-the-issue"]);
    let hijack = r#"@id("git-directory") @reason("let me") permit (principal is Agent, action == Action::"create_file", resource is Worktree);"#;
    let flaws = Authority::new(&[(Layer::Repository, hijack)]).expect_err("final");
    assert!(flaws[0].message.contains("`git-directory` is final"), "{flaws:?}");
    let all_denied = r#"@id("freeze") @reason("frozen") forbid (principal, action, resource);"#;
    assert_eq!(
        with(&[(Layer::Project, all_denied)]),
        verdict(Ruling::Deny, "frozen", "freeze")
    );
}

/// SEC-1: versions are content addresses.
#[test]
fn the_version_changes_with_the_text_and_only_with_it() {
    let text = r#"@id("a") @reason("b") forbid (principal, action, resource);"#;
    let version = |layers: &[(Layer, &str)]| Authority::new(layers).expect("valid").version().clone();
    assert_eq!(version(&[]), version(&[]));
    assert_ne!(version(&[]), version(&[(Layer::Run, text)]));
    assert_ne!(version(&[(Layer::Project, text)]), version(&[(Layer::Run, text)]));
}

/// SEC-1: what is wrong with a text is said with line and column before it is saved.
#[test]
fn flaws_are_found_before_saving_with_line_and_column() {
    let at = |text: &str| -> Vec<(usize, usize)> {
        check(Layer::Project, text)
            .iter()
            .map(|flaw| (flaw.line, flaw.column))
            .collect()
    };
    assert_eq!(check(Layer::Shipped, SHIPPED), []);
    assert_eq!(at("\n  permit (principal, action, resource"), [(2, 38)]);
    let unknown =
        "@id(\"a\")\n@reason(\"b\")\npermit (principal is Agent, action == Action::\"fly\", resource);";
    assert_eq!(at(unknown).first(), Some(&(3, 39)));
    let typo = "@id(\"a\") @reason(\"b\")\npermit (principal is Agent, action == Action::\"view\", resource is Worktree)\nwhen { resource.pth == \"x\" };";
    assert_eq!(at(typo).first().map(|(line, _)| *line), Some(3));
    let message = |text: &str| {
        check(Layer::Project, text)
            .first()
            .map(|flaw| flaw.message.clone())
    };
    assert_eq!(
        message("forbid (principal, action, resource);").as_deref(),
        Some("a policy has no @id(\"…\")")
    );
    assert_eq!(
        message("@id(\"a\") forbid (principal, action, resource);").as_deref(),
        Some("policy `a` has no @reason(\"…\")")
    );
    assert_eq!(
        message("@id(\"a\") @reason(\"b\") @decision(\"maybe\") permit (principal, action, resource);")
            .as_deref(),
        Some("policy `a`: a decision `maybe` does not fit its effect")
    );
    let twice = "@id(\"a\") @reason(\"b\") forbid (principal, action, resource);".repeat(2);
    assert_eq!(message(&twice).as_deref(), Some("two policies have the id `a`"));
}

/// SEC-1: what a policy lacks is said where that policy begins, however the ones before it are written.
#[test]
fn a_flaw_of_a_policy_is_said_where_it_begins() {
    let first = "// one; two\n@id(\"a\") @reason(\"say \\\"so\\\"; // é\")\nforbid (principal, action, resource); // done;\n";
    for (second, message) in [
        (
            "forbid (principal, action, resource);",
            "a policy has no @id(\"…\")",
        ),
        (
            "@id(\"b\") forbid (principal, action, resource);",
            "policy `b` has no @reason(\"…\")",
        ),
        (
            "@id(\"b\") @reason(\"c\") @decision(\"maybe\") permit (principal, action, resource);",
            "policy `b`: a decision `maybe` does not fit its effect",
        ),
        (
            "@id(\"a\") @reason(\"c\") forbid (principal, action, resource);",
            "two policies have the id `a`",
        ),
        (
            "@id(\"b\") @reason(\"c\") permit (principal == ?principal, action, resource);",
            "templates are not supported",
        ),
    ] {
        let text = format!("{first}\n  {second}\n");
        let flaws = check(Layer::Project, &text);
        let said = flaws.iter().find(|flaw| flaw.message == message);
        assert_eq!(
            said.map(|flaw| (flaw.line, flaw.column)),
            Some((5, 3)),
            "{message}: {flaws:?}"
        );
    }
    let hijack = format!(
        "{first}@id(\"git-directory\") @reason(\"let me\")\npermit (principal is Agent, action == Action::\"view\", resource);"
    );
    let flaws = Authority::new(&[(Layer::Repository, hijack.as_str())]).expect_err("final");
    let places: Vec<(usize, usize)> = flaws.iter().map(|flaw| (flaw.line, flaw.column)).collect();
    assert_eq!(places, [(4, 1)], "{flaws:?}");
}

/// SEC-1: what nobody ever asks about is refused before it is saved, so that no policy is kept that changes nothing; a run
/// that locked one before goes on.
#[test]
fn a_policy_that_could_never_have_an_effect_is_not_saved() {
    let policy = |scope: &str| format!("@id(\"a\") @reason(\"b\")\nforbid ({scope});");
    for scope in [
        "principal is Agent, action == Action::\"connect\", resource",
        "principal is Person, action == Action::\"start_run\", resource is Repository",
        "principal is Operator, action == Action::\"push\", resource is Repository",
        "principal is Orchestrator, action == Action::\"bash\", resource is Worktree",
    ] {
        let text = policy(scope);
        assert_ne!(check(Layer::Project, &text), [], "{scope}");
        assert!(
            Authority::new(&[(Layer::Project, text.as_str())]).is_err(),
            "{scope}"
        );
    }
    let text = policy("principal is Person, action == Action::\"start_run\", resource is Repository");
    let locked = Authority::locked(&[(Layer::Shipped, SHIPPED), (Layer::Project, text.as_str())]);
    assert!(locked.is_ok(), "{locked:?}");
    for scope in [
        "principal, action == Action::\"push\", resource",
        "principal is Orchestrator, action == Action::\"open_pull_request\", resource is Repository",
        "principal is Operator, action == Action::\"start_run\", resource is Repository",
    ] {
        assert_eq!(check(Layer::Project, &policy(scope)), [], "{scope}");
    }
}

#[test]
fn expectations_that_do_not_hold_are_named_by_line() {
    let (held, wrong) = expect_all(
        &shipped(),
        "# table\nplanner bash worktree -> allow\nplanner fly worktree -> deny\nnonsense",
    );
    assert_eq!(held, 0);
    let lines: Vec<String> = wrong.iter().map(ToString::to_string).collect();
    let actions: Vec<&str> = Action::all().map(Action::name).collect();
    assert_eq!(
        lines,
        [
            "line 2: expected allow, but it is deny by deny-by-default (no policy permits it)".to_owned(),
            format!("line 3: `fly` is no action; there are {}", actions.join(", ")),
            "line 4: expected `actor action target -> decision [policy]`".to_owned(),
        ]
    );
    let question = |text: &str| read_question(text).expect_err("no question");
    assert!(question("wizard bash worktree").starts_with("`wizard` is no actor; write planner, "));
    assert!(question("planner bash moon").starts_with("`moon` is no target; write worktree[:PATH], "));
    assert!(question("planner bash").ends_with("these are 2"));
    assert!(
        question("conductor merge repository:a/b").starts_with("a merge is asked for with what it changes: ")
    );
    for change in [
        "docs:90",
        "documentation",
        "documentation:101",
        "documentation:-5",
        "documentation:9:9",
    ] {
        let why = question(&format!("conductor merge repository:a/b:{change}"));
        assert!(
            why.ends_with("a CLASS is documentation, tests, dependencies, code, a CONFIDENCE 0 to 100"),
            "{change}: {why}"
        );
    }
    // A path is asked about as a call is judged by.
    let roundabout = "implementer create_file worktree:./.github//workflows/ci.yml -> deny forge-settings";
    assert_eq!(expect_all(&shipped(), roundabout), (1, vec![]));
    for change in ["documentation:100", "tests:0", "dependencies:1", "code:99"] {
        let line = format!("conductor merge repository:a/b:{change} -> deny");
        assert_eq!(expect_all(&shipped(), &line), (1, vec![]), "{line}");
    }
}

/// SEC-1: a file of expectations that cannot fail is not one that holds.
#[test]
fn what_expects_nothing_or_no_decision_does_not_hold() {
    let told = |text: &str| {
        let (held, wrong) = expect_all(&shipped(), text);
        assert_eq!(held, 0, "it cannot hold");
        wrong.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let form = "`actor action target -> decision [policy]`";
    for nothing in ["", "# words\n\n"] {
        assert_eq!(
            told(nothing),
            [format!("line 1: nothing is expected; write {form}")]
        );
    }
    let line = |answer: &str| told(&format!("planner bash worktree -> {answer}"));
    assert_eq!(
        line("maybe"),
        ["line 1: `maybe` is no decision; there are allow, require_approval, deny"]
    );
    assert_eq!(line(""), [format!("line 1: expected {form}")]);
    assert_eq!(line("deny a b"), [format!("line 1: expected {form}")]);
    assert_eq!(line("deny other").len(), 1);
}

/// SEC-1: an override is for one thing, for a while, can be taken back, and never lifts what is final.
#[test]
fn an_override_is_scoped_expires_and_never_lifts_what_is_final() {
    let authority = shipped();
    let at = |seconds: i64| Timestamp(seconds * 1_000_000);
    let by = OperatorName::parse("ada").expect("a name");
    let scope = |policy: &str, role, tool: &str, target: &str| ReliefScope {
        policy: policy.into(),
        role,
        tool: tool.into(),
        target: target.into(),
    };
    let relief = |scope: &ReliefScope| Relief {
        number: 1,
        scope: scope.clone(),
        by: by.clone(),
        justification: "the owner asked for this pipeline".into(),
        until: at(100),
        revoked_by: None,
    };
    let create = |role, path: &str| Request::of_tool(role, "create_file", path).expect("a tool");
    let workflow = scope(
        "forge-settings",
        Role::Implementer,
        "create_file",
        "worktree:./.github/workflows/ci.yml",
    );
    assert_eq!(authority.may_lift(&workflow), Ok(()));
    let granted = [relief(&workflow)];
    let ask = |request: &Request, now| authority.judge_with(request, &granted, at(now));
    let path = ".github//workflows/ci.yml";
    assert_eq!(
        ask(&create(Role::Implementer, path), 99),
        verdict(
            Ruling::Allow,
            "override 1 by ada: the owner asked for this pipeline",
            "forge-settings"
        )
    );
    let denied = |request: &Request, now, why| assert_eq!(ask(request, now).ruling, Ruling::Deny, "{why}");
    denied(&create(Role::Implementer, path), 100, "expired");
    denied(&create(Role::Implementer, "CODEOWNERS"), 1, "another target");
    denied(&create(Role::Planner, path), 1, "another role");
    let replace = Request::of_tool(Role::Implementer, "str_replace", path).expect("a tool");
    denied(&replace, 1, "another tool");
    let revoked = Relief {
        revoked_by: Some(by.clone()),
        ..relief(&workflow)
    };
    let create_it = create(Role::Implementer, path);
    assert_eq!(
        authority.judge_with(&create_it, &[revoked], at(1)).ruling,
        Ruling::Deny
    );
    // A denial by another policy than the one that was lifted stays.
    let other = relief(&scope(
        "git-directory",
        Role::Implementer,
        "create_file",
        "worktree:.github/workflows/ci.yml",
    ));
    assert_eq!(
        authority.judge_with(&create_it, &[other], at(1)).ruling,
        Ruling::Deny
    );
    // Even if one was recorded somehow, nothing final is lifted.
    let git = scope(
        "git-directory",
        Role::Implementer,
        "create_file",
        "worktree:.git/config",
    );
    let config = create(Role::Implementer, ".git/config");
    assert_eq!(
        authority.judge_with(&config, &[relief(&git)], at(1)).ruling,
        Ruling::Deny
    );
    let refused = |scope: &ReliefScope| authority.may_lift(scope).expect_err("nothing to lift");
    assert_eq!(refused(&git), "`git-directory` is final; nobody lifts it");
    let allowed = scope(
        "implementer-edits",
        Role::Implementer,
        "create_file",
        "worktree:src/a.rs",
    );
    assert_eq!(refused(&allowed), "it is allowed already, by `implementer-edits`");
    let wrong = scope(
        "git-directory",
        Role::Implementer,
        "create_file",
        "worktree:CODEOWNERS",
    );
    assert!(refused(&wrong).starts_with("it is not `git-directory` that decides but `forge-settings`"));
    for (tool, target) in [
        ("merge", "repository:a/b"),
        ("fly", "worktree"),
        ("bash", "moon"),
        ("bash", "human"),
    ] {
        refused(&scope("deny-by-default", Role::Implementer, tool, target));
    }
    let others = scope(
        "deny-by-default",
        Role::Planner,
        "github_comment_issue",
        "other-issue",
    );
    assert_eq!(authority.may_lift(&others), Ok(()));
}

#[test]
fn an_operator_is_known_by_level_and_not_by_name() {
    let ask = |name: &str, level| {
        let actor = Actor::Operator {
            name: name.into(),
            level,
        };
        let target = Target::Repository {
            name: "a/b".into(),
            change: None,
        };
        shipped()
            .judge(&Request::new(actor, Action::StartRun, target))
            .ruling
    };
    assert_eq!(ask("admin", Level::Viewer), Ruling::Deny);
    assert_eq!(ask("x\"y", Level::Admin), Ruling::Allow);
    let hostile = Actor::Person {
        login: "owner\" || true || \"".into(),
        standing: Standing::None,
    };
    let target = Target::Issue { is_own: true };
    assert_eq!(
        shipped()
            .judge(&Request::new(hostile, Action::TrustText, target))
            .ruling,
        Ruling::Deny
    );
}
