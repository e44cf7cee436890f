//! `conductor repo`: repositories that runs may work on, registered one by one.
//!
//! It does not know what a repository holds.

use conductor_domain::instance::TestEgress;
use conductor_web::api::{RegisterRepo, RepoList, RepoView};

use crate::exit::{Exit, Failure};
use crate::session::Session;
use crate::show::table::Table;

/// Registers repositories
#[derive(Debug, clap::Subcommand)]
pub(crate) enum RepoCommand {
    /// Registers a repository, or replaces its registration; options left out return to their defaults
    Add {
        /// The repository at the forge, as owner/name
        repo: String,
        /// The project it belongs to
        #[arg(long)]
        project: String,
        /// The command that decides whether work is right; run without a shell
        #[arg(long, value_name = "COMMAND")]
        test: String,
        /// How many runs may work on it at once
        #[arg(long, value_name = "N")]
        slots: Option<u32>,
        /// The branch to base work on [default: the forge's default branch]
        #[arg(long, value_name = "BRANCH")]
        base: Option<String>,
        /// Lets the test command reach what the project may, instead of nothing
        #[arg(long)]
        test_egress: bool,
        /// The number of the owner's project board on which agents may keep the fields called `Conductor …`
        #[arg(long, value_name = "N")]
        board: Option<u32>,
    },
    /// Lists the repositories
    List,
}

/// Runs the command.
pub(crate) async fn repo(session: &Session, command: RepoCommand) -> Result<Exit, Failure> {
    match command {
        RepoCommand::Add {
            repo,
            project,
            test,
            slots,
            base,
            test_egress,
            board,
        } => {
            let test_command = words(&test)?;
            if let Some(word) = test_command.iter().find(|word| is_for_a_shell(word)) {
                session.out.talk(&format!(
                    "note: no shell reads the test command; `{word}` is given to {} as it is (`sh -c '…'` runs a shell)",
                    test_command[0]
                ));
            }
            let wish = RegisterRepo {
                project,
                repo,
                test_command,
                slots,
                base_branch: base,
                test_egress: if test_egress {
                    TestEgress::AsProject
                } else {
                    TestEgress::None
                },
                board,
            };
            let client = session.client().await?;
            let registered: RepoView = client.post("/repos", &wish).await?;
            session.out.talk(&format!(
                "✔ {} registered in project {}: {}",
                registered.repo,
                registered.project,
                terms(&registered)
            ));
            session.out.data(&registered, |_| String::new())?;
        }
        RepoCommand::List => {
            let repos = RepoList {
                repos: session.source().await?.instance().await?.repos,
            };
            session.out.data(&repos, |list| {
                let mut table = Table::new(["REPOSITORY", "PROJECT", "BASE", "SLOTS", "TEST"]);
                for repo in &list.repos {
                    let test = repo.test_command.join(" ");
                    let cells = [
                        repo.repo.clone(),
                        repo.project.to_string(),
                        repo.base_branch.clone(),
                    ];
                    let [name, project, base] = cells;
                    table.row([name, project, base, repo.slots.to_string(), test]);
                }
                table.render(
                    "no repositories; `conductor repo add owner/name --project … --test …` registers one",
                )
            })?;
        }
    }
    Ok(Exit::Ok)
}

/// Says what counts from now on, so that nobody wonders what became of an earlier registration.
fn terms(repo: &RepoView) -> String {
    let runs = if repo.slots == 1 { "run" } else { "runs" };
    let board = repo.board.map(|number| format!(", fields on board {number}"));
    format!(
        "based on {}, {} {runs} at once, tests reach {}{}",
        repo.base_branch,
        repo.slots,
        match repo.test_egress {
            TestEgress::None => "nothing",
            TestEgress::AsProject => "what the project may",
        },
        board.unwrap_or_default()
    )
}

/// Tells whether only a shell makes something of a word.
fn is_for_a_shell(word: &str) -> bool {
    ["&&", "||", "|", ";", "&", ">", ">>", "<"].contains(&word) || word.ends_with(';')
}

/// Splits a command into its argv; quotes group, a backslash takes the next character as it is, nothing else is special.
pub(crate) fn words(command: &str) -> Result<Vec<String>, Failure> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    let mut chars = command.chars();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None | Some('"'), '\\') => word.get_or_insert_default().extend(chars.next()),
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (None | Some(_), c) => word.get_or_insert_default().push(c),
        }
    }
    if quote.is_some() {
        let what = format!("`{command}` ends inside quotes");
        return Err(Failure::coded("CDR0304", what, "close the quotes").exiting(Exit::Usage));
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_command_is_split_without_a_shell() {
        let split = |text: &str| words(text).expect("closed quotes");
        assert_eq!(split("cargo test  --locked"), ["cargo", "test", "--locked"]);
        assert_eq!(
            split(r#"sh -c 'a && "b"' "c d\"e" '' f\ g"#),
            ["sh", "-c", "a && \"b\"", "c d\"e", "", "f g"]
        );
        assert_eq!(split("echo $HOME;rm *"), ["echo", "$HOME;rm", "*"]);
        assert!(split("make && make test").iter().any(|word| is_for_a_shell(word)));
        assert!(
            !split("sh -c 'make && make test'")
                .iter()
                .any(|word| is_for_a_shell(word))
        );
        assert_eq!(split("  "), Vec::<String>::new());
        assert_eq!(words("make 'x").expect_err("open quotes").exit, Exit::Usage);
    }
}
