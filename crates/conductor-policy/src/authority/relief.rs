//! What an operator's override lifts: the no, or the question, of one policy to one call of a tool, and nothing final.
//!
//! This module does not know who may grant one, nor where it is recorded.

use conductor_domain::relief::{Relief, ReliefScope};
use conductor_domain::time::Timestamp;

use super::{Action, Authority, Request, Ruling, Target, Verdict, expectation};

/// Reads the call that an override is for.
fn call(scope: &ReliefScope) -> Result<Request, String> {
    let target = expectation::read_target(&scope.target)
        .ok_or_else(|| format!("`{}` is nothing that a call acts on", scope.target))?;
    let subject = match &target {
        Target::Worktree { path } => path.as_str(),
        Target::Command { text } => text.as_str(),
        Target::Issue { .. }
        | Target::PullRequest { .. }
        | Target::CheckRun { .. }
        | Target::ProjectFields { .. }
        | Target::Outcome
        | Target::Human
        | Target::Repository { .. }
        | Target::Dependency { .. } => "",
    };
    let mut call = Request::of_tool(scope.role, &scope.tool, subject)
        .ok_or_else(|| format!("only calls of tools have overrides, and `{}` is none", scope.tool))?;
    // A path is said in the one way that calls are judged by; what belongs to others stays theirs, and the worktree of a
    // command stands for any command.
    if call.action == Action::Bash || !matches!(target, Target::Worktree { .. }) {
        call.target = target;
    }
    Ok(call)
}

impl Authority {
    /// Tells whether an override of this scope would lift anything, or says why not.
    pub fn may_lift(&self, scope: &ReliefScope) -> Result<(), String> {
        let call = call(scope)?;
        let applying = self.applying(&call).map_err(|unfit| unfit.reason)?;
        let verdict = super::verdict(&applying);
        if verdict.ruling == Ruling::Allow {
            return Err(format!("it is allowed already, by `{}`", verdict.policy));
        }
        if verdict.policy != scope.policy {
            return Err(format!(
                "it is not `{}` that decides but `{}` ({})",
                scope.policy, verdict.policy, verdict.reason
            ));
        }
        if self.is_final(&verdict) {
            return Err(format!("`{}` is final; nobody lifts it", verdict.policy));
        }
        Ok(())
    }

    /// Decides as [`Self::judge`] does, then lets an override that is in force lift a denial or a question.
    pub fn judge_with(&self, request: &Request, reliefs: &[Relief], now: Timestamp) -> Verdict {
        let verdict = match self.applying(request) {
            Ok(applying) => super::verdict(&applying),
            // What could not be judged has no policy that could be lifted.
            Err(unfit) => return unfit,
        };
        if verdict.ruling == Ruling::Allow || self.is_final(&verdict) {
            return verdict;
        }
        let lifts = |relief: &&Relief| {
            relief.is_in_force(now)
                && relief.scope.policy == verdict.policy
                && call(&relief.scope).is_ok_and(|call| call.covers(request))
        };
        match reliefs.iter().find(lifts) {
            None => verdict,
            Some(relief) => Verdict {
                ruling: Ruling::Allow,
                reason: format!(
                    "override {} by {}: {}",
                    relief.number, relief.by, relief.justification
                ),
                policy: verdict.policy,
            },
        }
    }

    fn is_final(&self, verdict: &Verdict) -> bool {
        self.rules.get(&verdict.policy).is_some_and(|rule| rule.is_final)
    }
}
