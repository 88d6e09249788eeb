//! Transport of a call, for the journal: which request carried it, over which transport, in which revision of the
//! protocol. The session of a server is not part of it: to servers that require no other credential it is one.

use std::sync::{Mutex, PoisonError};

use rmcp::model::RequestId;
use toolgate_core::tool::CallTransport;

use super::fault::Fault;
use super::settings::Transport;

/// The last request that was sent on behalf of a call.
#[derive(Debug, Default)]
pub(super) struct LastRequest(Mutex<Option<RequestId>>);

impl LastRequest {
    /// Records a request that is being sent.
    pub(super) fn note(&self, request: &RequestId) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(request.clone());
    }

    /// The transport of the call; `None` if nothing was sent.
    pub(super) fn wire(
        &self,
        protocol_version: Option<String>,
        transport: &Transport,
        fault: Option<&Fault>,
    ) -> Option<Box<CallTransport>> {
        let request = self.0.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        let (transport, error_code) = (transport.carrier(), fault.and_then(Fault::code));
        Some(Box::new(CallTransport { transport, protocol_version, request_id: Some(request.to_string()), error_code }))
    }
}
