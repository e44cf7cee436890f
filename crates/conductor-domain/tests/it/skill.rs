//! What a run locks of a skill, and what cannot be one.

use conductor_domain::role::Role;
use conductor_domain::skill::{BadSkill, SkillFile, SkillFolder, SkillLock, archive, listing_of, unpack};

use crate::world::skill;

fn file(path: &str, content: &[u8]) -> SkillFile {
    SkillFile {
        path: path.to_owned(),
        executable: path.starts_with("bin/"),
        content: content.to_vec(),
    }
}

/// SKILL-5: what was locked comes back byte for byte, whatever it is.
#[test]
fn the_files_of_a_skill_come_back_as_they_were() {
    let files = [
        file("SKILL.md", b"---\nname: x\n---\n"),
        file("bin/run.sh", b"#!/bin/sh\n"),
        file("data/b.bin", &[0, 255, 10]),
        file("empty", b""),
    ];
    let text = archive(&files).expect("plain paths");
    assert_eq!(unpack(&text).as_deref(), Ok(&files[..]));
    assert_eq!(archive(&files), Ok(text), "the same files make the same text");
}

/// SKILL-5, SEC-2: no name and no path leads out of the folder, whoever wrote it.
#[test]
fn nothing_leads_out_of_a_skills_folder() {
    for name in [
        "", ".", "..", "../x", "a/b", "/etc", "a b", "A", "-x", "a\0b", "a\nb", "a.b", "~",
    ] {
        assert!(SkillFolder::parse(name).is_err(), "{name:?}");
        assert!(
            serde_json::from_value::<SkillFolder>(name.into()).is_err(),
            "{name:?}"
        );
    }
    let name = SkillFolder::parse("pdf-2").expect("a plain name");
    assert_eq!((name.as_str(), name.to_string().as_str()), ("pdf-2", "pdf-2"));
    assert_eq!(serde_json::to_value(&name).ok(), Some("pdf-2".into()));
    assert!(SkillFolder::parse(&"a".repeat(255)).is_ok());
    assert!(SkillFolder::parse(&"a".repeat(256)).is_err());
    for path in [
        "",
        "/etc/passwd",
        "../x",
        "a/../../b",
        "a//b",
        "./a",
        "a/",
        "a\\b",
        "a\nb",
        "a\0",
    ] {
        let expected = Err(BadSkill::Path(path.to_owned()));
        assert_eq!(
            archive(&[file(path, b"x")]),
            expected.clone().map(|()| vec![]),
            "{path:?}"
        );
        let forged = serde_json::json!([{ "path": path, "executable": false, "content": { "text": "x" } }]);
        assert_eq!(
            unpack(forged.to_string().as_bytes()),
            expected.map(|()| vec![]),
            "{path:?}"
        );
    }
    for forged in [
        "",
        "{}",
        "[{}]",
        r#"[{"path":"a","executable":true,"content":{"hex":"zz"}}]"#,
    ] {
        assert!(
            matches!(unpack(forged.as_bytes()), Err(BadSkill::Archive(_))),
            "{forged}"
        );
    }
}

/// SKILL-5: a role is told of its own skills, in the public form, and nothing in a description is markup.
#[test]
fn a_role_is_told_of_its_skills_and_of_no_others() {
    assert_eq!(
        listing_of(&[skill()], Role::Implementer).as_deref(),
        Some(
            "<available_skills>\n<skill>\n<name>\npdf\n</name>\n<description>\nReads &lt;PDF&gt; &amp; more.\n\
             </description>\n<location>\n/skills/pdf/SKILL.md\n</location>\n</skill>\n</available_skills>"
        )
    );
    assert_eq!(listing_of(&[skill()], Role::Planner), None);
    let untold = SkillLock {
        manifest: None,
        ..skill()
    };
    assert_eq!(listing_of(&[untold], Role::Implementer), None);
}
