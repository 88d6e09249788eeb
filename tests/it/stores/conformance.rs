//! The suite every store must pass. `conforms!` runs it over a factory; a new store needs one line.

mod admitting;
mod appending;
mod granting;
mod keeping;
mod listing;
mod owning;
mod purging;
mod replying;
mod telling;

use std::sync::Arc;

use tempfile::TempDir;
use toolgate::ports::{AccessKeys, ApprovalCache, BlobStore, Replies, RunStore, Webhooks};

pub(crate) use self::{
    admitting::*, appending::*, granting::*, keeping::*, listing::*, owning::*, purging::*, replying::*, telling::*,
};

/// A fresh store, and what must live as long as it does.
pub(crate) struct Opened<S> {
    pub(crate) store: Arc<S>,
    pub(crate) _directory: Option<TempDir>,
}

/// What the suite asks of a store.
pub(crate) trait Store:
    RunStore + ApprovalCache + BlobStore + AccessKeys + Replies + Webhooks + 'static
{
}

impl<S: RunStore + ApprovalCache + BlobStore + AccessKeys + Replies + Webhooks + 'static> Store for S {}

/// `conforms!(name, factory)`: the whole suite in a module of that name. The factory is an async function without
/// arguments that returns an `Opened`.
macro_rules! conforms {
    ($name:ident, $open:expr) => {
        $crate::stores::conformance::conforms! { $name, $open =>
            a_run_is_created_once
            an_append_at_the_wrong_position_tells_the_true_length
            a_refused_append_changes_nothing
            an_append_that_would_leave_a_gap_is_refused
            an_append_without_events_changes_the_row_alone
            of_many_appends_to_one_position_one_wins
            appends_to_many_runs_do_not_disturb_each_other
            a_journal_is_loaded_from_any_position
            facts_come_back_exactly_as_they_went_in
            a_listing_is_newest_first_and_pages
            a_listing_filters_by_everything_at_once
            a_listing_shows_the_row_of_the_last_append
            a_list_of_a_tenant_follows_its_runs
            a_listing_finds_what_is_owed_and_what_runs_out
            an_owner_keeps_others_from_appending
            an_outsider_may_append_and_the_owner_stays
            the_position_is_checked_before_the_owner
            a_run_that_is_not_running_has_no_owner
            only_running_runs_without_an_owner_are_claimed_oldest_first
            a_claim_by_name_gives_the_owner_its_run_again
            a_claim_takes_no_more_than_it_asks_for
            orphaned_runs_are_told_and_stay_as_they_are
            a_lease_that_ran_out_is_anybodys
            a_renewed_lease_holds
            a_run_that_its_owner_does_not_name_is_not_renewed
            a_run_whose_lease_is_made_nothing_is_anybodys_at_once
            two_workers_claim_no_run_twice
            a_grant_covers_the_calls_it_was_given_for
            granting_twice_is_granting_once
            a_batch_finds_every_tool_that_is_covered_under_its_own_name
            a_grant_ends_with_its_time_or_when_it_is_revoked
            grants_are_listed_newest_first_and_filtered
            grants_are_found_by_id_and_tenant
            pages_of_grants_have_each_grant_that_is_meant_once
            a_blob_comes_back_exactly_as_it_went_in
            the_same_bytes_are_one_blob_under_their_first_type
            what_was_never_put_is_not_there
            a_blob_of_the_largest_size_is_kept_and_a_larger_one_refused
            of_many_who_put_the_same_bytes_all_succeed
            a_store_offers_itself_for_blobs
            a_purged_run_leaves_its_row_and_nothing_else
            only_a_run_that_is_over_and_that_long_is_purged
            nothing_is_appended_to_a_purged_run
            an_answer_that_quotes_a_purged_run_is_forgotten
            a_blob_goes_when_the_last_run_that_used_it_is_forgotten
            a_key_is_found_by_the_hash_of_its_secret_alone
            a_key_is_taken_back_once_and_stays_listed
            the_last_use_of_a_key_never_goes_back
            keys_are_listed_newest_first_and_by_tenant
            pages_of_keys_have_each_key_once
            a_request_is_noted_once_and_its_answer_kept
            of_many_who_begin_one_request_one_does
            a_request_is_one_of_its_caller
            a_request_that_was_forgotten_or_has_expired_begins_anew
            a_request_that_is_held_says_until_when
            a_request_that_nobody_works_on_is_taken_over_by_one
            an_endpoint_is_changed_only_by_whoever_knows_how_it_is
            endpoints_are_found_by_id_and_by_tenant_oldest_first
            pages_of_endpoints_have_each_endpoint_once
            a_url_has_one_endpoint_of_a_tenant_and_a_tenant_no_more_than_the_limit
            what_is_configured_takes_the_place_of_what_was
            a_run_at_rest_is_untold_until_it_is_told
            what_happens_while_nobody_of_the_tenant_listens_counts_as_told
            what_is_deleted_before_it_was_told_hides_nothing_that_is_to_be_told
            telling_twice_makes_one_delivery
            the_endpoint_that_is_longest_due_comes_first
            what_is_taken_is_nobody_elses_until_it_is_due_again
            what_was_taken_by_somebody_else_since_is_not_settled
            an_endpoint_that_is_switched_off_is_sent_nothing
            an_endpoint_that_recovered_is_not_given_up_by_an_attempt_that_did_not_know
            a_change_of_an_endpoint_leaves_what_attempts_say_of_it
            an_endpoint_that_is_switched_on_again_has_not_failed_yet
            nothing_is_made_for_an_endpoint_that_is_not_there
            deliveries_are_listed_newest_first_in_pages
            old_deliveries_are_forgotten_and_those_of_a_removed_endpoint_go_with_it
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
