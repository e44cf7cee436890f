//! The list of all cases, by what they examine, and the macro that makes a test of each.
//!
//! A case that is not listed here is dead code, and the compiler says so. It does not know what a case examines.

macro_rules! suites {
    ($d:tt $($module:ident { $($case:ident)+ })+) => {
        /// Every case; each takes a fresh subject and panics when it breaks the contract.
        pub mod cases {
            $(
                #[allow(missing_docs, reason = "a case is documented where it is written")]
                pub mod $module {
                    $(
                        pub async fn $case(subject: crate::Subject) {
                            crate::$module::$case(&subject).await;
                        }
                    )+
                }
            )+
        }

        /// Makes a test of every case. `$make` is the absolute path of an `async fn() -> Subject`.
        #[macro_export]
        macro_rules! store_contract {
            ($d make:path) => {
                $(
                    mod $module {
                        $(
                            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                            async fn $case() {
                                $d crate::cases::$module::$case($d make().await).await;
                            }
                        )+
                    }
                )+
            };
        }
    };
}

suites! { $
    append {
        kept_records_are_read_back_whole_and_in_order
        reading_is_cut_by_after_and_limit
        of_many_who_saw_the_same_end_one_is_kept
        streams_do_not_disturb_each_other
        a_stale_batch_is_told_where_the_stream_ends
        a_repeated_key_is_refused_even_when_the_stream_moved_on
        of_many_with_one_key_one_is_kept
        a_refused_batch_leaves_nothing_behind
        a_batch_that_fails_in_its_last_part_leaves_nothing_behind
        an_event_id_is_taken_once_over_all_streams
        an_effect_id_is_taken_once
        a_batch_that_does_not_hang_together_is_refused
        hostile_text_is_kept_byte_for_byte
    }
    effects {
        effects_are_listed_by_priority_then_age
        an_effect_waits_for_its_time
        a_hold_stops_work_and_nothing_else
        a_stopped_pending_effect_is_done_at_once
        a_stopped_effect_that_was_tried_is_dispatched_at_once
        a_stopped_leased_effect_hears_it_at_renewal
        a_stop_of_a_done_effect_changes_nothing
        a_retry_puts_the_effect_back_until_its_time
        a_retry_of_a_pending_effect_moves_its_time
        a_retry_without_the_lease_is_refused
        a_done_effect_is_never_repeated
        a_change_of_an_unknown_effect_is_refused
        reprioritizing_moves_pending_effects_of_the_run_only
        listing_is_cut_by_limit
        pages_of_candidates_join_without_gap_or_repeat
    }
    lease {
        of_two_workers_one_gets_the_effect
        of_many_workers_one_gets_the_effect
        a_lease_that_has_not_ended_is_nobody_elses
        who_starts_again_ends_the_leases_of_its_name_only
        an_ended_lease_is_taken_over_with_a_greater_token
        tokens_grow_over_retries
        a_stale_token_settles_nothing
        a_lost_lease_outranks_a_moved_stream
        a_settled_effect_is_settled_once
        a_renewal_extends_the_lease
        a_renewal_after_the_loss_says_so
        a_late_renewal_of_a_lease_nobody_took_holds
        an_effect_that_became_held_is_not_leased
        an_effect_that_is_not_due_is_not_leased
        an_ended_lease_is_listed_though_stopped_or_held
        an_unknown_effect_is_gone
    }
    slots {
        slots_hold_under_concurrency
        a_run_keeps_its_slot_from_effect_to_effect
        a_freed_slot_is_taken_by_the_next
        a_lowered_limit_counts_the_slots_that_are_taken
        slots_of_repositories_are_apart
        an_effect_without_a_slot_stays_pending
        a_slot_of_another_repository_is_refused
    }
    issues {
        of_many_runs_one_gets_the_issue
        an_issue_that_was_given_back_is_taken_by_the_next
    }
    projections {
        the_newest_projection_is_seen
        the_instance_is_seen_with_the_end_of_its_stream
        an_empty_store_has_an_empty_instance
        replaced_projections_leave_records_alone
        deadlines_come_due_in_order
    }
    views {
        runs_are_listed_newest_first
        every_filter_filters
        any_filters_hold_together
        runs_are_counted_up_to_the_limit
        text_is_found_in_either_case_and_as_it_is_written
        pages_join_without_gap_or_repeat
        effects_of_a_run_are_listed_in_the_order_asked
        a_later_forge_write_replaces_the_earlier_in_its_place
        forge_writes_are_replaced_in_their_places
        heads_come_from_the_records
    }
    search {
        records_are_found_whole_and_newest_first
        a_word_means_the_same_everywhere
        every_filter_of_records_filters
        times_cut_exactly
        pages_of_records_join_without_gap_or_repeat
        only_what_is_kept_is_found_and_again_after_a_rebuild
    }
    tally {
        runs_are_told_of_when_they_began_or_ended_in_a_span
        runs_are_told_of_by_project_and_repository
    }
    blobs {
        bytes_come_back_as_they_were
        unknown_bytes_are_absent
        keeping_twice_changes_nothing
        too_many_bytes_are_cut_with_a_mark
        a_cut_does_not_split_a_character
        the_most_bytes_are_kept_whole
        everything_kept_is_listed_by_its_address
    }
    tool_log {
        calls_come_back_in_order
        a_repeated_call_is_left_as_it_is
        who_lost_its_lease_writes_no_more
        logs_of_invocations_are_apart
        calls_are_read_in_parts
    }
    resources {
        a_taken_resource_is_nobody_elses
        of_many_runs_one_takes_the_resource
        taking_again_renews_the_heartbeat
        only_the_holder_gives_back
        held_resources_are_listed_by_run
    }
    duties {
        of_many_workers_one_has_the_duty
        a_duty_is_taken_over_after_its_time_and_not_before
        a_duty_that_is_laid_down_is_free_at_once
        duties_are_apart
    }
    marks {
        the_last_mark_of_a_name_counts
    }
    keys {
        a_key_is_found_until_its_time_is_over
        of_many_who_take_a_key_one_has_it
        a_key_that_was_taken_away_is_not_lengthened
        a_key_is_good_for_its_kind_alone
        an_operators_keys_go_together_and_nobody_elses
        the_last_password_counts
    }
    answers {
        a_repeated_write_gets_its_first_answer
        a_name_is_for_one_request
        of_many_who_send_a_write_one_does_it
        a_write_that_nobody_answers_can_be_begun_again
        an_answer_is_kept_for_its_time_and_while_there_is_room
    }
}
