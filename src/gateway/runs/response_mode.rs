//! Response mode of a request that drives a run: at once, when the run is pending or has ended, or as a stream until
//! then.

use axum::Json;
use axum::extract::FromRequestParts;
use axum::http::header::{ETAG, LOCATION};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use toolgate_core::error::ErrorCode;
use toolgate_core::lifecycle::Content;
use toolgate_core::run::Status;
use toolgate_core::trace::Trace;
use toolgate_runner::Execution;
use toolgate_service::TenantRun;
use utoipa::openapi::path::{Parameter, ParameterIn};
use utoipa::{IntoParams, ToResponse};

use super::events::{self, FrameDescription, Include};
use super::view::RunView;
use super::wait::WaitPreference;
use crate::body::Query;
use crate::client_trace::{TRACE_RESPONSE, client_trace, trace_response};
use crate::completion::ClientGone;
use crate::etag;
use crate::negotiation::Form;
use crate::problem::Problem;
use crate::state::Gateway;

/// The client's preferences, from the headers and the query.
#[derive(Clone)]
pub(crate) struct ResponsePreference {
    gateway: Gateway,
    wait: WaitPreference,
    form: Form,
    content: Content,
    gone: ClientGone,
    /// The trace to continue.
    pub(crate) trace: Option<Trace>,
}

/// The content of a stream.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct StreamParams {
    /// Streams only. `content`: include arguments, results, texts and fragments of texts.
    #[param(inline)]
    include: Option<Include>,
}

/// The run, which is pending or has ended; or a stream of its events until then
#[derive(ToResponse)]
#[allow(dead_code)] // it describes what `answer` responds
pub(crate) enum RestedRun {
    Json(#[content("application/json")] Box<RunView>),
    Stream(#[content("text/event-stream")] FrameDescription),
}

/// The run, which is still running
#[derive(ToResponse)]
#[allow(dead_code)] // it describes what `answer` responds
pub(crate) struct RunningRun(RunView);

impl IntoParams for ResponsePreference {
    fn into_params(parameter_in: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let mut params = WaitPreference::into_params(&parameter_in);
        params.extend(StreamParams::into_params(parameter_in));
        params
    }
}

impl FromRequestParts<Gateway> for ResponsePreference {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, gateway: &Gateway) -> Result<Self, Problem> {
        let Query(StreamParams { include }) = Query::from_request_parts(parts, gateway).await?;
        Ok(Self {
            gateway: gateway.clone(),
            wait: WaitPreference::from_headers(&parts.headers, gateway.settings()),
            form: Form::wanted(&parts.headers, &[Form::Json, Form::Stream])?,
            content: Include::content(include),
            gone: ClientGone::from_extensions(&parts.extensions),
            trace: client_trace(&parts.headers, gateway.settings().propagation),
        })
    }
}

impl ResponsePreference {
    /// Whether content is included.
    pub(crate) fn quotes(&self) -> bool {
        self.content == Content::Include
    }

    /// The response about a run, which is driven on independently of it. `rested` is the status when the run is pending
    /// or has ended.
    pub(crate) async fn answer(
        self,
        run: TenantRun,
        execution: Execution,
        rested: StatusCode,
    ) -> Result<Response, Problem> {
        let location = location(&self.gateway, &run)?;
        if self.form == Form::Stream {
            let stream = events::execution(&self.gateway, &run, self.content, execution.updates).await?;
            return Ok((rested, [(LOCATION, location)], stream).into_response());
        }
        // A run that was executed here is not read from the store again.
        let (status, view) = match self.wait.wait(execution, &self.gone).await? {
            Some(idle) => (rested, RunView::of_run(&run, idle.run())),
            None => (StatusCode::ACCEPTED, RunView::read(&run).await?),
        };
        let mut response = (status, state(view, location)).into_response();
        response.headers_mut().extend(self.wait.applied());
        Ok(response)
    }

    /// The response to the request that started a run, once more: the run as it is now, or a stream of all its events
    /// until it is pending or has ended.
    pub(super) async fn answer_again(self, run: TenantRun) -> Result<Response, Problem> {
        let location = location(&self.gateway, &run)?;
        if self.form == Form::Stream {
            let stream = events::whole(&self.gateway, &run, self.content)?;
            return Ok((StatusCode::CREATED, [(LOCATION, location)], stream).into_response());
        }
        let is_going_on = run.row.status == Status::Running;
        let status = if is_going_on { StatusCode::ACCEPTED } else { StatusCode::CREATED };
        Ok((status, state(RunView::read(&run).await?, location)).into_response())
    }
}

fn state(view: RunView, location: HeaderValue) -> Response {
    let tag = HeaderValue::from_str(&etag::of_version(view.version())).ok();
    let execution = trace_response(view.execution());
    let mut response = ([(LOCATION, location)], Json(view)).into_response();
    let headers = response.headers_mut();
    headers.extend(tag.map(|tag| (ETAG, tag)));
    headers.extend(execution.map(|execution| (TRACE_RESPONSE, execution)));
    response
}

fn location(gateway: &Gateway, run: &TenantRun) -> Result<HeaderValue, Problem> {
    HeaderValue::from_str(&gateway.address_of(run.id())).map_err(|_| {
        Problem::new(ErrorCode::Configuration, "the public address of this server is not valid in a header")
    })
}
