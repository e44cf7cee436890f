//! A world in which everything that somebody else can write is hostile.
//!
//! Which fields those are is found out, not listed: every text in every golden record, in the run states that these
//! records lead to and in the instance is replaced wherever its type takes any text at all. A field that is added later is
//! hostile here by itself.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;

use conductor_domain::digest::Digest;
use conductor_domain::event::Event;
use conductor_domain::evolve;
use conductor_domain::id::{EffectId, RunId};
use conductor_domain::instance::Instance;
use conductor_domain::run::Run;
use conductor_domain::time::Timestamp;
use conductor_port::blobs::ToolCall;
use conductor_port::ledger::{ForgeWrite, Record, RunRow, StreamId};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::access::staffed;
use crate::fake::{Fake, row};

/// Everything hostile that is tried, each string its own attack.
pub(crate) static HOSTILE: LazyLock<Vec<String>> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../../testdata/hostile.json")).expect("a list of strings")
});

/// Stands in every hostile text, so that a page that shows one can be told from a page that shows none.
pub(crate) const MARK: &str = "zqxj";

/// Told in this order, golden events make a whole life; the others are told beside it.
const LIFE: [&str; 22] = [
    "run_started.skills",
    "issue_snapshotted",
    "workspace_prepared",
    "planning_began",
    "plan_drafted",
    "plan_reviewed",
    "plan_proposed",
    "gate_approved",
    "execution_began",
    "implementation_finished",
    "work_committed",
    "testing_began",
    "tests_ran",
    "tests_interpreted",
    "implementation_review_began",
    "implementation_reviewed",
    "proposal_began",
    "diff_inspected.evidence",
    "diff_gate_opened.evidence",
    "pushed",
    "pull_request_opened",
    "merge_awaited",
];

/// A golden record of a run, with the places in it where its type takes any text.
struct Golden {
    class: String,
    kind: String,
    value: Value,
    places: Vec<String>,
}

static GOLDEN: LazyLock<Vec<Golden>> = LazyLock::new(|| {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../conductor-engine/testdata/record/v1");
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).expect("the golden records are there") {
        let path = entry.expect("a file").path();
        let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
        let Some(kind) = name
            .strip_prefix("run-")
            .and_then(|name| name.strip_suffix(".json"))
        else {
            continue;
        };
        let (class, kind) = kind.split_once('-').expect("a class and a kind");
        let text = std::fs::read_to_string(&path).expect("text");
        let value = serde_json::from_str(&text).expect("json");
        let places = match class {
            "decision" => places::<Event>(&value),
            _ => places::<Value>(&value),
        };
        found.push(Golden {
            class: class.to_owned(),
            kind: kind.to_owned(),
            value,
            places,
        });
    }
    found.sort_by(|one, other| (&one.class, &one.kind).cmp(&(&other.class, &other.kind)));
    found
});

