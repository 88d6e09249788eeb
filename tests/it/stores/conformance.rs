//! Conformance suite for stores. `conforms!` runs it with a factory; a new store needs one line.

mod access_keys;
mod appending;
mod blobs;
mod counting;
mod event_log;
mod feedback;
mod files;
mod granting;
mod idempotency;
mod listing;
mod ownership;
mod purging;
mod quotas;
mod sessions;
mod span_marks;
mod tickets;
mod webhooks;

use std::sync::Arc;

use tempfile::TempDir;
use toolgate::ports::{
    AccessKeys, ApprovalCache, BlobStore, FileStore, IdempotencyStore, RuleCounters, RunStore, StreamTickets,
    UsageCounters, Webhooks,
};

pub(crate) use self::{
    access_keys::*, appending::*, blobs::*, counting::*, event_log::*, feedback::*, files::*, granting::*,
    idempotency::*, listing::*, ownership::*, purging::*, quotas::*, sessions::*, span_marks::*, tickets::*,
    webhooks::*,
};

/// A fresh store, and the resources that must outlive it.
pub(crate) struct Opened<S> {
    pub(crate) store: Arc<S>,
    pub(crate) _directory: Option<TempDir>,
}

/// The traits that the suite requires of a store.
pub(crate) trait Store:
    RunStore
    + ApprovalCache
    + BlobStore
    + FileStore
    + AccessKeys
    + StreamTickets
    + IdempotencyStore
    + Webhooks
    + RuleCounters
    + UsageCounters
    + 'static
{
}

impl<
    S: RunStore
        + ApprovalCache
        + BlobStore
        + FileStore
        + AccessKeys
        + StreamTickets
        + IdempotencyStore
        + Webhooks
        + RuleCounters
        + UsageCounters
        + 'static,
> Store for S
{
}

