//! Answers for stored policies: locks them for a run, reads their texts, judges questions, checks expectations (SEC-1).
//!
//! The same for a server and for a database without one. It does not know where a text counts.

use std::sync::Arc;

use async_trait::async_trait;
use conductor_domain::artifact::ArtifactKind;
use conductor_domain::digest::Digest;
use conductor_domain::fault::Fault;
use conductor_domain::policy::{LONGEST_POLICY, LockedPolicy, PolicyLayer};
use conductor_domain::spec::PolicyVersion;
use conductor_policy::authority::{self, Authority, SHIPPED, expect_all, read_question};
use conductor_policy::inspect::{self, Inspector, Limits};
use conductor_policy::secret::{self, live::LiveSecrets};
use conductor_policy::supply;
use conductor_port::blobs::Blobs;
use conductor_port::known;
use conductor_web::api::{ExpectedView, FlawView, MismatchView, PolicyText, RuleView, RulingView};
use conductor_web::{PolicyLock, Rules};

use super::Records;

/// Answers for stored policies.
#[derive(Debug)]
pub(crate) struct PolicyDesk {
    blobs: Arc<dyn Blobs>,
}

impl Records {
    /// Answers for the policies that are kept here.
    pub(crate) fn rules(&self) -> PolicyDesk {
        PolicyDesk { blobs: self.blobs() }
    }
}

impl PolicyDesk {
    /// Compiles what counts together, with Conductor's own below where it is not among them.
    async fn authority(&self, of: &[LockedPolicy]) -> Result<Authority, Fault> {
        let texts = self.texts(of).await?;
        let layers: Vec<(PolicyLayer, &str)> = texts
            .iter()
            .filter(|text| !of.is_empty() || text.layer != PolicyLayer::Shipped)
            .map(|text| (text.layer, text.text.as_str()))
            .collect();
        let has_own = layers.iter().any(|(layer, _)| *layer == PolicyLayer::Shipped);
        let compiled = if has_own {
            Authority::locked(&layers)
        } else {
            Authority::new(&layers)
        };
        compiled.map_err(|flaws| {
            let flaws: Vec<String> = flaws.iter().map(ToString::to_string).collect();
            Fault::permanent(format!("stored policies cannot be used: {}", flaws.join("; ")))
        })
    }
}

#[async_trait]
impl Rules for PolicyDesk {
    async fn lock(
        &self,
        stored: Vec<LockedPolicy>,
        own: Option<&str>,
    ) -> Result<Result<PolicyLock, Vec<String>>, Fault> {
        let shipped = self.blobs.put(ArtifactKind::Policy, SHIPPED.as_bytes()).await?;
        let mut policies = vec![LockedPolicy {
            layer: PolicyLayer::Shipped,
            version: 0,
            text: shipped,
        }];
        policies.extend(stored);
        if let Some(own) = own {
            if own.len() as u64 > LONGEST_POLICY {
                return Ok(Err(vec![format!(
                    "run policies, 1:1: they are longer than {LONGEST_POLICY} bytes"
                )]));
            }
            // What is kept is shown, so it must hold nothing that would have to be redacted.
            if !secret::scan(own.as_bytes()).is_empty() {
                return Ok(Err(vec!["run policies, 1:1: they hold a secret".to_owned()]));
            }
            let flaws = authority::check(PolicyLayer::Run, own);
            if !flaws.is_empty() {
                return Ok(Err(flaws.iter().map(ToString::to_string).collect()));
            }
            policies.push(LockedPolicy {
                layer: PolicyLayer::Run,
                version: 0,
                text: self.blobs.put(ArtifactKind::Policy, own.as_bytes()).await?,
            });
        }
        let compiled = conductor_engine::rules::compile(self.blobs.as_ref(), &policies).await?;
        Ok(compiled.map(|authority| PolicyLock {
            version: PolicyVersion(authority.version().to_string()),
            policies,
        }))
    }

