//! What `--json` prints, command by command, and how each ends; scripts rely on both.

use serde_json::Value;

use crate::stage::Stage;

/// What a value is made of, without what it says: keys in order, the first of a list, kinds.
fn shape(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(_) => "bool".to_owned(),
        Value::Number(_) => "number".to_owned(),
        Value::String(_) => "text".to_owned(),
        Value::Array(items) => format!("[{}]", items.first().map(shape).unwrap_or_default()),
        Value::Object(pairs) => {
            let mut pairs: Vec<String> = pairs
                .iter()
                .map(|(key, value)| format!("{key}: {}", shape(value)))
                .collect();
            pairs.sort();
            format!("{{{}}}", pairs.join(", "))
        }
    }
}

fn check(stage: &Stage, arguments: &[&str], code: i32, expected: &str) {
    let ran = stage.run(&[arguments, &["--json"]].concat()).ends(code);
    assert_eq!(shape(&ran.json()), expected, "{arguments:?}");
}

/// One place of a plan, and of a report.
fn item(outcome: &str, reasons: &str) -> String {
    format!(
        "[{{action: text, environment: text, mode: text, {outcome}path: text, reasons: [{reasons}], skill: text}}]"
    )
}

fn plan(reasons: &str) -> String {
    let labels = "{license: text, license_hint: text, risks: [{files: [text], risk: text}]}";
    format!(
        "{{failures: [], items: {}, labels: {{alpha: {labels}}}, warnings: []}}",
        item("", reasons)
    )
}

fn report(reasons: &str) -> String {
    format!(
        "{{failures: [], items: {}, warnings: []}}",
        item("outcome: text, ", reasons)
    )
}

/// SKILL-4: every command has one shape, whatever it finds; a list of one kind is empty rather than missing.
#[test]
fn every_command_has_one_shape() {
    let stage = Stage::new();
    stage.skill("src/alpha", "one");
    stage.write("src/alpha/run.sh", "#!/bin/sh\n");
    let made = "{config: text, skills: number}";
    check(&stage, &["init"], 0, made);
    check(
        &stage,
        &["add", "./src", "--list"],
        0,
        "[{description: text, name: text}]",
    );
    check(&stage, &["install", "./src", "--dry-run"], 0, &plan("text"));
    check(&stage, &["add", "./src"], 0, "{added: [text]}");
    let listed = |digest: &str| {
        format!(
            "[{{digest: {digest}, id: text, mode: text, resolved_commit: null, resolved_version: null, source: text, \
             targets: [{{environment: text, installed: bool, path: text}}]}}]"
        )
    };
    check(&stage, &["list"], 0, &listed("null"));
    check(&stage, &["plan"], 0, &plan("text"));
    check(&stage, &["verify"], 1, &plan("text"));
    check(&stage, &["verify", "--strict"], 3, &plan("text"));
    check(&stage, &["apply", "--dry-run"], 0, &plan("text"));
    check(&stage, &["apply"], 0, &report("text"));
    check(&stage, &["apply"], 0, &report(""));
    check(&stage, &["install", "./src"], 0, &report(""));
    check(&stage, &["verify"], 0, &plan(""));
    check(&stage, &["list"], 0, &listed("text"));
    check(
        &stage,
        &["doctor"],
        0,
        "{findings: [{code: text, message: text, remediation: text, severity: text, skill_id: text, target_path: null}], \
         summary: {error: number, total: number, warning: number}}",
    );
    check(
        &stage,
        &["update"],
        0,
        "{failed: number, registries: [], skills: [{id: text, local: text, remote: text, status: text}]}",
    );
    check(&stage, &["update", "--apply", "--dry-run"], 0, &plan(""));
    check(&stage, &["update", "--apply"], 0, &report(""));
    check(&stage, &["prompt"], 0, "text");
    check(
        &stage,
        &["export"],
        0,
        "{skills: [{id: text, install: {mode: text}, source: {path: text}, targets: [{environment: text, path: text}]}], \
         version: number}",
    );
    stage.write("other.toml", &stage.config());
    check(&stage, &["import", "--from", "other.toml", "--dry-run"], 0, made);
    check(&stage, &["import", "--from", "other.toml", "--force"], 0, made);
    stage.skill("src/alpha", "two");
    stage.run(&["apply"]).ends(0);
    check(
        &stage,
        &["clean", "--dry-run"],
        0,
        "{dry_run: bool, removed: [text]}",
    );
    check(&stage, &["clean"], 0, "{dry_run: bool, removed: [text]}");
    check(&stage, &["clean"], 0, "{dry_run: bool, removed: []}");
    check(
        &stage,
        &["remove", "alpha", "--dry-run"],
        0,
        "{failures: [], items: [{action: text, environment: text, mode: text, path: text, reasons: [text], skill: text}], \
         labels: {}, warnings: []}",
    );
    check(&stage, &["remove", "alpha"], 0, &report("text"));
    // A failure says where, what and what to do.
    stage
        .run(&["add", "./src", "--target", "docker:conductor-there-is-none"])
        .ends(0);
    check(
        &stage,
        &["apply"],
        1,
        "{failures: [{code: text, environment: text, hint: text, skill: text, what: text}], items: [], warnings: []}",
    );
    // What was asked wrongly is told on stderr; stdout stays empty.
    for arguments in [
        &["plan", "nobody"][..],
        &["remove", "nobody"],
        &["list", "--target", "mars"],
        &["import", "--from", "nowhere.toml", "--force"],
    ] {
        let ran = stage.run(&[arguments, &["--json"]].concat());
        assert!(ran.code == 1 || ran.code == 2, "{arguments:?}: {}", ran.code);
        assert_eq!(ran.stdout, "", "{arguments:?}");
        assert!(ran.stderr.starts_with("error"), "{arguments:?}: {}", ran.stderr);
    }
}
