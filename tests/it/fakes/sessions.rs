//! Sessions, the event log and the feedback of a store that another store holds.

/// `delegate_event_log!(Store, member)`: implements the event log and the feedback of `Store` with those of the store in this
/// member.
macro_rules! delegate_event_log {
    ($store:ty, $inner:tt) => {
        #[async_trait::async_trait]
        impl toolgate::ports::EventLog for $store {
            async fn logged(
                &self,
                tenant: &toolgate::core::id::Tenant,
                after: u64,
                limit: usize,
            ) -> Result<toolgate::ports::LogPage, toolgate::ports::StoreError> {
                self.$inner.logged(tenant, after, limit).await
            }

            async fn last_position(&self) -> Result<u64, toolgate::ports::StoreError> {
                self.$inner.last_position().await
            }

            async fn tenants_after(
                &self,
                position: u64,
            ) -> Result<Vec<(toolgate::core::id::Tenant, u64)>, toolgate::ports::StoreError> {
                self.$inner.tenants_after(position).await
            }
        }

        #[async_trait::async_trait]
        impl toolgate::ports::FeedbackStore for $store {
            async fn put_feedback(
                &self,
                run: &toolgate::core::id::RunId,
                feedback: &toolgate::ports::Feedback,
            ) -> Result<bool, toolgate::ports::StoreError> {
                self.$inner.put_feedback(run, feedback).await
            }

            async fn feedback(
                &self,
                run: &toolgate::core::id::RunId,
            ) -> Result<Vec<toolgate::ports::Feedback>, toolgate::ports::StoreError> {
                self.$inner.feedback(run).await
            }

            async fn delete_feedback(
                &self,
                run: &toolgate::core::id::RunId,
                id: &toolgate::core::id::FeedbackId,
            ) -> Result<bool, toolgate::ports::StoreError> {
                self.$inner.delete_feedback(run, id).await
            }
        }
    };
}

/// `delegate_sessions!(Store, member)`: implements the sessions, the event log and the feedback of `Store` with those of the
/// store in this member.
macro_rules! delegate_sessions {
    ($store:ty, $inner:tt) => {
        crate::fakes::delegate_event_log!($store, $inner);

        #[async_trait::async_trait]
        impl toolgate::ports::SessionStore for $store {
            async fn session(
                &self,
                tenant: &toolgate::core::id::Tenant,
                id: &toolgate::core::id::SessionId,
            ) -> Result<Option<toolgate::ports::SessionRow>, toolgate::ports::StoreError> {
                self.$inner.session(tenant, id).await
            }

            async fn sessions(
                &self,
                filter: &toolgate::ports::SessionFilter,
            ) -> Result<Vec<toolgate::ports::SessionRow>, toolgate::ports::StoreError> {
                self.$inner.sessions(filter).await
            }

            async fn save_session(
                &self,
                expected: u64,
                row: &toolgate::ports::SessionRow,
            ) -> Result<toolgate::ports::SessionSaved, toolgate::ports::StoreError> {
                self.$inner.save_session(expected, row).await
            }

            async fn segment_lengths(
                &self,
                tenant: &toolgate::core::id::Tenant,
                run: &toolgate::core::id::RunId,
            ) -> Result<Vec<(toolgate::core::id::RunId, Option<u64>)>, toolgate::ports::StoreError> {
                self.$inner.segment_lengths(tenant, run).await
            }

            async fn segments(
                &self,
                tenant: &toolgate::core::id::Tenant,
                runs: &[toolgate::core::id::RunId],
            ) -> Result<Vec<(toolgate::core::id::RunId, toolgate::core::run::Segment)>, toolgate::ports::StoreError>
            {
                self.$inner.segments(tenant, runs).await
            }
        }
    };
}
pub(crate) use {delegate_event_log, delegate_sessions};