/// `conforms!(name, factory)`: the whole suite in a module of that name. The factory is an async function without
/// arguments that returns an `Opened`.
macro_rules! conforms {
    ($name:ident, $open:expr) => {
        $crate::stores::conformance::conforms! { $name, $open =>
            a_run_is_created_once
            an_append_at_the_wrong_position_reports_the_length
            a_rejected_append_changes_nothing
            an_append_that_would_leave_a_gap_is_rejected
            an_append_without_events_changes_the_row_alone
            of_concurrent_appends_to_one_position_one_wins
            appends_to_many_runs_do_not_disturb_each_other
            every_event_has_a_place_in_the_log
            an_append_that_adds_nothing_is_not_logged
            a_position_is_not_used_again_after_a_deletion
            a_reader_meets_each_of_concurrent_appends_once
            a_journal_is_loaded_from_any_position
            events_are_loaded_exactly_as_written
            a_listing_is_newest_first_and_pages
            a_listing_filters_by_everything_at_once
            a_listing_filters_by_what_callers_set
            a_listing_shows_the_row_of_the_last_append
            a_list_of_a_tenant_follows_its_runs
            a_listing_finds_pending_items_and_deadlines
            a_run_without_export_has_no_mark
            an_exporter_keeps_others_from_its_spans
            marks_move_together_and_never_back
            unsent_spans_are_listed_once_no_exporter_has_them
            an_owner_keeps_others_from_appending
            an_outsider_may_append_and_the_owner_stays
            the_position_is_checked_before_the_owner
            a_run_that_is_not_running_has_no_owner
            only_running_runs_without_an_owner_are_claimed_oldest_first
            a_claim_by_name_gives_the_owner_its_run_again
            a_claim_takes_no_more_than_it_asks_for
            orphaned_runs_are_listed_unchanged
            an_expired_lease_can_be_claimed_by_any_node
            a_renewed_lease_holds
            a_run_that_its_owner_does_not_name_is_not_renewed
            a_run_with_a_zero_lease_can_be_claimed_at_once
            two_workers_claim_no_run_twice
            uses_are_counted_up_to_the_maximum
            a_use_counts_once_with_its_largest_amount
            each_tenant_policy_rule_and_window_has_its_counter
            a_counter_is_kept_until_its_window_expired
            concurrent_uses_never_exceed_the_maximum
            usage_is_counted_by_day_tenant_and_caller
            a_run_beyond_a_quota_is_refused_and_changes_nothing
            an_imported_run_is_neither_refused_nor_counted
            a_quota_of_tokens_or_costs_forbids_the_next_run
            of_concurrent_runs_as_many_begin_as_a_quota_allows
            a_deleted_run_gives_no_quota_back
            without_quotas_nothing_is_counted
            an_absurd_usage_is_counted_as_the_largest
            a_grant_covers_the_calls_it_was_given_for
            granting_twice_is_granting_once
            a_batch_finds_every_covered_tool_under_its_own_name
            a_grant_ends_with_its_time_or_when_it_is_revoked
            grants_are_listed_newest_first_and_filtered
            grants_are_found_by_id_and_tenant
            pages_of_grants_contain_each_match_once
            a_blob_is_read_exactly_as_written
            the_same_bytes_are_one_blob_under_their_first_type
            an_unknown_blob_is_not_found
            a_blob_of_the_maximum_size_is_stored_a_larger_one_rejected
            concurrent_puts_of_the_same_bytes_all_succeed
            a_store_is_its_own_blob_store
            a_file_is_found_by_its_tenant_until_it_expires
            files_within_the_quota_are_stored
            a_deleted_file_leaves_the_bytes_that_a_run_uses
            expired_files_are_deleted_in_batches
            pages_of_files_have_each_file_once
            an_answer_that_quotes_a_deleted_file_is_forgotten
            feedback_is_listed_by_its_run_oldest_first
            feedback_replaces_that_with_its_id
            a_run_has_a_bounded_number_of_feedback
            feedback_is_deleted_with_its_run
            deleted_feedback_leaves_no_answer_that_quotes_it
            a_purged_run_leaves_its_row_and_nothing_else
            only_an_ended_run_at_that_version_is_purged
            nothing_is_appended_to_a_purged_run
            an_answer_that_quotes_a_purged_run_is_forgotten
            a_blob_is_deleted_with_the_last_run_that_uses_it
            a_claim_creates_the_session_of_a_run
            a_session_has_the_status_of_its_head
            a_refused_claim_creates_no_run
            a_refused_run_moves_no_head
            a_claim_that_contradicts_its_run_is_rejected
            of_twenty_concurrent_claims_one_wins
            a_claim_at_another_version_is_refused_with_the_current_row
            a_session_with_a_live_head_is_not_claimed
            a_claim_needs_an_ended_predecessor
            an_id_of_another_tenant_is_another_session
            a_session_is_saved_only_at_its_version
            a_save_changes_only_what_a_caller_may_change
            a_deleted_session_is_neither_claimed_nor_changed_nor_listed
            no_run_begins_beside_a_deleted_session
            an_answer_that_quotes_a_deleted_session_is_forgotten
            a_grant_quotes_no_deleted_run_or_session
            a_conversation_is_read_back_oldest_first
            a_segment_is_stored_once
            a_deleted_run_is_no_longer_read
            a_conversation_may_begin_in_another_store
            a_conversation_of_another_tenant_is_not_read
            a_circle_of_predecessors_is_read_once
            pages_of_sessions_have_each_session_once
            a_key_is_found_by_the_hash_of_its_secret_alone
            a_key_is_revoked_once_and_stays_listed
            a_key_expires_earlier_and_never_later
            the_last_use_of_a_key_never_goes_back
            keys_are_listed_newest_first_and_by_tenant
            pages_of_keys_have_each_key_once
            a_ticket_is_found_by_the_hash_of_its_secret
            expired_tickets_are_deleted_when_one_is_added
            a_request_is_recorded_once_with_its_response
            of_concurrent_begins_of_one_request_one_wins
            a_request_belongs_to_its_caller
            a_forgotten_or_expired_request_starts_again
            a_held_request_reports_its_deadline
            an_abandoned_request_is_taken_over_by_one
            an_endpoint_changes_only_at_its_current_revision
            endpoints_are_found_by_id_and_by_tenant_oldest_first
            pages_of_endpoints_have_each_endpoint_once
            endpoints_are_unique_by_url_and_limited_per_tenant
            configured_endpoints_replace_the_previous_ones
            an_idle_run_is_unannounced_until_it_is_announced
            events_without_an_endpoint_count_as_announced
            an_unannounced_deleted_run_hides_no_other_run
            announcing_twice_creates_one_delivery
            endpoints_of_runs_are_listed_alone_and_share_urls
            a_run_with_an_endpoint_is_unannounced_and_others_are_not
            due_endpoints_of_runs_and_of_tenants_are_ordered_together
            the_endpoint_of_a_run_is_deleted_with_it_or_when_it_is_done
            the_endpoint_that_is_longest_due_comes_first
            a_claimed_delivery_is_exclusive_until_it_is_due_again
            a_delivery_claimed_by_another_worker_is_not_settled
            a_disabled_endpoint_receives_nothing
            a_stale_attempt_does_not_disable_a_recovered_endpoint
            a_change_of_an_endpoint_keeps_its_failure_state
            a_reenabled_endpoint_has_no_failures
            no_delivery_is_created_for_an_unknown_endpoint
            deliveries_are_listed_newest_first_in_pages
            old_deliveries_and_those_of_removed_endpoints_are_deleted
        }
    };
    ($name:ident, $open:expr => $($case:ident)*) => {
        mod $name {
            #[allow(unused_imports)]
            use super::*;
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $case() {
                    let open = $open;
                    let opened = open().await;
                    $crate::stores::conformance::$case(opened.store.clone()).await;
                }
            )*
        }
    };
}
pub(crate) use conforms;
