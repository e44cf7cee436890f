//! What every executor must do, whoever wrote it: the same cases for `local`, `docker` and a third party's own (EXEC-2).
//!
//! Everything inside a sandbox is hostile here: it prints without end, forks without end, hides, lies and breaks. Each
//! case demands a clear answer in bounded time, nothing left behind, and a sandbox that still works where it can.
//! Commands need `bash` and coreutils inside, and one case needs root, which alone can mount a small disk. The suite does not
//! know how a sandbox is built.

mod commands;
mod confinement;
mod files;
mod faults;
mod given;
mod disk;
mod limits;

use std::any::Any;
use std::path::PathBuf;
use std::sync::Arc;

use conductor_domain::id::EffectId;
use conductor_port::executor::Executor;

/// The memory that a subject's sandboxes may use.
pub const MEMORY: u64 = 256 * 1024 * 1024;
/// The processes that a subject's sandboxes may have.
pub const PROCESSES: u64 = 64;
/// The bytes that fit into a subject's TMPDIR.
pub const TEMPORARY: u64 = 32 * 1024 * 1024;

/// Ends the sandbox of an effect from outside, as an operator, a crash or an engine would: not through the executor.
pub type Vanish = dyn Fn(&EffectId) + Send + Sync;

/// An executor to examine, made with [`MEMORY`], [`PROCESSES`] and [`TEMPORARY`].
pub struct Subject {
    /// The executor.
    pub executor: Arc<dyn Executor>,
    /// An existing directory in which the cases make working directories.
    pub place: PathBuf,
    /// How a sandbox is ended behind the executor's back.
    pub vanish: Arc<Vanish>,
    /// Whatever must live as long as the executor.
    pub guard: Box<dyn Any + Send + Sync>,
}

impl std::fmt::Debug for Subject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Subject")
            .field("executor", &self.executor)
            .field("place", &self.place)
            .finish_non_exhaustive()
    }
}

macro_rules! suites {
    ($d:tt $($module:ident { $($case:ident)+ })+) => {
        /// Every case; each takes a fresh subject and panics when it breaks the contract.
        pub mod cases {
            $(
                #[allow(missing_docs, reason = "a case is documented where it is written")]
                pub mod $module {
                    $(
                        pub async fn $case(subject: crate::executor::Subject) {
                            crate::executor::$module::$case(&subject).await;
                        }
                    )+
                }
            )+
        }

        /// Makes a test of every case. `$make` is the absolute path of an `async fn() -> executor::Subject`.
        #[macro_export]
        macro_rules! executor_contract {
            ($d make:path) => {
                $(
                    mod $module {
                        $(
                            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                            async fn $case() {
                                $d crate::executor::cases::$module::$case($d make().await).await;
                            }
                        )+
                    }
                )+
            };
        }
    };
}

suites! { $
    commands {
        a_command_ends_with_its_code_or_its_signal
        a_program_that_is_not_there_is_not_run
        bytes_that_are_no_text_come_as_they_are
        a_command_that_reads_finds_the_end_of_its_input
        the_environment_holds_nothing_of_the_hosts
        a_commands_own_variables_are_seen_by_it_alone
        commands_at_once_do_not_disturb_each_other
        output_is_heard_while_it_comes
    }
    files {
        what_is_created_is_viewed_byte_for_byte
        what_exists_is_never_created_over
        a_text_is_replaced_where_it_occurs_once
        a_text_is_replaced_in_a_file_that_is_no_text
        a_file_that_is_too_large_is_refused
        commands_and_file_tools_see_the_same_files
        hostile_names_are_names
        a_list_names_what_is_there_and_follows_no_link
        a_search_finds_lines_and_refuses_what_is_no_pattern
    }
    confinement {
        no_path_leads_out
        no_name_means_another
        a_path_of_any_length_is_answered
        what_is_no_file_is_refused_without_waiting
        a_working_directory_of_any_name_works
        nothing_outside_is_reached_over_the_network
        a_way_out_leads_to_its_socket_and_nowhere_else
        no_process_outside_is_seen
        what_is_given_is_read_and_never_written
        three_sandboxes_of_one_run_are_never_one
    }
    limits {
        output_without_end_is_cut_marked_and_ended
        a_line_of_a_gibibyte_is_carried_in_bounded_memory
        a_command_that_ignores_signals_is_ended_in_time
        a_fork_bomb_is_ended_and_named
        a_memory_hog_is_ended_and_named
        a_full_disk_is_the_commands_own_trouble
        a_full_disk_refuses_the_file_tools_and_keeps_what_is_there
    }
    faults {
        what_outlives_its_command_ends_with_the_sandbox
        a_command_that_nobody_waits_for_is_ended
        a_sandbox_that_nobody_holds_is_ended
        a_sandbox_that_vanishes_is_told_and_leaves_nothing
        no_mount_outlives_its_sandbox
        reaping_what_is_not_there_is_no_fault
    }
}
