//! Decides who may do what to which target: allow, deny or ask a person, always with a reason and the deciding policy.
//!
//! Policies are Cedar, in layers: what Conductor ships, then project, repository and run. A lower layer replaces a
//! policy by its id, except a final one. Nothing is allowed that no policy permits (SEC-1). A set is immutable and
//! known by the digest of its texts, so a run can keep the version it started with.
//!
//! This module does not know where policies are stored, nor the clock: callers bring both.

mod request;
mod flaw;
mod careless;
mod expectation;
mod relief;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::str::FromStr;
use std::sync::{Arc, LazyLock};

use cedar_policy::{
    ActionConstraint, Authorizer, Decision, Effect, PolicyId, PolicySet, Schema, ValidationMode,
    ValidationWarning, Validator,
};
use conductor_domain::digest::Digest;

/// Where a policy text belongs; later ones replace earlier ones.
pub use conductor_domain::policy::PolicyLayer as Layer;
pub use expectation::{Mismatch, expect_all, read_question};
pub use flaw::Flaw;
pub use request::{Action, Actor, Change, Level, Request, Standing, Target};

/// The policies that every instance starts with.
pub const SHIPPED: &str = include_str!("authority/default.cedar");
/// A layer for repositories that strangers write in (BEY-10).
pub const LOW_TRUST: &str = include_str!("authority/low-trust.cedar");

static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
    let (schema, _warnings) = Schema::from_cedarschema_str(include_str!("authority/schema.cedarschema"))
        .expect("the shipped schema is valid; every test relies on it");
    schema
});

/// What the deepest policy that may be written takes to be followed, several times over.
const STACK: usize = 32 * 1024 * 1024;
/// A policy that nests no deeper is followed on any thread's own stack.
const SHALLOW: usize = 64;

/// What decides when no policy does.
pub const NOBODY: &str = "deny-by-default";

/// What is decided about a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// Yes, no, or ask.
    pub ruling: Ruling,
    /// Why, for people.
    pub reason: String,
    /// The policy that decided; `deny-by-default` when none did.
    pub policy: String,
}

/// Yes, no, or ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ruling {
    /// It may be done.
    Allow,
    /// A person must approve it first.
    RequireApproval,
    /// It may not be done.
    Deny,
}

impl std::fmt::Display for Ruling {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Allow => "allow",
            Self::RequireApproval => "require_approval",
            Self::Deny => "deny",
        })
    }
}

/// One policy as it counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// Its id.
    pub id: String,
    /// Where it was written last.
    pub layer: Layer,
    /// Why it is there.
    pub reason: String,
    /// What follows when it applies.
    pub ruling: Ruling,
    /// Whether lower layers and overrides must leave it alone.
    pub is_final: bool,
}

/// Policies that count together.
#[derive(Debug, Clone)]
pub struct Authority {
    /// The policies that can apply to an action at all: nobody waits for the others to say that they do not.
    policies: BTreeMap<Action, PolicySet>,
    rules: BTreeMap<String, Rule>,
    version: Digest,
    /// Whether one of them may need more stack than a thread has.
    is_deep: bool,
}

impl Authority {
    /// Returns what Conductor ships, with no layer over it.
    pub fn shipped() -> Arc<Self> {
        static ALONE: LazyLock<Arc<Authority>> = LazyLock::new(|| {
            let shipped = Authority::new(&[]);
            Arc::new(shipped.expect("the shipped policies are valid; every test relies on them"))
        });
        Arc::clone(&ALONE)
    }

    /// Compiles the shipped policies with further layers over them, in the order of their layers. What could never apply, or
    /// would not do what it says, is refused here, before it is stored; a run that locked such a policy goes on as it began.
    pub fn new(layers: &[(Layer, &str)]) -> Result<Self, Vec<Flaw>> {
        let shipped = (Layer::Shipped, SHIPPED);
        let authority = Self::locked(&[layers, &[shipped]].concat())?;
        let vain = layers.iter().flat_map(|(layer, text)| vain(*layer, text));
        let vain: Vec<Flaw> = vain.collect();
        if vain.is_empty() { Ok(authority) } else { Err(vain) }
    }

    /// Compiles exactly these layers, as a run keeps them: what is shipped now does not count unless it is among them.
    pub fn locked(layers: &[(Layer, &str)]) -> Result<Self, Vec<Flaw>> {
        let mut layers: Vec<(Layer, &str)> = layers.to_vec();
        layers.sort_by_key(|(layer, _)| *layer);
        let mut chosen = BTreeMap::new();
        let mut rules: BTreeMap<String, Rule> = BTreeMap::new();
        let version = address(
            layers
                .iter()
                .map(|(layer, text)| (*layer, Digest::of(text.as_bytes()))),
        );
        let mut is_deep = false;
        for (layer, text) in layers {
            is_deep |= flaw::of_depth(layer, text).is_ok_and(|depth| depth > SHALLOW);
            for (rule, policy, at) in read(layer, text)? {
                if rules
                    .get(&rule.id)
                    .is_some_and(|upper| upper.is_final && upper.layer < layer)
                {
                    let message = format!("policy `{}` is final", rule.id);
                    return Err(vec![Flaw::at(layer, text, at, message)]);
                }
                chosen.insert(rule.id.clone(), policy);
                rules.insert(rule.id.clone(), rule);
            }
        }
        let mut policies = BTreeMap::new();
        for action in Action::all() {
            let concerned = chosen.values().filter(|policy| concerns(policy, action));
            let set = PolicySet::from_policies(concerned.cloned())
                .map_err(|error| vec![Flaw::whole(Layer::Run, error.to_string())])?;
            policies.insert(action, set);
        }
        Ok(Self {
            policies,
            rules,
            version,
            is_deep,
        })
    }

