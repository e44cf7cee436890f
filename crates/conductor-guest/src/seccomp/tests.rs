//! The program and the profile, judged call by call, beside what the table says.

use std::collections::BTreeMap;

use super::assemble::{
    ALLOW, AND, ARCHITECTURE, ARGUMENTS, ERRNO, Instruction, JUMP_EQUAL, JUMP_GREATER, KILL, LOAD, NATIVE,
    NUMBER, RETURN, X32, program,
};
use super::table::{Rule, TABLE, Test};
use super::{NEWEST, docker_profile_json};

#[derive(Clone, Copy)]
struct Call {
    architecture: u32,
    number: u32,
    arguments: [u64; 6],
}

fn native(number: u32, arguments: [u64; 6]) -> Call {
    Call {
        architecture: NATIVE,
        number,
        arguments,
    }
}

/// Runs a program as the kernel would.
fn judge(program: &[Instruction], call: Call) -> u32 {
    let mut accumulator = 0;
    let mut at = 0;
    loop {
        let Instruction {
            code,
            if_true,
            if_false,
            operand,
        } = program[at];
        at += 1;
        let is_true = match code {
            LOAD => {
                accumulator = match operand {
                    NUMBER => call.number,
                    ARCHITECTURE => call.architecture,
                    word => {
                        let argument = call.arguments[usize::try_from((word - ARGUMENTS) / 8).unwrap()];
                        let shift = 32 * ((word - ARGUMENTS) % 8 / 4);
                        u32::try_from((argument >> shift) & 0xffff_ffff).unwrap()
                    }
                };
                continue;
            }
            AND => {
                accumulator &= operand;
                continue;
            }
            RETURN => return operand,
            JUMP_EQUAL => accumulator == operand,
            JUMP_GREATER => accumulator > operand,
            other => panic!("instruction {other:#x} is unknown"),
        };
        at += usize::from(if is_true { if_true } else { if_false });
    }
}

/// Arguments that meet a rule, with garbage in the half that the kernel ignores where the test is an equality.
fn meeting(rule: &Rule) -> [u64; 6] {
    let mut arguments = [0; 6];
    for test in rule.when {
        let (argument, value) = match *test {
            Test::Is(argument, value) => (argument, u64::from(value) | (0xdead << 32)),
            Test::IsNot(argument, value) | Test::Above(argument, value) => (argument, u64::from(value) + 1),
            Test::Bits { argument, value, .. } => (argument, u64::from(value) | (0xbeef << 32)),
        };
        arguments[usize::from(argument)] = value;
    }
    arguments
}

/// S-40: every rule refuses, and only because it is in the table.
#[test]
fn each_rule_refuses_and_nothing_refuses_without_it() {
    let whole = program(TABLE);
    for rule in TABLE {
        let call = native(rule.number, meeting(rule));
        assert_eq!(judge(&whole, call), ERRNO | u32::from(rule.errno), "{rule:?}");
        let others: Vec<Rule> = TABLE.iter().filter(|other| *other != rule).copied().collect();
        assert_eq!(
            judge(&program(&others), call),
            ALLOW,
            "{rule:?} is covered by another rule"
        );
    }
}

/// S-40: a program for a foreign architecture is killed, and so is one that calls by x32 numbers.
#[test]
fn foreign_architectures_are_killed() {
    const I386: u32 = 0x4000_0003;
    let whole = program(TABLE);
    let getpid = u32::try_from(libc::SYS_getpid).unwrap();
    for (architecture, number) in [(I386, 20), (0, getpid), (NATIVE, getpid | X32), (NATIVE, X32)] {
        let call = Call {
            architecture,
            number,
            arguments: [0; 6],
        };
        assert_eq!(judge(&whole, call), KILL, "{architecture:#x} {number:#x}");
    }
}

/// S-40: what this list never heard of does not exist.
#[test]
fn calls_newer_than_the_table_do_not_exist() {
    let enosys = ERRNO | u32::try_from(libc::ENOSYS).unwrap();
    assert_eq!(judge(&program(TABLE), native(NEWEST + 1, [0; 6])), enosys);
    assert_eq!(judge(&program(TABLE), native(NEWEST, [0; 6])), ALLOW);
}

/// What git, compilers and interpreters do all day.
#[test]
fn everyday_calls_are_allowed() {
    const THREAD: u64 = 0x003d_0f00;
    const CLOEXEC: u64 = 0o2_000_000;
    let whole = program(TABLE);
    let call = |number: libc::c_long, arguments: &[u64]| {
        let mut all = [0; 6];
        all[..arguments.len()].copy_from_slice(arguments);
        native(u32::try_from(number).unwrap(), all)
    };
    for (what, everyday) in [
        ("read", call(libc::SYS_read, &[0, 0, 0])),
        ("fork", call(libc::SYS_clone, &[17])),
        ("thread", call(libc::SYS_clone, &[THREAD])),
        ("unix", call(libc::SYS_socket, &[1, 1 | CLOEXEC, 0])),
        ("unix packets", call(libc::SYS_socket, &[1, 5, 0])),
        ("tcp", call(libc::SYS_socket, &[2, 1 | CLOEXEC, 6])),
        ("udp", call(libc::SYS_socket, &[10, 2, 17])),
        ("addresses", call(libc::SYS_socket, &[16, 3 | CLOEXEC, 0])),
        ("pair", call(libc::SYS_socketpair, &[1, 1, 0])),
        ("terminal size", call(libc::SYS_ioctl, &[0, 0x5413])),
        ("personality", call(libc::SYS_personality, &[0])),
        ("openat2", call(libc::SYS_openat2, &[])),
    ] {
        assert_eq!(judge(&whole, everyday), ALLOW, "{what}");
    }
}

/// S-40: one list for both executors.
#[test]
fn the_profile_says_what_the_program_says() {
    let profile: serde_json::Value = serde_json::from_str(&docker_profile_json()).unwrap();
    let rules = profile["syscalls"].as_array().unwrap();
    assert_eq!(rules.len(), TABLE.len());
    let refuses = |rule: &serde_json::Value, arguments: &[u64; 6]| {
        rule["args"].as_array().unwrap().iter().all(|test| {
            let number = |key: &str| test[key].as_u64().unwrap();
            let argument = arguments[usize::try_from(number("index")).unwrap()];
            match test["op"].as_str().unwrap() {
                "SCMP_CMP_MASKED_EQ" => argument & number("value") == number("valueTwo"),
                "SCMP_CMP_NE" => argument != number("value"),
                "SCMP_CMP_GT" => argument > number("value"),
                other => panic!("{other}"),
            }
        })
    };
    for (rule, written) in TABLE.iter().zip(rules) {
        assert_eq!(written["names"][0], rule.name);
        assert_eq!(written["errnoRet"], rule.errno);
        assert!(refuses(written, &meeting(rule)), "{rule:?}");
        let indices: Vec<&serde_json::Value> = written["args"]
            .as_array()
            .unwrap()
            .iter()
            .map(|test| &test["index"])
            .collect();
        let mut distinct = indices.clone();
        distinct.dedup();
        assert_eq!(
            indices, distinct,
            "runc takes two tests of one argument as alternatives"
        );
    }
}

/// libseccomp refuses a profile whose rules disagree about one call.
#[test]
fn all_rules_of_a_call_share_their_answer() {
    let mut answers = BTreeMap::new();
    for rule in TABLE {
        assert_eq!(
            *answers.entry(rule.name).or_insert(rule.errno),
            rule.errno,
            "{}",
            rule.name
        );
    }
}
