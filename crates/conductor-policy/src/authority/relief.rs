//! What an operator's override lifts: the no, or the question, of one policy to one call of a tool, and nothing final. What
//! the other policies say stays.
//!
//! This module does not know who may grant one, nor where it is recorded.

use conductor_domain::relief::{Relief, ReliefScope};
use conductor_domain::time::Timestamp;

use super::{Action, Authority, NOBODY, Request, Rule, Ruling, Target, Verdict, expectation};

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
    /// Tells whether an override of this scope would lift anything, or says why not. Of several policies that stand in the way,
    /// each can be lifted by an override of its own, unless one of them is final.
    pub fn may_lift(&self, scope: &ReliefScope) -> Result<(), String> {
        let call = call(scope)?;
        let deciding = self.judge(&call);
        if deciding.ruling == Ruling::Allow {
            return Err(format!("it is allowed already, by `{}`", deciding.policy));
        }
        let mut passed: Vec<String> = Vec::new();
        loop {
            let lifted: Vec<&str> = passed.iter().map(String::as_str).collect();
            let verdict = self.judge_without(&call, &lifted).map_err(|unfit| unfit.reason)?;
            let (is_meant, is_final) = (verdict.policy == scope.policy, self.is_final(&verdict));
            if is_meant && is_final {
                return Err(format!("`{}` is final; nobody lifts it", verdict.policy));
            }
            if verdict.ruling == Ruling::Allow || is_final {
                return Err(format!(
                    "it is not `{}` that decides but `{}` ({})",
                    scope.policy, deciding.policy, deciding.reason
                ));
            }
            if is_meant {
                return Ok(());
            }
            passed.push(verdict.policy);
        }
    }

    /// Decides as [`Self::judge`] does, then lets each override that is in force lift the denial or the question of the policy
    /// that it names. What the others say without it is decided; what is final is never lifted.
    pub fn judge_with(&self, request: &Request, reliefs: &[Relief], now: Timestamp) -> Verdict {
        let mut lifting: Vec<&Relief> = Vec::new();
        let verdict = loop {
            let lifted: Vec<&str> = lifting.iter().map(|one| one.scope.policy.as_str()).collect();
            let verdict = match self.judge_without(request, &lifted) {
                Ok(verdict) => verdict,
                // What could not be judged has no policy that could be lifted.
                Err(unfit) => return unfit,
            };
            if verdict.ruling == Ruling::Allow {
                break verdict;
            }
            let lifts = |relief: &&Relief| {
                relief.is_in_force(now)
                    && relief.scope.policy == verdict.policy
                    && call(&relief.scope).is_ok_and(|call| call.covers(request))
            };
            match reliefs.iter().find(lifts) {
                // A policy that is lifted decides no more, so each turn lifts another one.
                Some(relief) if !self.is_final(&verdict) => lifting.push(relief),
                Some(_) | None => return verdict,
            }
        };
        let reasons: Vec<String> = lifting
            .iter()
            .map(|relief| {
                format!(
                    "override {} by {}: {}",
                    relief.number, relief.by, relief.justification
                )
            })
            .collect();
        match lifting.first() {
            None => verdict,
            Some(first) => Verdict {
                ruling: Ruling::Allow,
                reason: reasons.join("; "),
                policy: first.scope.policy.clone(),
            },
        }
    }

    /// Decides as if the lifted policies did not forbid, nor ask; what one permits by asking, it permits still.
    fn judge_without(&self, request: &Request, lifted: &[&str]) -> Result<Verdict, Verdict> {
        let applying = self.applying(request, lifted)?;
        let (eased, others): (Vec<&Rule>, Vec<&Rule>) = applying
            .into_iter()
            .partition(|rule| lifted.contains(&rule.id.as_str()));
        let verdict = super::verdict(&others);
        let is_permitted = !eased.is_empty() || lifted.contains(&NOBODY);
        if others.is_empty() && is_permitted {
            return Ok(Verdict {
                ruling: Ruling::Allow,
                ..verdict
            });
        }
        Ok(verdict)
    }

    fn is_final(&self, verdict: &Verdict) -> bool {
        self.rules.get(&verdict.policy).is_some_and(|rule| rule.is_final)
    }
}