/// Finds the places where a type takes any text at all.
fn places<T: DeserializeOwned>(value: &Value) -> Vec<String> {
    fn texts(value: &Value, at: &str, found: &mut Vec<String>) {
        match value {
            Value::String(_) => found.push(at.to_owned()),
            Value::Array(list) => {
                for (index, one) in list.iter().enumerate() {
                    texts(one, &format!("{at}/{index}"), found);
                }
            }
            Value::Object(map) => {
                for (key, one) in map {
                    let key = key.replace('~', "~0").replace('/', "~1");
                    texts(one, &format!("{at}/{key}"), found);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    let mut found = Vec::new();
    texts(value, "", &mut found);
    found.retain(|place| {
        let mut tried = value.clone();
        speak(&mut tried, place, "<any text=\"at all\">\n\u{202e}'");
        T::deserialize(&tried).is_ok()
    });
    found
}

fn speak(value: &mut Value, place: &str, text: &str) {
    *value.pointer_mut(place).expect("a place in it") = Value::String(text.to_owned());
}

/// Finds every digest in a text of JSON.
fn digests(json: &str) -> impl Iterator<Item = Digest> {
    json.split('"').filter_map(|word| Digest::parse(word).ok())
}

/// A world that speaks one hostile text wherever it can, and how many places that are.
pub(crate) struct Poisoned {
    pub(crate) fake: Fake,
    pub(crate) runs: Vec<RunId>,
    /// What a test of the first run printed.
    pub(crate) output: Digest,
    pub(crate) places: usize,
}

/// Makes a world in which everybody else says `text`.
pub(crate) fn poisoned(text: &str) -> Poisoned {
    let text = &format!("{text}{MARK}");
    let fake = staffed();
    let mut count = 0;
    let mut events: BTreeMap<String, Event> = BTreeMap::new();
    let mut records = Vec::new();
    for golden in GOLDEN.iter() {
        let mut value = golden.value.clone();
        for place in &golden.places {
            speak(&mut value, place, text);
        }
        count += golden.places.len();
        if golden.class == "decision" {
            let event = serde_json::from_value(value.clone()).expect("it takes any text");
            events.insert(golden.kind.clone(), event);
        }
        records.push((golden.class.clone(), golden.kind.clone(), value));
    }
    let states = states(&events);
    let mut world = fake.world();
    world.rows.clear();
    let mut runs = Vec::new();
    for (place, state) in states.into_iter().enumerate() {
        let mut row = row_of(&format!("r-{place}"), &state);
        row.title.clone_from(text);
        row.repo_name.clone_from(text);
        runs.push(row.run.clone());
        world.rows.push(row);
    }
    let first = runs.first().expect("there are states").clone();
    // The log shows facts as it shows decisions: as they are.
    records.retain(|(class, kind, _)| class == "decision" || kind.starts_with("performed.i"));
    for (place, (class, kind, value)) in records.into_iter().enumerate() {
        let payload = value.to_string();
        world
            .records
            .push(record(&first, place, &class, &kind, payload, text));
    }
    let mut instance = serde_json::to_value(&world.instance).expect("plain data");
    // The name of a repository is checked when it is registered.
    let is_free = |place: &String| !place.ends_with("/repo/owner") && !place.ends_with("/repo/name");
    for place in places::<Instance>(&instance).into_iter().filter(is_free) {
        speak(&mut instance, &place, text);
        count += 1;
    }
    world.instance = serde_json::from_value(instance).expect("it takes any text");
    let kept: Vec<Digest> = {
        let states = world.rows.iter().map(|row| row.state.as_str());
        let told = world.records.iter().map(|record| record.payload.as_str());
        states.chain(told).flat_map(digests).collect()
    };
    for digest in kept {
        world.blobs.insert(digest, text.as_bytes().to_vec());
    }
    let Some(Event::TestsRan { tests, .. }) = events.get("tests_ran") else {
        panic!("there is no golden record of a test");
    };
    let output = tests.output.digest.clone();
    // What a diff looks like decides how it is shown.
    let diff = format!("--- a/{text}\n+++ b/{text}.rs\n@@ -1 +1 @@\n-{text}\n+{text}\n");
    if let Some(Event::DiffInspected { inspection }) = events.get("diff_inspected.evidence") {
        let rendered = inspection.rendered.digest.clone();
        world.blobs.insert(rendered, diff.into_bytes());
    }
    world.writes = vec![write(&first, text)];
    world.calls = vec![call(&first, text)];
    drop(world);
    Poisoned {
        fake,
        runs,
        output,
        places: count,
    }
}

/// The states that events lead to, one of each look: at every step of a life, and with everything beside it.
fn states(events: &BTreeMap<String, Event>) -> Vec<Run> {
    let mut found: BTreeMap<String, Run> = BTreeMap::new();
    let mut keep = |run: &Run| {
        let gate = run.gate().map(|gate| gate.kind.to_string());
        let look = format!(
            "{} {gate:?} {:?} {} {}",
            run.phase.name(),
            run.holds
                .iter()
                .map(conductor_domain::hold::Hold::kind)
                .collect::<Vec<_>>(),
            run.pull_request.is_some(),
            run.clean_up_failed.is_some(),
        );
        found.entry(look).or_insert_with(|| run.clone());
    };
    let mut alive = None;
    for kind in LIFE {
        let event = events.get(kind).unwrap_or_else(|| panic!("no golden {kind}"));
        alive = evolve(alive, event);
        let run = alive.as_ref().expect("the first event starts it");
        keep(run);
        let is_busy = matches!(kind, "execution_began" | "merge_awaited");
        for aside in events.values().filter(|_| is_busy) {
            let aside = evolve(Some(run.clone()), aside).expect("it was started");
            keep(&aside);
        }
    }
    let mut states: Vec<Run> = found.into_values().collect();
    // The one with the records comes first; it has seen the most.
    states.sort_by_key(|run| run.pull_request.is_none());
    states
}

fn row_of(id: &str, run: &Run) -> RunRow {
    let mut run = run.clone();
    run.spec.run = RunId::parse(id).expect("a slug");
    RunRow {
        phase: run.phase.name().to_string(),
        held: run.is_held(),
        needs_human: run.needs_human(),
        terminal: run.phase.is_terminal(),
        state: serde_json::to_string(&run).expect("plain data"),
        ..row(id, 1, None)
    }
}

fn record(run: &RunId, place: usize, class: &str, kind: &str, payload: String, text: &str) -> Record {
    Record {
        stream: StreamId::Run(run.clone()).as_key(),
        seq: u64::try_from(place).expect("a short story") + 1,
        event_id: format!("e{place}"),
        schema_version: 1,
        class: class.to_owned(),
        kind: format!("{kind} {text}"),
        payload,
        payload_hash: text.to_owned(),
        actor_type: text.to_owned(),
        actor: text.to_owned(),
        cause: text.to_owned(),
        at: Timestamp(1),
        hash: text.to_owned(),
    }
}

fn call(run: &RunId, text: &str) -> ToolCall {
    ToolCall {
        invocation: EffectId::parse(format!("{run}.2.0")).expect("an effect's name"),
        run: run.clone(),
        n: 1,
        tool: text.to_owned(),
        target: text.to_owned(),
        payload_hash: text.to_owned(),
        decision: text.to_owned(),
        reason: text.to_owned(),
        result: text.to_owned(),
        at: Timestamp(1),
        hash: text.to_owned(),
    }
}

fn write(run: &RunId, text: &str) -> ForgeWrite {
    ForgeWrite {
        effect: EffectId::parse(format!("{run}.1.0")).expect("an effect's name"),
        run: run.clone(),
        kind: text.to_owned(),
        actor_type: text.to_owned(),
        target: text.to_owned(),
        payload_hash: text.to_owned(),
        decision: text.to_owned(),
        reason: text.to_owned(),
        result: text.to_owned(),
        at: Timestamp(1),
    }
}
