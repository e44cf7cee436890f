//! What concerns more than one run: registrations, the kill switch, suspensions, and who may be dispatched.

use conductor_domain::artifact::{Artifact, ArtifactKind};
use conductor_domain::effect::EffectKind;
use conductor_domain::id::{ProjectId, RepoId};
use conductor_domain::instance::{
    Admission, Instance, InstanceEvent, InstanceInput, InstanceRefusal, Registration, TestEgress, admit,
    decide_instance, evolve_instance,
};
use conductor_domain::policy::{LONGEST_POLICY, PolicyLayer, PolicyScope};
use conductor_domain::time::Timestamp;

use crate::world::{operator, spec};

fn project(name: &str) -> ProjectId {
    ProjectId::parse(name).expect("a slug")
}

fn registration(project_name: &str) -> Registration {
    Registration {
        project: project(project_name),
        repo: spec().repo,
        test_command: vec!["make".into()],
        slots: 2,
        test_egress: TestEgress::None,
        board: None,
    }
}

fn add(name: &str) -> InstanceInput {
    InstanceInput::AddProject {
        by: operator("ann"),
        project: project(name),
    }
}

fn register(registration: Registration) -> InstanceInput {
    InstanceInput::RegisterRepo {
        by: operator("ann"),
        registration,
    }
}

fn turn(on: bool) -> InstanceInput {
    InstanceInput::TurnKillSwitch {
        by: operator("ann"),
        on,
    }
}

fn limited(until: i64) -> InstanceInput {
    InstanceInput::ProviderLimited {
        account: "acme".into(),
        until: Timestamp(until),
    }
}

/// Gives inputs one after the other and returns the instance with what the last one came to.
fn after(inputs: &[InstanceInput]) -> (Instance, Result<usize, InstanceRefusal>) {
    let mut instance = Instance::default();
    let mut last = Ok(0);
    for input in inputs {
        last = decide_instance(&instance, input).map(|events| {
            for event in &events {
                instance = evolve_instance(std::mem::take(&mut instance), event);
            }
            events.len()
        });
    }
    (instance, last)
}

/// OWN-6: projects first, then repositories one by one; each refusal has its reason.
#[test]
fn registrations_are_refused_with_a_reason() {
    let mut without_tests = registration("p");
    without_tests.test_command.clear();
    let mut without_slots = registration("p");
    without_slots.slots = 0;
    let cases: [(&[InstanceInput], Result<usize, InstanceRefusal>); 9] = [
        (&[add("p")], Ok(1)),
        (
            &[add("p"), add("p")],
            Err(InstanceRefusal::ProjectExists(project("p"))),
        ),
        (&[add("p"), register(registration("p"))], Ok(1)),
        (
            &[register(registration("p"))],
            Err(InstanceRefusal::NoSuchProject(project("p"))),
        ),
        (
            &[add("p"), register(without_tests)],
            Err(InstanceRefusal::NoTestCommand),
        ),
        (&[add("p"), register(without_slots)], Err(InstanceRefusal::NoSlot)),
        (
            &[add("p"), register(registration("p")), register(registration("p"))],
            Ok(0),
        ),
        (
            &[
                add("p"),
                add("q"),
                register(registration("p")),
                register(registration("q")),
            ],
            Err(InstanceRefusal::RepoElsewhere {
                repo: "o/n".into(),
                project: project("p"),
            }),
        ),
        (
            &[turn(true), turn(true)],
            Err(InstanceRefusal::SwitchStands(true)),
        ),
    ];
    for (inputs, expected) in cases {
        assert_eq!(after(inputs).1, expected, "{inputs:?}");
    }
    let mut changed = registration("p");
    changed.slots = 5;
    let (instance, came) = after(&[add("p"), register(registration("p")), register(changed.clone())]);
    assert_eq!((came, instance.repos.get(&RepoId(42))), (Ok(1), Some(&changed)));
}