    /// Returns the address of exactly these policies.
    pub fn version(&self) -> &Digest {
        &self.version
    }

    /// Decides.
    pub fn judge(&self, request: &Request) -> Verdict {
        match self.applying(request, &[]) {
            Ok(applying) => verdict(&applying),
            Err(unfit) => unfit,
        }
    }

    /// Decides, and lists every policy that decided it, the one that is named first.
    pub fn explain(&self, request: &Request) -> (Verdict, Vec<Rule>) {
        match self.applying(request, &[]) {
            Ok(applying) => (verdict(&applying), applying.into_iter().cloned().collect()),
            Err(unfit) => (unfit, Vec::new()),
        }
    }

    /// Lists the policies that apply and count most, the strictest first. A lifted one that forbids is not asked; one that
    /// asks a person is, because it permits as well.
    fn applying(&self, request: &Request, lifted: &[&str]) -> Result<Vec<&Rule>, Verdict> {
        let unfit = |why: String| Verdict {
            ruling: Ruling::Deny,
            reason: why,
            policy: NOBODY.to_owned(),
        };
        let (asked, entities) = request.compile(&SCHEMA).map_err(unfit)?;
        let policies = self.policies.get(&request.action);
        let policies = policies.ok_or_else(|| unfit("there is no such action".to_owned()))?;
        let mut policies = Cow::Borrowed(policies);
        for rule in lifted.iter().filter_map(|id| self.rules.get(*id)) {
            if rule.ruling == Ruling::Deny {
                let removed = policies.to_mut().remove_static(PolicyId::new(&rule.id));
                removed.map_err(|error| unfit(format!("`{}` could not be lifted: {error}", rule.id)))?;
            }
        }
        let ask = || Authorizer::new().is_authorized(&asked, &policies, &entities);
        let response = if self.is_deep { with_stack(ask) } else { ask() };
        // A policy that could not be evaluated must not count as one that did not apply.
        if let Some(error) = response.diagnostics().errors().next() {
            return Err(unfit(format!("a policy could not be evaluated: {error}")));
        }
        let mut applying: Vec<&Rule> = response
            .diagnostics()
            .reason()
            .filter_map(|id| self.rules.get(AsRef::<str>::as_ref(id)))
            .filter(|rule| (rule.ruling == Ruling::Deny) == (response.decision() == Decision::Deny))
            .collect();
        applying.sort_by_key(|rule| (std::cmp::Reverse(rule.ruling), !rule.is_final, &rule.id));
        Ok(applying)
    }
}

/// Tells from a policy's head whether it can apply to an action. No action of the schema is a group of others.
fn concerns(policy: &cedar_policy::Policy, action: Action) -> bool {
    let action = action.uid();
    match policy.action_constraint() {
        ActionConstraint::Any => true,
        ActionConstraint::In(actions) => actions.contains(&action),
        ActionConstraint::Eq(only) => only == action,
    }
}

fn verdict(applying: &[&Rule]) -> Verdict {
    applying.first().map_or_else(
        || Verdict {
            ruling: Ruling::Deny,
            reason: "no policy permits it".to_owned(),
            policy: NOBODY.to_owned(),
        },
        |rule| Verdict {
            ruling: rule.ruling,
            reason: rule.reason.clone(),
            policy: rule.id.clone(),
        },
    )
}

/// Tells the address of texts that count together from their own addresses.
pub fn address(texts: impl IntoIterator<Item = (Layer, Digest)>) -> Digest {
    let mut texts: Vec<(Layer, Digest)> = texts.into_iter().collect();
    texts.sort_by_key(|(layer, _)| *layer);
    let lines: Vec<String> = texts
        .iter()
        .map(|(layer, digest)| format!("{layer} {digest}\n"))
        .collect();
    Digest::of(lines.concat().as_bytes())
}

/// Checks one layer's text by itself, as before it is saved.
pub fn check(layer: Layer, text: &str) -> Vec<Flaw> {
    match read(layer, text) {
        Ok(_policies) => vain(layer, text),
        Err(flaws) => flaws,
    }
}

/// Finds what a valid text says in vain.
fn vain(layer: Layer, text: &str) -> Vec<Flaw> {
    with_stack(|| {
        let mut flaws = idle(layer, text);
        flaws.extend(careless::flaws(layer, text));
        flaws
    })
}

