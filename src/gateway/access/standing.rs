//! A stream lasts longer than the credentials it was opened with may hold: they are looked at again while it is open, and it
//! ends when they let nobody in any more.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use axum::http::request::Parts;
use axum::response::Response;
use http_body::{Frame, SizeHint};

use crate::core::error::ErrorCode;
use crate::gateway::state::Gateway;

/// The answer, which ends when these credentials do.
pub(super) fn while_they_hold(gateway: Gateway, shown: Parts, response: Response) -> Response {
    response.map(|body| Body::new(Standing { body, refused: Box::pin(refused(gateway, shown)) }))
}

/// Returns when whoever showed these credentials would not be let in again. That nobody can say is no reason.
async fn refused(gateway: Gateway, shown: Parts) {
    loop {
        tokio::time::sleep(gateway.settings().recheck).await;
        if gateway.access().caller(&shown).await.is_err_and(|problem| problem.code() == ErrorCode::Unauthorized) {
            tracing::info!("a stream ends with the credentials it was opened with");
            return;
        }
    }
}

struct Standing {
    body: Body,
    refused: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl http_body::Body for Standing {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.refused.as_mut().poll(context).is_ready() {
            // Not to be asked again: it is ready for good.
            self.refused = Box::pin(std::future::ready(()));
            return Poll::Ready(None);
        }
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