    async fn texts(&self, of: &[LockedPolicy]) -> Result<Vec<PolicyText>, Fault> {
        if of.is_empty() {
            return Ok(vec![PolicyText {
                layer: PolicyLayer::Shipped,
                version: 0,
                text: SHIPPED.to_owned(),
            }]);
        }
        let mut texts = Vec::with_capacity(of.len());
        for policy in of {
            let digest: &Digest = &policy.text.digest;
            let kept = self.blobs.get(digest).await?;
            let kept =
                kept.ok_or_else(|| Fault::permanent(format!("policy {digest} {}", known::NOT_KEPT)))?;
            texts.push(PolicyText {
                layer: policy.layer,
                version: policy.version,
                text: String::from_utf8_lossy(&kept).into_owned(),
            });
        }
        Ok(texts)
    }

    async fn judge(&self, of: &[LockedPolicy], question: &str) -> Result<Result<RulingView, String>, Fault> {
        let request = match read_question(question) {
            Ok(request) => request,
            Err(what) => return Ok(Err(what)),
        };
        let authority = self.authority(of).await?;
        let (verdict, rules) = authority.explain(&request);
        let rules = rules.into_iter().map(|rule| RuleView {
            id: rule.id,
            layer: rule.layer,
            decision: rule.ruling.to_string(),
            reason: rule.reason,
            is_final: rule.is_final,
        });
        Ok(Ok(RulingView {
            decision: verdict.ruling.to_string(),
            reason: verdict.reason,
            policy: verdict.policy,
            rules: rules.collect(),
            version: authority.version().clone(),
        }))
    }

    async fn flaws(
        &self,
        below: &[LockedPolicy],
        layer: PolicyLayer,
        text: &str,
    ) -> Result<Vec<FlawView>, Fault> {
        let whole = |message: String| FlawView {
            layer,
            line: 1,
            column: 1,
            message,
        };
        if text.len() as u64 > LONGEST_POLICY {
            return Ok(vec![whole(format!("it is longer than {LONGEST_POLICY} bytes"))]);
        }
        if !secret::scan(text.as_bytes()).is_empty() {
            return Ok(vec![whole(
                "it holds a secret, which would be kept and shown".to_owned(),
            )]);
        }
        let kept = match below {
            [] => vec![],
            below => self.texts(below).await?,
        };
        let mut layers: Vec<(PolicyLayer, &str)> = kept
            .iter()
            .map(|known| (known.layer, known.text.as_str()))
            .collect();
        layers.push((layer, text));
        layers.sort_by_key(|(layer, _)| *layer);
        let flaws = Authority::new(&layers).err().unwrap_or_default().into_iter();
        Ok(flaws
            .map(|flaw| FlawView {
                layer: flaw.layer,
                line: flaw.line,
                column: flaw.column,
                message: flaw.message,
            })
            .collect())
    }

    fn concern(&self, path: &str) -> Option<String> {
        if supply::is_manifest(path) {
            return Some("it decides what is depended on".to_owned());
        }
        let change = inspect::Change {
            path,
            before: inspect::Side::Absent,
            after: inspect::Side::File(b"x\n"),
            marks: &[],
        };
        let inspector = Inspector::new(Limits::default(), vec![], LiveSecrets::new([]));
        let objection = inspector
            .inspect(&[change], &[path.to_owned()])
            .into_iter()
            .next()?;
        Some(match objection.evidence.as_str() {
            "" => "it is more than an ordinary file".to_owned(),
            evidence => format!("it is more than an ordinary file: {evidence}"),
        })
    }

    async fn expect(&self, of: &[LockedPolicy], expectations: &str) -> Result<ExpectedView, Fault> {
        let authority = self.authority(of).await?;
        let (held, mismatches) = expect_all(&authority, expectations);
        let mismatches = mismatches.into_iter().map(|mismatch| MismatchView {
            line: mismatch.line,
            message: mismatch.message,
        });
        Ok(ExpectedView {
            held,
            mismatches: mismatches.collect(),
        })
    }
}