/// SEC-6, BEY-5, RUN-13: what may be dispatched, and what must wait.
#[test]
fn an_effect_waits_for_switch_suspension_and_slot() {
    let now = Timestamp(1000);
    let (instance, _) = after(&[add("p"), register(registration("p"))]);
    let check = |instance: &Instance, kind, account| admit(kind, RepoId(42), account, instance, now);
    let free = Admission::Admitted { slot: None };
    assert_eq!(
        check(&instance, EffectKind::PrepareWorkspace, None),
        Admission::Admitted {
            slot: Some((RepoId(42), 2))
        }
    );
    assert_eq!(
        admit(EffectKind::PrepareWorkspace, RepoId(1), None, &instance, now),
        Admission::Admitted {
            slot: Some((RepoId(1), 1))
        },
        "a repository that is no longer registered still has one slot"
    );
    assert_eq!(check(&instance, EffectKind::Invoke, Some("acme")), free);

    let (killed, _) = after(&[add("p"), register(registration("p")), turn(true)]);
    for kind in EffectKind::ALL {
        let waits = matches!(check(&killed, kind, None), Admission::Waits { until: None, .. });
        assert_eq!(waits, kind.executes_foreign_code(), "{kind}");
    }
    let (back, _) = after(&[add("p"), turn(true), turn(false)]);
    assert_eq!(check(&back, EffectKind::Invoke, None), free);

    let (suspended, _) = after(&[limited(2000)]);
    assert!(matches!(
        check(&suspended, EffectKind::Invoke, Some("acme")),
        Admission::Waits {
            until: Some(Timestamp(2000)),
            ..
        }
    ));
    assert_eq!(check(&suspended, EffectKind::Invoke, Some("other")), free);
    assert_eq!(check(&suspended, EffectKind::RunTests, Some("acme")), free);
    let (over, _) = after(&[limited(1000)]);
    assert_eq!(
        check(&over, EffectKind::Invoke, Some("acme")),
        free,
        "a reset time that has come holds nobody"
    );
}

/// BEY-5: only a later reset time is news.
#[test]
fn an_earlier_reset_time_is_no_news() {
    assert_eq!(after(&[limited(2000), limited(1500)]).1, Ok(0));
    assert_eq!(after(&[limited(2000), limited(2000)]).1, Ok(0));
    assert_eq!(
        after(&[limited(2000), limited(2500)]).0.suspensions.get("acme"),
        Some(&Timestamp(2500))
    );
}

/// SEC-8: anchored heads are kept as they are and change nothing else.
#[test]
fn heads_are_anchored() {
    let input = InstanceInput::HeadsCollected {
        heads: std::collections::BTreeMap::default(),
    };
    let events = decide_instance(&Instance::default(), &input).expect("accepted");
    assert_eq!(
        events,
        [InstanceEvent::HeadsAnchored {
            heads: std::collections::BTreeMap::default()
        }]
    );
    assert_eq!(
        evolve_instance(Instance::default(), &events[0]),
        Instance::default()
    );
}

/// OWN-5a: an event goes by the same name on pages as in records; what a registration does not say is not written.
#[test]
fn events_and_registrations_are_written_as_they_are_named() {
    let heads = InstanceInput::HeadsCollected {
        heads: std::collections::BTreeMap::new(),
    };
    let with_way_out = Registration {
        test_egress: TestEgress::AsProject,
        ..registration("acme")
    };
    let mut instance = Instance::default();
    let mut names = Vec::new();
    for input in [
        add("acme"),
        register(with_way_out.clone()),
        turn(true),
        limited(9),
        heads,
        InstanceInput::SetPolicy {
            by: operator("ann"),
            scope: PolicyScope::Project {
                project: project("acme"),
            },
            text: Artifact::of(ArtifactKind::Policy, b"text"),
        },
    ] {
        for event in decide_instance(&instance, &input).expect("allowed") {
            let written = serde_json::to_value(&event).expect("plain");
            assert_eq!(written["event"], event.name());
            names.push(event.name());
            instance = evolve_instance(instance, &event);
        }
    }
    assert_eq!(
        names,
        [
            "project_added",
            "repo_registered",
            "kill_switch_turned",
            "provider_suspended",
            "heads_anchored",
            "policy_set"
        ]
    );
    let written = |registration: &Registration| serde_json::to_value(registration).expect("plain");
    assert_eq!(written(&with_way_out)["test_egress"], "as_project");
    assert!(written(&registration("acme")).get("test_egress").is_none());
}