/// Finds policies that nobody's question could ever fall under: one that is taken must have an effect (SEC-1).
fn idle(layer: Layer, text: &str) -> Vec<Flaw> {
    let Ok(set) = PolicySet::from_str(text) else {
        return Vec::new();
    };
    let result = Validator::new(SCHEMA.clone()).validate(&set, ValidationMode::Strict);
    result
        .validation_warnings()
        .filter(|warning| matches!(warning, ValidationWarning::InvalidActionApplication(_)))
        .map(|warning| Flaw::of(layer, text, warning))
        .collect()
}

/// Makes what tells where a policy of the text begins, by the number that Cedar gave it.
fn begin(text: &str) -> impl Fn(&PolicyId) -> usize {
    let beginnings = flaw::beginnings(text);
    move |id| {
        let number = AsRef::<str>::as_ref(id).strip_prefix("policy");
        let number = number.and_then(|number| number.parse::<usize>().ok());
        number
            .and_then(|number| beginnings.get(number).copied())
            .unwrap_or(0)
    }
}

/// Lists the policies of a text in the order they are written in, each with where it begins.
fn placed<'a>(set: &'a PolicySet, text: &str) -> Vec<(usize, &'a cedar_policy::Policy)> {
    let begin = begin(text);
    let mut policies: Vec<_> = set
        .policies()
        .map(|policy| (begin(policy.id()), policy))
        .collect();
    policies.sort_by_key(|(at, _)| *at);
    policies
}

/// Reads one layer: every policy valid, with an id of its own and a reason, and where it begins.
fn read(layer: Layer, text: &str) -> Result<Vec<(Rule, cedar_policy::Policy, usize)>, Vec<Flaw>> {
    flaw::of_depth(layer, text).map_err(|flaw| vec![flaw])?;
    with_stack(|| read_bounded(layer, text))
}

/// Gives Cedar, which calls itself for whatever stands within something else, the stack that it needs for what may be written.
fn with_stack<T>(follow: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(STACK / 2, STACK, follow)
}

fn read_bounded(layer: Layer, text: &str) -> Result<Vec<(Rule, cedar_policy::Policy, usize)>, Vec<Flaw>> {
    let set = PolicySet::from_str(text).map_err(|errors| flaw::of_parsing(layer, text, &errors))?;
    let mut flaws = Vec::new();
    let result = Validator::new(SCHEMA.clone()).validate(&set, ValidationMode::Strict);
    flaws.extend(
        result
            .validation_errors()
            .map(|error| Flaw::of(layer, text, error)),
    );
    let begin = begin(text);
    if let Some(template) = set.templates().next() {
        let message = "templates are not supported".to_owned();
        flaws.push(Flaw::at(layer, text, begin(template.id()), message));
    }
    let mut read: Vec<(Rule, cedar_policy::Policy, usize)> = Vec::new();
    for (at, policy) in placed(&set, text) {
        match rule(layer, policy) {
            Ok(rule) if read.iter().any(|(other, ..)| other.id == rule.id) => {
                let message = format!("two policies have the id `{}`", rule.id);
                flaws.push(Flaw::at(layer, text, at, message));
            }
            Ok(rule) => {
                let policy = policy.new_id(PolicyId::new(&rule.id));
                read.push((rule, policy, at));
            }
            Err(message) => flaws.push(Flaw::at(layer, text, at, message)),
        }
    }
    if flaws.is_empty() { Ok(read) } else { Err(flaws) }
}

fn rule(layer: Layer, policy: &cedar_policy::Policy) -> Result<Rule, String> {
    let note = |key: &str| policy.annotation(key).filter(|value| !value.trim().is_empty());
    let id = note("id").ok_or("a policy has no @id(\"…\")")?;
    let reason = note("reason").ok_or_else(|| format!("policy `{id}` has no @reason(\"…\")"))?;
    let ruling = match (policy.effect(), note("decision")) {
        (Effect::Permit, None) => Ruling::Allow,
        (Effect::Permit, Some("require_approval")) => Ruling::RequireApproval,
        (Effect::Forbid, None) => Ruling::Deny,
        (_, Some(other)) => {
            return Err(format!(
                "policy `{id}`: a decision `{other}` does not fit its effect"
            ));
        }
    };
    Ok(Rule {
        id: id.to_owned(),
        layer,
        reason: reason.to_owned(),
        ruling,
        is_final: note("final") == Some("true"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_policies_about_an_action_are_asked_about_it() {
        let asked = |action| Authority::shipped().policies[&action].policies().count();
        let counts = [Action::View, Action::StrReplace, Action::Bash, Action::TrustText].map(asked);
        assert_eq!(counts, [1, 3, 2, 1]);
    }

    /// A policy about a group would not be found by its members; a forbidding one would be passed over.
    #[test]
    fn every_action_of_the_schema_is_known_and_none_is_a_group() {
        assert_eq!(SCHEMA.action_groups().count(), 0);
        let mut known: Vec<_> = Action::all().map(Action::uid).collect();
        let mut written: Vec<_> = SCHEMA.actions().cloned().collect();
        known.sort_by_key(ToString::to_string);
        written.sort_by_key(ToString::to_string);
        assert_eq!(known, written);
    }
}
