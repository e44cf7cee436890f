//! Programs are found as the operator would find them and work without the operator's environment.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt as _;

use conductor_domain::id::{EffectId, RunId};
use conductor_executor::toolchain::Missing;
use conductor_executor::{Consent, Reason, Toolchain, UnsafePlain};
use conductor_port::executor::{Executor as _, Profile, SandboxSpec};

use crate::kit::{PASSED, PLENTY, argv, text};

#[allow(
    clippy::disallowed_methods,
    reason = "the test plays the operator, whose environment this is"
)]
fn operators_environment() -> Vec<(OsString, OsString)> {
    std::env::vars_os().collect()
}

/// EXEC-4, EXEC-5: a rustup proxy needs HOME or RUSTUP_HOME; the toolchain behind it needs neither.
#[tokio::test]
async fn cargo_works_in_an_empty_environment() {
    let toolchain = Toolchain::find(&["cargo"], &operators_environment())
        .await
        .unwrap();
    let base = tempfile::tempdir().unwrap();
    let consent = Consent::to_run_commands_without_a_sandbox(Reason::Test);
    let executor = UnsafePlain::for_demo_and_tests(consent, base.path().join("homes"), toolchain);
    let (effect, run) = (EffectId::parse("r1.1.0").unwrap(), RunId::parse("r1").unwrap());
    let spec = SandboxSpec::new(effect, run, Profile::Test, base.path().to_owned());
    let sandbox = executor.open(spec).await.unwrap();
    let result = sandbox.bash(argv(&["cargo", "--version"], PLENTY)).await.unwrap();
    assert_eq!(result.ending, PASSED, "{}", text(&result));
    assert!(text(&result).starts_with("cargo 1."), "{}", text(&result));
    sandbox.close().await.unwrap();
}

#[tokio::test]
async fn a_missing_program_is_named_with_where_it_was_looked_for() {
    let environment = [(OsString::from("PATH"), OsString::from("/one:relative::/two"))];
    let missing = Toolchain::find(&["no-such-program"], &environment)
        .await
        .unwrap_err();
    let searched = "/one:/two:/usr/local/bin:/usr/bin:/bin".to_owned();
    assert_eq!(
        missing,
        Missing {
            program: "no-such-program".into(),
            searched
        }
    );
}

#[tokio::test]
async fn a_program_of_the_operator_comes_before_the_systems() {
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("ls");
    std::fs::write(&program, "#!/bin/sh\n").unwrap();
    let environment = [(OsString::from("PATH"), dir.path().as_os_str().to_owned())];
    for (mode, is_the_systems) in [(0o755, false), (0o644, true)] {
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(mode)).unwrap();
        let found = Toolchain::find(&["ls"], &environment).await.unwrap();
        let programs_of_the_system = Toolchain::find(&["ls"], &[]).await.unwrap();
        assert_eq!(found == programs_of_the_system, is_the_systems, "{mode:o}");
    }
}
