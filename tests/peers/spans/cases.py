"""Cases of the real binary, and the exact spans that each has to produce.

`turns` is what the provider answers, `steps` are the arguments of one toolgate process each with the exit code it has to
end with, `expect` goes to check_spans.py as it is, `outcomes` are the `toolgate.run.outcome` of the roots in order.
In X4 (`pending`) counts each call of the model that has no TOOL span in the trace it was asked for in: because it was
deferred, refused, waits, or runs in the trace of the resume.
"""

PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
CUSTOMER = ("call_find", "mcp_shop_find_customer", {"name": "Ada"})
ORDERS = ("call_orders", "mcp_shop_list_orders", {"customer_id": "C-1001"})
POINTS = ("call_points", "mcp_shop_get_loyalty", {"customer_id": "C-1001"})
NO_INVOICE = ("call_invoice", "mcp_shop_get_invoice", {"order_id": "A-9999"})
REFUND = ("call_refund", "ext_issue_refund", {"order_id": "A-1077"})

CASES = {
    "two MCP calls in parallel, one of them failing": dict(
        turns=[{"say": "I look.", "calls": [ORDERS, NO_INVOICE]}, {"say": "There is no such order."}],
        steps=[(0, "run", "Where is order A-9999?")],
        expect=dict(traces=1, roots=1, agents=1, llm=2, tool=2, guardrail=0, errors=1, chain=1, spans=6, parallel=2),
        outcomes=["completed"],
    ),
    "a plain answer": dict(
        turns=[{"say": "We open at nine."}],
        steps=[(0, "run", "When do you open?")],
        expect=dict(traces=1, agents=1, llm=1, tool=0, errors=0, chain=1, spans=3),
        outcomes=["completed"],
    ),
    "two tiers, the lower one deferred": dict(
        agent={"priorities": {"mcp_shop_find_customer": 10}},
        turns=[{"calls": [CUSTOMER, ("call_early", *ORDERS[1:])]}, {"calls": [ORDERS, POINTS]}, {"say": "Done."}],
        steps=[(0, "run", "What did Ada order?")],
        expect=dict(traces=1, agents=1, llm=3, tool=3, errors=0, chain=1, spans=8, pending=1, parallel=2),
        outcomes=["completed"],
    ),
    "two tiers, the lower one dropped": dict(
        agent={"priorities": {"mcp_shop_find_customer": 10}, "tiers": "drop"},
        turns=[{"calls": [CUSTOMER, ("call_early", *ORDERS[1:])]}, {"say": "Done."}],
        steps=[(0, "run", "What did Ada order?")],
        expect=dict(traces=1, agents=1, llm=2, tool=1, errors=0, chain=1, spans=5, pending=1),
        outcomes=["completed"],
    ),
    "pending, and resumed by another process with an external result": dict(
        turns=[{"calls": [ORDERS, REFUND]}, {"say": "It is refunded."}],
        steps=[(10, "run", "Refund it."), (0, "resume", "last", "--result", 'call_refund={"status":"refunded"}')],
        expect=dict(traces=2, roots=2, agents=2, llm=2, tool=2, errors=0, chain=2, spans=8, pending=1),
        flags=["--resumed-ids", "call_refund"],
        outcomes=["pending", "completed"],
    ),
    "two external results, each brought by a process of its own": dict(
        turns=[{"calls": [REFUND, ("call_more", "ext_issue_refund", {"order_id": "A-1041"})]}, {"say": "Refunded."}],
        steps=[
            (10, "run", "Refund both."),
            (10, "resume", "last", "--partial", "--result", "call_more=refunded"),
            (0, "resume", "last", "--result", "call_refund=refunded"),
        ],
        expect=dict(traces=3, roots=3, agents=3, llm=2, tool=2, errors=0, chain=2, spans=9, pending=2),
        flags=["--resumed-ids", "call_refund,call_more"],
        outcomes=["pending", "pending", "completed"],
    ),
    "one call approved, one denied": dict(
        turns=[
            {"calls": [("call_yes", "mcp_shop_add_note", {"customer_id": "C-1001", "text": "late"}),
                       ("call_no", "mcp_shop_add_note", {"customer_id": "C-1002", "text": "rude"})]},
            {"say": "One note is there."},
        ],
        steps=[(10, "run", "Note it."), (0, "resume", "last", "--approve", "call_yes", "--deny", "call_no=not nice")],
        expect=dict(traces=2, agents=2, llm=2, tool=1, guardrail=2, errors=0, chain=2, spans=9, pending=2),
        flags=["--resumed-ids", "call_yes"],
        outcomes=["pending", "completed"],
    ),
    "an answer that is rejected and mended": dict(
        agent={"output_schema": {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}},
        turns=[{"say": '{"m":1}'}, {"say": '{"n":1}'}],
        steps=[(0, "run", "How many?")],
        expect=dict(traces=1, agents=1, llm=2, tool=0, guardrail=2, errors=0, chain=1, spans=6),
        outcomes=["completed"],
    ),
    "a tool that does not exist, and arguments that do not fit": dict(
        turns=[
            {"calls": [("call_fly", "mcp_shop_fly", {}), ("call_bad", "mcp_shop_get_invoice", {"order_id": "1077"})]},
            {"calls": [("call_torn", "mcp_shop_get_invoice", '{"order_id": "A-10')]},
            {"say": "I give up."},
        ],
        steps=[(0, "run", "Fly!")],
        expect=dict(traces=1, agents=1, llm=3, tool=0, errors=0, chain=1, spans=5, pending=3, unknown_tools=1),
        outcomes=["completed"],
    ),
    "a streamed answer": dict(
        model={"stream": True},
        turns=[{"say": "One moment, please.", "calls": [ORDERS]}, {"say": "The grinder is late, the machine is there."}],
        steps=[(0, "run", "What is late?")],
        expect=dict(traces=1, agents=1, llm=2, tool=1, errors=0, chain=1, spans=5),
        outcomes=["completed"],
        every_llm_span_has=["gen_ai.response.time_to_first_chunk"],
    ),
    "a provider that is not there at first": dict(
        turns=[{"status": 503}, {"say": "Here I am."}],
        steps=[(0, "run", "Hello?")],
        expect=dict(traces=1, agents=1, llm=1, tool=0, errors=0, chain=1, spans=3),
        outcomes=["completed"],
    ),
    "the tool budget used up": dict(
        agent={"limits": {"max_tool_interactions": 1}},
        turns=[{"calls": [ORDERS]}, {"say": "That is all I know."}],
        steps=[(0, "run", "What else?")],
        expect=dict(traces=1, agents=1, llm=2, tool=1, errors=0, chain=1, spans=5),
        outcomes=["completed"],
    ),
    "two runs of one session": dict(
        turns=[{"calls": [ORDERS]}, {"say": "Two orders."}, {"say": "As I said: two."}],
        steps=[(0, "run", "--session", "s1", "How many?"), (0, "run", "--session", "s1", "Sure?")],
        expect=dict(traces=2, agents=2, llm=3, tool=1, errors=0, chain=2, spans=8),
        outcomes=["completed", "completed"],
    ),
    "a run forked where its first turn was over": dict(
        turns=[{"calls": [ORDERS]}, {"say": "Two orders."}, {"say": "Two, again."}],
        steps=[(0, "run", "How many?"), (0, "runs", "fork", "last", "--at", "10")],
        expect=dict(traces=2, roots=2, agents=2, llm=3, tool=1, errors=0, chain=2, spans=8),
        outcomes=["completed", "completed"],
    ),
    "a trace that the caller began": dict(
        turns=[{"calls": [ORDERS]}, {"say": "Two."}],
        steps=[(0, "run", "--traceparent", PARENT, "--tracestate", "rojo=1", "--baggage", "user=ada", "How many?")],
        expect=dict(traces=1, agents=1, llm=2, tool=1, errors=0, chain=1, spans=5),
        flags=["--allow-remote-parent"],
        outcomes=["completed"],
        carried={"tracestate": "rojo=1", "baggage": "user=ada"},
    ),
    "two runs in one trace that their caller began, by its environment": dict(
        environment={"TRACEPARENT": PARENT, "TRACESTATE": "rojo=1", "BAGGAGE": "user=ada,no pair"},
        turns=[{"calls": [ORDERS]}, {"say": "Two."}, {"calls": [POINTS]}, {"say": "Some."}],
        steps=[(0, "run", "--session", "s1", "How many?"), (0, "run", "--session", "s1", "And points?")],
        expect=dict(traces=1, agents=2, llm=4, tool=2, chain=2, errors=0, spans=10),
        flags=["--allow-remote-parent", "--off", "S3"],  # the rule assumes one run per trace
        outcomes=["completed", "completed"],
        carried={"tracestate": "rojo=1", "baggage": "user=ada"},
    ),
    "a caller's context that no propagator lets in": dict(
        environment={"TRACEPARENT": PARENT, "BAGGAGE": "user=ada", "OTEL_PROPAGATORS": "tracecontext"},
        turns=[{"calls": [ORDERS]}, {"say": "Two."}],
        steps=[(0, "run", "How many?")],
        expect=dict(traces=1, agents=1, llm=2, tool=1, chain=1, errors=0, spans=5),
        flags=["--allow-remote-parent"],
        outcomes=["completed"],
        carried={"tracestate": None, "baggage": None},
    ),
    "a run of 120 turns": dict(
        delay_ms=0,
        agent={"limits": {"max_iterations": 200, "max_tool_interactions": 200}},
        turns=[{"calls": [(f"call_{n}", *POINTS[1:])]} for n in range(120)] + [{"say": "She has some."}],
        steps=[(0, "run", "How many points, again and again?")],
        expect=dict(traces=1, agents=1, llm=121, tool=120, chain=1, errors=0, spans=243),
        outcomes=["completed"],
    ),
    "content that stays at home": dict(
        telemetry={"content": "none"},
        turns=[{"say": "Hush!", "calls": [ORDERS, NO_INVOICE]}, {"say": "It is a secret."}],
        steps=[(0, "run", "Whisper!")],
        expect=dict(traces=1, agents=1, llm=2, tool=2, errors=1, chain=1, spans=6),
        flags=["--hidden", "inputs,outputs"] + [
            word for said in ["Whisper!", "Hush!", "secret", "C-1001", "A-9999", "A-1077", "grinder", "the desk"]
            for word in ("--must-not-contain", said)
        ],
        outcomes=["completed"],
    ),
    "content that the switches of OpenInference hide": dict(
        environment={"OPENINFERENCE_HIDE_INPUTS": "true", "OPENINFERENCE_HIDE_OUTPUTS": "TRUE"},
        turns=[{"say": "Hush!", "calls": [ORDERS, NO_INVOICE]}, {"say": "It is a secret."}],
        steps=[(0, "run", "Whisper!")],
        expect=dict(traces=1, agents=1, llm=2, tool=2, errors=1, chain=1, spans=6),
        flags=["--hidden", "inputs,outputs"] + [
            word for said in ["Whisper!", "Hush!", "secret", "C-1001", "A-9999", "A-1077", "grinder", "the desk"]
            for word in ("--must-not-contain", said)
        ],
        outcomes=["completed"],
    ),
    "contents repeated under their GenAI names": dict(
        environment={"OPENINFERENCE_ENABLE_GENAI_SEMCONV": "true"},
        turns=[{"say": "I look.", "calls": [ORDERS]}, {"say": "Two."}],
        steps=[(0, "run", "How many?")],
        expect=dict(traces=1, agents=1, llm=2, tool=1, errors=0, chain=1, spans=5),
        outcomes=["completed"],
        every_llm_span_has=[
            "gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.system_instructions", "gen_ai.tool.definitions",
        ],
    ),
    "of each conversation the last turn": dict(
        telemetry={"content": "last_turn"},
        turns=[{"say": "I look.", "calls": [CUSTOMER]}, {"calls": [ORDERS]}, {"say": "Two."}],
        steps=[(0, "run", "How many has Ada?")],
        expect=dict(traces=1, agents=1, llm=3, tool=2, errors=0, chain=1, spans=7),
        flags=["--off", "O3"],  # the rule requires each message that the model received
        outcomes=["completed"],
    ),
    "messages, tools and settings hidden one by one": dict(
        environment={
            "OPENINFERENCE_HIDE_INPUT_MESSAGES": "true", "OPENINFERENCE_HIDE_OUTPUT_MESSAGES": "true",
            "OPENINFERENCE_HIDE_LLM_TOOLS": "true", "OPENINFERENCE_HIDE_LLM_INVOCATION_PARAMETERS": "true",
        },
        turns=[{"say": "I look.", "calls": [ORDERS]}, {"say": "Two."}],
        steps=[(0, "run", "How many?")],
        expect=dict(traces=1, agents=1, llm=2, tool=1, errors=0, chain=1, spans=5),
        flags=["--hidden", "input_messages,output_messages,llm_tools,invocation_parameters"],
        outcomes=["completed"],
    ),
    "a process that is killed while a tool is at work": dict(
        delay_ms=5000,
        turns=[{"calls": [POINTS]}, {"say": "She has some."}],
        steps=[("killed", "run", "How many points?"), (0, "resume", "last")],
        # The successor sends what the killed process did not, from the journal. The call is read-only, so it is repeated; O4
        # sees both, and the first never got an answer that counts.
        expect=dict(traces=2, roots=2, agents=2, llm=2, tool=2, errors=1, spans=8),
        flags=["--resumed-ids", "call_points", "--off", "O4"],
        outcomes=["interrupted", "completed"],
    ),
    "a server that starts slowly, in a run and in the process that resumes it": dict(
        start_ms=800,
        turns=[{"calls": [("call_note", "mcp_shop_add_note", {"customer_id": "C-1001", "text": "late"})]}, {"say": "Noted."}],
        steps=[(10, "run", "Note it."), (0, "resume", "last", "--approve", "call_note")],
        expect=dict(traces=2, agents=2, llm=2, tool=1, guardrail=1, errors=0, chain=2, spans=8, pending=1),
        flags=["--resumed-ids", "call_note"],
        outcomes=["pending", "completed"],
    ),
    "two runs, of which one waits for admission": dict(
        delay_ms=1500,
        gateway={"listen": "127.0.0.1:0", "anonymous": True, "runs": {"max_active": 1}},
        turns=[{"calls": [POINTS]}, {"say": "Some."}, {"say": "As I said: some."}],
        steps=[("served", "How many points?", "Sure?")],
        expect=dict(traces=2, agents=2, llm=3, tool=1, errors=0, chain=3, spans=9),
        flags=["--one-at-a-time"],
        outcomes=["completed", "completed"],
    ),
    "over http/json": dict(
        protocol="http/json",
        turns=[{"calls": [ORDERS, NO_INVOICE]}, {"say": "There is no such order."}],
        steps=[(0, "run", "Where is order A-9999?")],
        expect=dict(traces=1, agents=1, llm=2, tool=2, chain=1, errors=1, spans=6, parallel=2),
        outcomes=["completed"],
    ),
    "over gRPC": dict(
        protocol="grpc",
        turns=[{"calls": [ORDERS, NO_INVOICE]}, {"say": "There is no such order."}],
        steps=[(0, "run", "Where is order A-9999?")],
        expect=dict(traces=1, agents=1, llm=2, tool=2, chain=1, errors=1, spans=6, parallel=2),
        outcomes=["completed"],
    ),
    "a collector that is down at first": dict(
        turns=[{"calls": [ORDERS]}, {"say": "Two."}],
        steps=[(0, "run", "How many?")],
        expect=dict(traces=1, agents=1, llm=2, tool=1, chain=1, errors=0, spans=5),
        flags=["--fail-first", "6"],
        outcomes=["completed"],
    ),
    "an MCP server that dies in the middle of a call": dict(
        delay_ms="dies",
        turns=[{"calls": [POINTS]}, {"say": "The shop does not answer."}],
        steps=[(0, "run", "How many points?")],
        expect=dict(traces=1, agents=1, llm=2, tool=1, chain=2, errors=1, spans=6),
        flags=["--off", "O4"],  # the server died before it logged the request
        outcomes=["completed"],
    ),
    "cancelled while a tool is at work": dict(
        delay_ms=5000,
        turns=[{"calls": [POINTS]}],
        steps=[("cancelled", "run", "How many points?")],
        expect=dict(traces=1, agents=1, llm=1, tool=1, chain=1, spans=4),
        flags=["--off", "O4"],  # the caller stopped waiting for the server's answer
        outcomes=["cancelled"],
    ),
    "the limit of turns": dict(
        agent={"limits": {"max_iterations": 2}},
        turns=[{"calls": [ORDERS]}, {"calls": [("call_more", *POINTS[1:])]},
               {"say": "That is how far I came.", "calls": [("call_never", *POINTS[1:])]}],
        steps=[(1, "run", "Look at everything.")],
        expect=dict(traces=1, agents=1, llm=3, tool=2, chain=1, errors=1, spans=7, pending=1, unknown_tools=0),
        outcomes=["incomplete"],
    ),
    "an approval that ran out": dict(
        policy={"name": "desk", "default": "ask", "answer_timeout_s": 1, "rules": []},
        turns=[{"calls": [ORDERS]}, {"say": "I was not allowed to look."}],
        steps=[(10, "run", "What did she order?"), ("sleep", "1.2"), (0, "approvals", "expire")],
        expect=dict(traces=2, agents=2, llm=2, tool=0, guardrail=1, chain=2, errors=0, spans=7, pending=1),
        outcomes=["pending", "completed"],
    ),
    "an answer that a person and a program judge": dict(
        turns=[{"calls": [ORDERS]}, {"say": "There are two orders."}],
        steps=[
            (0, "run", "What did she order?"),
            (0, "runs", "feedback", "last", "--name", "quality", "--score", "1", "--comment", "Both are there."),
            (0, "runs", "feedback", "last", "--name", "quality", "--score", "1", "--comment", "Both are there."),
            (0, "runs", "feedback", "last", "--name", "length", "--label", "short", "--kind", "code"),
        ],
        expect=dict(traces=1, roots=1, agents=1, llm=2, tool=1, errors=0, chain=1, evaluator=2, spans=7),
        outcomes=["completed"],
    ),
    "the demonstration": dict(
        demo=True,
        steps=[(0, "demo")],
        expect=dict(traces=3, roots=3, agents=3, llm=6, tool=6, guardrail=1, chain=3, errors=0, spans=19, pending=5),
        flags=["--resumed-ids", "call_4_1,call_5_1"],
        outcomes=["pending", "pending", "completed"],
    ),
}

# Each of the four APIs, streamed and whole.
for WIRE, SETTINGS in {
    "openai_chat": {}, "openai_responses": {}, "anthropic": {"max_tokens": 1000}, "gemini": {},
}.items():
    for STREAM in (True, False):
        CASES[f"{WIRE}, {'streamed' if STREAM else 'whole'}"] = dict(
            wire=WIRE,
            model={"stream": STREAM, **SETTINGS},
            turns=[
                {"think": "Look it up.", "say": "I look.", "calls": [ORDERS]},
                {"think": "And that one.", "calls": [NO_INVOICE]},
                {"say": "There is no such order."},
            ],
            steps=[(0, "run", "Where is order A-9999?")],
            expect=dict(traces=1, agents=1, llm=3, tool=2, chain=1, errors=1, spans=7),
            outcomes=["completed"],
        )

# The cases with the most to show in a real Phoenix, which is queried about each of them.
TELLING = [
    "a plain answer",
    "two MCP calls in parallel, one of them failing",
    "pending, and resumed by another process with an external result",
    "one call approved, one denied",
    "an answer that is rejected and mended",
    "an answer that a person and a program judge",
    "a run of 120 turns",
    "anthropic, streamed",
]
