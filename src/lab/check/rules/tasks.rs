//! Rules about calls that run as tasks, and about calls that wait for an approval of the server.

const TASKS: Places = (Some("basic/utilities/tasks"), None);
const STATUS: Places = (Some("basic/utilities/tasks#task-status-lifecycle"), None);
const RESULTS: Places = (Some("basic/utilities/tasks#result-retrieval"), None);
const CANCELLATION: Places = (Some("basic/utilities/tasks#task-cancellation"), None);
const SUPPORT: Places = (Some("basic/utilities/tasks#tool-level-negotiation"), None);

rules! { Calls;
    TASK_REQUIRED_IGNORED = "task-required-ignored", Error, "Call without a task of a tool that requires one", SUPPORT,
        why: "The error -32601 tells a client that it has to call the tool as a task. With another answer it waits for a \
              result that does not come, or treats the call as executed.",
        fix: "Answer a call without a task with the error -32601, or declare taskSupport as optional.";
    TASK_REFUSED = "task-refused", Error, "Call as a task that becomes none", TASKS,
        why: "The tool declares that it runs as a task. The client polls for a task that does not exist.",
        fix: "Answer a call that has `task` with the task, or declare taskSupport as forbidden.";
    TASK_UNINVITED = "task-uninvited", Error, "Task for a client that did not announce tasks", NOWHERE,
        why: "The client does not poll, so its user never sees the result, although the call may be executed.",
        fix: "Answer with a result, or with the error -32021 that names the extension io.modelcontextprotocol/tasks.";
    TASK_STATUS_INVALID = "task-status-invalid", Error, "Status that a task cannot have", STATUS,
        why: "Clients stop polling at completed, failed and cancelled. A task that changes afterwards, or has another status, \
              is polled without end or read too early.",
        fix: "Begin with working, use the five statuses, and never change a task that ended.";
    TASK_INCOMPLETE = "task-incomplete", Error, "Task without its times or its ttl", (Some("basic/utilities/tasks#ttl-and-resource-management"), None),
        why: "Without createdAt and ttl a client does not know until when it can read the result.",
        fix: "Send taskId, status, createdAt, lastUpdatedAt and ttl (ttlMs in the extension; null for unlimited) each time.";
    TASK_FORGOTTEN = "task-forgotten", Error, "New task that is unknown", TASKS,
        why: "The client cannot learn the outcome of its call, which may be executed.",
        fix: "Store the task before the answer that names it.";
    TASK_RESULT_MISSING = "task-result-missing", Error, "Task that ended without its result", RESULTS,
        why: "The call was executed, and its result is lost.",
        fix: "Keep the result of the call, or its error, until the ttl has passed.";
    TASK_UNRELATED = "task-unrelated", Warning, "Result of a task that does not name it", (Some("basic/utilities/tasks#associating-task-related-messages"), None),
        why: "A client that waits for several tasks assigns results and requests by this member.",
        fix: "Set `io.modelcontextprotocol/related-task` with the taskId in the `_meta` of the result.";
    TASK_UNLISTED = "task-unlisted", Error, "Task that is missing in tasks/list", (Some("basic/utilities/tasks#task-listing"), None),
        why: "A client that restarted finds its tasks by tasks/list.",
        fix: "List every task that tasks/get knows.";
    TASK_UNKNOWN_SUCCEEDS = "task-unknown-succeeds", Error, "Unknown task that succeeds", TASKS,
        why: "A client with a wrong or expired id polls a task that does not exist.",
        fix: "Answer an unknown task with the error -32602.";
    TASK_CANCEL_FAILED = "task-cancel-failed", Error, "Running task that cannot be cancelled", CANCELLATION,
        why: "The user believes that the call was stopped.",
        fix: "Set the status to cancelled before the answer to tasks/cancel, and keep it.";
    TASK_CANCELLED_LATE = "task-cancelled-late", Error, "Task that is cancelled after its end", CANCELLATION,
        why: "The client believes that the call had no effect, although it was executed.",
        fix: "Answer tasks/cancel of a task that ended with the error -32602.";
    APPROVAL_ENVELOPE_DROPPED = "approval-envelope-dropped", Warning, "Pending approval that is told once", NOWHERE,
        why: "SEP-2848 (a draft) repeats the envelope of the denial in each tasks/get, so that a client which restarted still \
              reads that the call waits for an approval.",
        fix: "Send `io.modelcontextprotocol/authorization` in the `_meta` of each state until the task ends.";
    APPROVAL_DISPOSITION = "approval-disposition", Warning, "Approval that ended without its disposition", NOWHERE,
        why: "SEP-2848 (a draft) tells by the disposition whether the call was executed. Without it, or with one that \
              contradicts isError, a client has to treat the call as possibly executed and must not repeat it.",
        fix: "Set `io.modelcontextprotocol/tool-approval-disposition` in the `_meta` of the result to approved-executed, \
              denied-not-executed, execution-error or outcome-unknown, and isError to match.";
    DENIAL_INVALID = "denial-invalid", Warning, "Envelope of a denial with wrong members", NOWHERE,
        why: "SEP-2643 (a draft) tells clients why a call was denied and what helps. They ignore an envelope that they cannot \
              read, or believe that an executed call was denied.",
        fix: "Send `reason`, `remediation` (available, unavailable or undisclosed) and `remediationHints` as a list of objects \
              with a `type`, and only in denials.";
}
