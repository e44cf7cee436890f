//! Policies that would not do what they say are refused before they are kept.

use conductor_domain::role::Role;
use conductor_policy::authority::{Authority, Flaw, Layer, Request, Ruling, SHIPPED, check};

fn places(text: &str) -> Vec<(usize, usize, String)> {
    let place = |flaw: Flaw| (flaw.line, flaw.column, flaw.message);
    check(Layer::Project, text).into_iter().map(place).collect()
}

/// SEC-1: hostile: a path is judged in lower case, so a policy about `Makefile` would forbid nothing.
#[test]
fn a_policy_about_a_path_that_no_path_equals_is_refused_where_it_says_so() {
    let forbid = |condition: &str| {
        format!(
            "@id(\"a\") @reason(\"b\")\nforbid (principal is Agent, action == Action::\"create_file\", resource is Worktree)\n\
             when {{ {condition} }};"
        )
    };
    for (condition, written) in [
        (r#"resource.path == "Makefile""#, "Makefile"),
        (r#""Makefile" == resource.path"#, "Makefile"),
        (r#"resource["path"] != "Makefile""#, "Makefile"),
        (r#"resource.path like "Infra/*""#, "Infra/*"),
        (r#"resource.path like "*\*É*""#, r"*\*É*"),
        (r#"["a", "B"].contains(resource.path)"#, "B"),
        (r#"[resource.path].containsAny(["a", "B"])"#, "B"),
        (
            r#"resource.path == (if context == context then "C" else "d")"#,
            "C",
        ),
        (r#"{p: resource.path}.p == "Makefile""#, "Makefile"),
        (
            r#"principal == Agent::"implementer" && !(resource.path == "A" || resource.path == "a")"#,
            "A",
        ),
        (r#"resource == Worktree::"SRC""#, "SRC"),
        (
            r#"[Worktree::"src", Worktree::"Docs"].contains(resource)"#,
            "Docs",
        ),
        (r#"resource in [Worktree::"Src"]"#, "Src"),
    ] {
        let text = forbid(condition);
        let last = text.lines().last().unwrap_or_default();
        let column = last
            .find(&format!("\"{written}\""))
            .map(|at| last[..at].chars().count() + 1);
        let message = format!(
            "policy `a`: no path is `{written}`, because paths are compared in lower case; write `{}`",
            written.to_lowercase()
        );
        assert_eq!(
            places(&text),
            [(3, column.expect("it is written there"), message)],
            "{condition}"
        );
        assert!(
            Authority::new(&[(Layer::Project, text.as_str())]).is_err(),
            "{condition}"
        );
    }
    for scope in [
        r#"resource == Worktree::"A""#,
        r#"resource is Worktree in Worktree::"A""#,
    ] {
        let text =
            format!("@id(\"a\") @reason(\"b\")\nforbid (principal, action == Action::\"view\", {scope});");
        assert_eq!(places(&text).len(), 1, "{scope}");
    }
    // An escape is refused as what it stands for, where the policy begins.
    assert_eq!(
        places(&forbid(r#"resource.path == "\u{4d}akefile""#)),
        [(
            1,
            1,
            "policy `a`: no path is `Makefile`, because paths are compared in lower case; write `makefile`"
                .to_owned()
        )]
    );
    for condition in [
        r#"resource.path == "makefile" || resource.path like "infra/*""#,
        r#"["a", "é"].contains(resource.path)"#,
        r#"resource == Worktree::"src""#,
        r#"(resource.path == "a") == (principal == Agent::"Planner")"#,
    ] {
        assert_eq!(places(&forbid(condition)), [], "{condition}");
    }
    let command = r#"@id("a") @reason("b")
        forbid (principal, action == Action::"bash", resource) when { resource.path == "" && context.command like "*R*" };"#;
    assert_eq!(places(command), []);
}

/// SEC-1: hostile: a slip in what stands before a policy must not make it a weaker one.
#[test]
fn an_annotation_that_would_be_passed_over_is_refused() {
    let first = "@id(\"one\") @reason(\"b\") forbid (principal, action, resource);\n";
    for (annotation, message) in [
        (
            "@decison(\"require_approval\")",
            "policy `a` has an annotation `@decison`; there are @id, @reason, @decision and @final",
        ),
        (
            "@Final(\"true\")",
            "policy `a` has an annotation `@Final`; there are @id, @reason, @decision and @final",
        ),
        ("@decision", "policy `a`: a decision `` does not fit its effect"),
        (
            "@decision(\" \")",
            "policy `a`: a decision ` ` does not fit its effect",
        ),
        ("@final", "policy `a`: @final is `true` or `false` and not ``"),
        (
            "@final(\"yes\")",
            "policy `a`: @final is `true` or `false` and not `yes`",
        ),
        (
            "@final(\"True\")",
            "policy `a`: @final is `true` or `false` and not `True`",
        ),
    ] {
        let text =
            format!("{first}  @id(\"a\") @reason(\"b\") {annotation}\npermit (principal, action, resource);");
        assert_eq!(places(&text), [(2, 3, message.to_owned())], "{annotation}");
        assert!(
            Authority::new(&[(Layer::Run, text.as_str())]).is_err(),
            "{annotation}"
        );
    }
    for fine in [
        "@final(\"true\")",
        "@final(\"false\")",
        "@decision(\"require_approval\")",
        "",
    ] {
        let text = format!("@id(\"a\") @reason(\"b\") {fine} permit (principal, action, resource);");
        assert_eq!(places(&text), [], "{fine}");
    }
    let taken = "@id(\"deny-by-default\") @reason(\"b\") forbid (principal, action, resource);";
    assert_eq!(
        places(taken),
        [(
            1,
            1,
            "no policy has the id `deny-by-default`; it stands for none".to_owned()
        )]
    );
}

/// SEC-1: a run that locked such a text before it was refused goes on as it began.
#[test]
fn a_run_goes_on_with_what_it_locked() {
    let text = "@id(\"a\") @reason(\"b\") @severity(\"high\")\n\
                forbid (principal is Agent, action == Action::\"view\", resource) when { resource.path == \"B\" };";
    assert_ne!(check(Layer::Project, text), []);
    let locked =
        Authority::locked(&[(Layer::Shipped, SHIPPED), (Layer::Project, text)]).expect("it was locked");
    let view = Request::of_tool(Role::Planner, "view", "src").expect("a tool");
    assert_eq!(locked.judge(&view).ruling, Ruling::Allow);
}

/// SEC-1: hostile: Cedar follows what nests by calling itself, and whoever runs out of stack takes the server along. What is too
/// deep is refused where it becomes so; the deepest that is taken is read, asked and given back on a small stack.
#[test]
fn a_policy_that_nests_without_end_is_refused_and_ends_nothing() {
    let when = |condition: &str| {
        format!("@id(\"a\") @reason(\"b\")\nforbid (principal, action, resource)\nwhen {{ {condition} }};")
    };
    let brackets = |n: usize| when(&format!("{}true{}", "(".repeat(n), ")".repeat(n)));
    let lists = |n: usize| when(&format!("{}true{} == true", "[".repeat(n), "]".repeat(n)));
    let ands = |n: usize| when(&format!("{}true", "true && ".repeat(n)));
    let ors = |n: usize| when(&format!("{}true", "false || ".repeat(n)));
    let elses = |n: usize| when(&format!("{}true", "if false then true else ".repeat(n)));
    let fields = |n: usize| when(&format!("context{} == true", ".a".repeat(n)));
    let indexes = |n: usize| when(&format!("context{} == true", "[\"a\"]".repeat(n)));
    let whens = |n: usize| when(&format!("true {}", "} when { true ".repeat(n)));
    let too_deep = "more than 16 brackets within each other; make several policies of it";
    let too_long = "a policy of more than 1024 operators; make several of it";
    // Another bracket stands around the condition.
    assert_eq!(
        places(&brackets(16)),
        [(3, 7 + 16, too_deep.to_owned())],
        "the sixteenth is the first too many"
    );
    assert_eq!(
        places(&ands(1021)),
        [(3, 8 + 8 * 1020 + 6, too_long.to_owned())],
        "the second letter of the first too many; four brackets count, too"
    );
    assert_eq!(
        places(&elses(64)),
        [(3, 8 + 24 * 63 + 19, too_long.to_owned())],
        "a choice counts for sixteen"
    );
    let n = 20_000;
    for text in [
        brackets(n),
        lists(n),
        ands(n),
        ors(n),
        elses(n),
        fields(n),
        indexes(n),
        whens(n),
    ] {
        let flaws = places(&text);
        assert!(flaws[0].2 == too_deep || flaws[0].2 == too_long, "{text:.80}");
        assert!(Authority::new(&[(Layer::Project, text.as_str())]).is_err());
    }
    // Each policy is counted by itself, and what stands in a comment or in quotes not at all.
    let quiet = when("context == context // ((((((((((((((((((((((\n && \"((((((((((((((((((((\" == \"\"");
    assert_eq!(places(&quiet), []);
    let many: String = (0..4)
        .map(|n| ands(512).replace("\"a\"", &format!("\"a{n}\"")))
        .collect();
    assert_eq!(places(&many), []);
    for text in [brackets(15), ands(1020), ors(1020), elses(63), whens(1020)] {
        assert_eq!(places(&text), [], "{text:.80}");
        let authority = Authority::new(&[(Layer::Project, text.as_str())]).expect("it is valid");
        let request = Request::of_tool(Role::Planner, "view", "src").expect("a tool");
        assert_eq!(authority.judge(&request).policy, "a", "{text:.80}");
    }
}