/// SEC-1: every text is a version of its own, none is ever changed, and the newest of project and repository count together.
#[test]
fn policies_have_versions_and_the_newest_count_together() {
    let text = |words: &str| Artifact::of(ArtifactKind::Policy, words.as_bytes());
    let of_project = PolicyScope::Project {
        project: project("p"),
    };
    let of_repo = PolicyScope::Repo { repo: RepoId(42) };
    let set = |scope: &PolicyScope, text: Artifact| InstanceInput::SetPolicy {
        by: operator("ann"),
        scope: scope.clone(),
        text,
    };
    let (instance, _) = after(&[
        add("p"),
        register(registration("p")),
        set(&of_project, text("one")),
        set(&of_repo, text("own")),
        set(&of_project, text("two")),
    ]);
    let newest = instance.policies_for(&project("p"), Some(RepoId(42)));
    let newest: Vec<(PolicyLayer, u32, Artifact)> = newest
        .into_iter()
        .map(|locked| (locked.layer, locked.version, locked.text))
        .collect();
    assert_eq!(
        newest,
        [
            (PolicyLayer::Project, 2, text("two")),
            (PolicyLayer::Repository, 1, text("own")),
        ]
    );
    let versions = instance.policy_of(&of_project).expect("it was set");
    assert_eq!(versions.version(1).map(|stored| &stored.text), Some(&text("one")));
    assert_eq!((versions.version(0), versions.version(3)), (None, None));
    assert_eq!(instance.policies_for(&project("p"), None).len(), 1);
    assert_eq!(instance.policies_for(&project("q"), Some(RepoId(7))), []);
    // What counts already is no new version, what stood there before is.
    assert_eq!(
        decide_instance(&instance, &set(&of_project, text("two"))),
        Ok(vec![])
    );
    let again = decide_instance(&instance, &set(&of_project, text("one"))).expect("a version");
    assert!(
        matches!(again.as_slice(), [InstanceEvent::PolicySet { version: 3, .. }]),
        "{again:?}"
    );
    let cut = Artifact {
        truncated: true,
        ..text("x")
    };
    let of_length = |bytes: u64| Artifact { bytes, ..text("x") };
    assert_eq!(LONGEST_POLICY, 65_536);
    let longest = decide_instance(&instance, &set(&of_project, of_length(LONGEST_POLICY)));
    assert_eq!(longest.map(|events| events.len()), Ok(1));
    let long = of_length(LONGEST_POLICY + 1);
    let layers = [
        PolicyLayer::Shipped,
        PolicyLayer::Project,
        PolicyLayer::Repository,
        PolicyLayer::Run,
    ];
    assert!(layers.is_sorted());
    assert_eq!(
        layers.map(|layer| layer.to_string()),
        ["shipped", "project", "repository", "run"]
    );
    for (input, refusal) in [
        (
            set(
                &PolicyScope::Project {
                    project: project("q"),
                },
                text("x"),
            ),
            InstanceRefusal::NoSuchProject(project("q")),
        ),
        (
            set(&PolicyScope::Repo { repo: RepoId(7) }, text("x")),
            InstanceRefusal::NoSuchRepo(RepoId(7)),
        ),
        (set(&of_project, cut), InstanceRefusal::PolicyTooLong),
        (set(&of_project, long), InstanceRefusal::PolicyTooLong),
    ] {
        assert_eq!(decide_instance(&instance, &input), Err(refusal));
    }
}
