//! Writes the table as the JSON that Docker and Podman take.
//!
//! libseccomp compares all 64 bits. Equality is therefore asked behind a mask of the low half; "anything but" and
//! "greater" need none, because garbage above makes them refuse. This module does not know why a call is refused.

use super::table::{Rule, Test};

#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: &str = "SCMP_ARCH_X86_64";
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: &str = "SCMP_ARCH_AARCH64";

/// Writes the profile; libseccomp kills what is not of its one architecture, x32 included.
pub(super) fn write(table: &[Rule]) -> String {
    let rules: Vec<String> = table.iter().map(rule).collect();
    format!(
        "{{\"defaultAction\":\"SCMP_ACT_ALLOW\",\"architectures\":[\"{ARCHITECTURE}\"],\"syscalls\":[\n{}\n]}}\n",
        rules.join(",\n")
    )
}

fn rule(rule: &Rule) -> String {
    let tests: Vec<String> = rule.when.iter().map(|test| argument(*test)).collect();
    format!(
        "{{\"names\":[\"{}\"],\"action\":\"SCMP_ACT_ERRNO\",\"errnoRet\":{},\"args\":[{}]}}",
        rule.name,
        rule.errno,
        tests.join(",")
    )
}

fn argument(test: Test) -> String {
    let (index, value, second, operator) = match test {
        Test::Is(index, value) => (index, u32::MAX, value, "SCMP_CMP_MASKED_EQ"),
        Test::IsNot(index, value) => (index, value, 0, "SCMP_CMP_NE"),
        Test::Above(index, value) => (index, value, 0, "SCMP_CMP_GT"),
        Test::Bits {
            argument,
            mask,
            value,
        } => (argument, mask, value, "SCMP_CMP_MASKED_EQ"),
    };
    format!("{{\"index\":{index},\"value\":{value},\"valueTwo\":{second},\"op\":\"{operator}\"}}")
}
