//! What each tool takes, as types; their schemas are what an agent is shown.
//!
//! This module does not know what a tool does.

use std::collections::BTreeMap;

use conductor_domain::plan::{PlanDraft, ReviewDraft, TestReportDraft, Verdict};
use conductor_port::agent::{GithubCall, ToolRequest};
use conductor_port::executor::Pattern;
use rmcp::schemars;
use rmcp::schemars::JsonSchema;
use serde::Deserialize;

/// Becomes a request.
pub(crate) trait Arguments: for<'de> Deserialize<'de> + JsonSchema + 'static {
    fn request(self) -> ToolRequest;
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct View {
    /// The file, relative to the worktree.
    pub(crate) path: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CreateFile {
    /// The new file, relative to the worktree; its directories are made.
    pub(crate) path: String,
    /// The whole content.
    pub(crate) content: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct StrReplace {
    /// The file, relative to the worktree.
    pub(crate) path: String,
    /// What must occur exactly once, white space included.
    pub(crate) old: String,
    /// What stands there instead; empty removes it.
    pub(crate) new: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListFiles {
    /// The directory, relative to the worktree; the worktree itself when left out.
    #[serde(default)]
    pub(crate) path: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SearchFiles {
    /// What is looked for in each line.
    pub(crate) pattern: String,
    /// Whether the pattern is a regular expression; otherwise it is a plain text.
    #[serde(default)]
    pub(crate) regex: bool,
    /// The directory, relative to the worktree; the worktree itself when left out.
    #[serde(default)]
    pub(crate) path: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Bash {
    /// The command line, for `bash -c`, in the worktree.
    pub(crate) command: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct GitCommit {
    /// What was done.
    pub(crate) message: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SubmitPlan {
    /// One line: what will be done.
    pub(crate) summary: String,
    /// How it will be done.
    pub(crate) approach: String,
    /// Every file that will be changed, relative to the repository's root.
    pub(crate) files: Vec<String>,
    /// What could go wrong.
    #[serde(default)]
    pub(crate) risks: Vec<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SubmitReview {
    /// Whether it is good as it is.
    pub(crate) verdict: ReviewVerdict,
    /// Why.
    pub(crate) summary: String,
    /// What must change, each on its own.
    #[serde(default)]
    pub(crate) findings: Vec<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ReviewVerdict {
    /// It is.
    Approve,
    /// The findings must be dealt with.
    Reject,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SubmitTestReport {
    /// Whether, in your reading of the output, the tests passed. The exit code decides, not this.
    pub(crate) passed: bool,
    /// What the output says.
    pub(crate) interpretation: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AskHuman {
    /// The question; the work ends here and begins anew with the answer.
    pub(crate) question: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct GitStatus {}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct GitDiff {}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct GetIssue {
    /// The issue; the run's own when left out.
    #[serde(default)]
    pub(crate) number: Option<u64>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListComments {
    /// The issue; the run's own when left out.
    #[serde(default)]
    pub(crate) number: Option<u64>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct GetPullRequest {
    /// The pull request; the run's own when left out.
    #[serde(default)]
    pub(crate) number: Option<u64>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CommentIssue {
    /// The issue; the run's own when left out.
    #[serde(default)]
    pub(crate) number: Option<u64>,
    /// What is said, in markdown.
    pub(crate) text: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CommentPullRequest {
    /// The pull request; the run's own when left out.
    #[serde(default)]
    pub(crate) number: Option<u64>,
    /// What is said, in markdown.
    pub(crate) text: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReviewComment {
    /// The pull request; the run's own when left out.
    #[serde(default)]
    pub(crate) number: Option<u64>,
    /// The file, relative to the repository's root.
    pub(crate) path: String,
    /// The line, from 1.
    pub(crate) line: u32,
    /// What is said, in markdown.
    pub(crate) text: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct UpdateCheckRun {
    /// What is said below Conductor's own verdict; a later text replaces it.
    pub(crate) text: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct UpdateProjectFields {
    /// The fields by name, with their new values.
    pub(crate) fields: BTreeMap<String, String>,
}

impl Arguments for View {
    fn request(self) -> ToolRequest {
        ToolRequest::View { path: self.path }
    }
}

impl Arguments for CreateFile {
    fn request(self) -> ToolRequest {
        ToolRequest::CreateFile {
            path: self.path,
            content: self.content.into_bytes(),
        }
    }
}

impl Arguments for StrReplace {
    fn request(self) -> ToolRequest {
        let Self { path, old, new } = self;
        ToolRequest::StrReplace { path, old, new }
    }
}

impl Arguments for ListFiles {
    fn request(self) -> ToolRequest {
        ToolRequest::ListFiles { path: self.path }
    }
}

impl Arguments for SearchFiles {
    fn request(self) -> ToolRequest {
        ToolRequest::SearchFiles {
            path: self.path,
            pattern: if self.regex {
                Pattern::Regex(self.pattern)
            } else {
                Pattern::Literal(self.pattern)
            },
        }
    }
}

impl Arguments for Bash {
    fn request(self) -> ToolRequest {
        ToolRequest::Bash {
            command: self.command,
        }
    }
}

impl Arguments for GitStatus {
    fn request(self) -> ToolRequest {
        ToolRequest::GitStatus
    }
}

impl Arguments for GitDiff {
    fn request(self) -> ToolRequest {
        ToolRequest::GitDiff
    }
}

impl Arguments for GitCommit {
    fn request(self) -> ToolRequest {
        ToolRequest::GitCommit {
            message: self.message,
        }
    }
}

impl Arguments for SubmitPlan {
    fn request(self) -> ToolRequest {
        let Self {
            summary,
            approach,
            files,
            risks,
        } = self;
        ToolRequest::SubmitPlan(PlanDraft {
            summary,
            approach,
            files,
            risks,
        })
    }
}

impl Arguments for SubmitReview {
    fn request(self) -> ToolRequest {
        ToolRequest::SubmitReview(ReviewDraft {
            verdict: match self.verdict {
                ReviewVerdict::Approve => Verdict::Approve,
                ReviewVerdict::Reject => Verdict::Reject,
            },
            summary: self.summary,
            findings: self.findings,
        })
    }
}

impl Arguments for SubmitTestReport {
    fn request(self) -> ToolRequest {
        ToolRequest::SubmitTestReport(TestReportDraft {
            passed: self.passed,
            interpretation: self.interpretation,
        })
    }
}

impl Arguments for AskHuman {
    fn request(self) -> ToolRequest {
        ToolRequest::AskHuman {
            question: self.question,
        }
    }
}

impl Arguments for GetIssue {
    fn request(self) -> ToolRequest {
        ToolRequest::Github(GithubCall::GetIssue { number: self.number })
    }
}

impl Arguments for ListComments {
    fn request(self) -> ToolRequest {
        ToolRequest::Github(GithubCall::ListComments { number: self.number })
    }
}

impl Arguments for GetPullRequest {
    fn request(self) -> ToolRequest {
        ToolRequest::Github(GithubCall::GetPullRequest { number: self.number })
    }
}

impl Arguments for CommentIssue {
    fn request(self) -> ToolRequest {
        let Self { number, text } = self;
        ToolRequest::Github(GithubCall::CommentIssue { number, text })
    }
}

impl Arguments for CommentPullRequest {
    fn request(self) -> ToolRequest {
        let Self { number, text } = self;
        ToolRequest::Github(GithubCall::CommentPullRequest { number, text })
    }
}

impl Arguments for ReviewComment {
    fn request(self) -> ToolRequest {
        let Self {
            number,
            path,
            line,
            text,
        } = self;
        ToolRequest::Github(GithubCall::ReviewComment {
            number,
            path,
            line,
            text,
        })
    }
}

impl Arguments for UpdateCheckRun {
    fn request(self) -> ToolRequest {
        ToolRequest::Github(GithubCall::UpdateCheckRun { text: self.text })
    }
}

impl Arguments for UpdateProjectFields {
    fn request(self) -> ToolRequest {
        ToolRequest::Github(GithubCall::UpdateProjectFields { fields: self.fields })
    }
}
