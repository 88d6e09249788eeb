"""Generates the operations of both clients from the API description: one method for each operation, grouped by tag.

`operations.py OPENAPI python|typescript` prints the module. A method takes the parameters of the path and the body in this
order, and every other parameter by its name; it returns the JSON of a successful response. A form with a file is not one body:
a method takes the file, and every other part by its name.
"""

import json
import re
import sys
from typing import NamedTuple

# Parameters of streams and of conditional reads, whose responses have another form.
OMITTED = {"include", "If-None-Match"}
# Operations whose response is a stream, for which the clients have methods by hand, or a page: the group and the name of the
# method that reads the page. OpenAPI has no second operation for it on the same path.
PAGES = {
    "watchRun": ("runs", ["list", "events"]),
    "watchEvents": ("runs", ["list", "all", "events"]),
    "watchApprovals": ("approvals", ["list", "events"]),
}
OF_STREAMS = {"Last-Event-ID", "until"}
KINDS = {"query": "query", "header": "headers"}
FORMS = {"application/json": "json", "application/octet-stream": "bytes", "application/x-ndjson": "text", "": "none"}
SCALARS = {
    "python": {"string": "str", "integer": "int", "boolean": "bool"},
    "typescript": {"string": "string", "integer": "number", "boolean": "boolean"},
}


class Operation(NamedTuple):
    group: str
    words: list[str]
    summary: str
    verb: str
    path: str
    places: list[str]
    body: str | None
    body_required: bool
    parts: dict[str, dict] | None
    options: list[dict]
    form: str
    result: str


def operations(description):
    for path, verbs in description["paths"].items():
        for verb, operation in verbs.items():
            yield parsed(path, verb, operation, description)


def parsed(path, verb, operation, description):
    group = operation["tags"][0].replace("-", "_")
    words = re.findall("[A-Z]?[a-z]+", operation["operationId"])
    omitted, summary = OMITTED, operation["summary"]
    if operation["operationId"] in PAGES:
        (group, words), omitted = PAGES[operation["operationId"]], OF_STREAMS
        summary = summary.replace("Stream", "List")
    # `listRuns` of the group `runs` is `runs.list`, and `createRun` is `runs.create`.
    if "_".join(words[1:]).lower() in (group, group[:-1]):
        words = words[:1]
    body, parts = operation.get("requestBody", {}), None
    if "multipart/form-data" in body.get("content", {}):
        form = reference(body["content"]["multipart/form-data"]["schema"])
        properties = description["components"]["schemas"][form]["properties"]
        body, parts = {}, {name: schema for name, schema in properties.items() if name != "file"}
    content, media = next(iter(success(operation).get("content", {}).items()), ("", {}))
    return Operation(
        group=group,
        words=[word.lower() for word in words],
        summary=summary,
        verb=verb.upper(),
        path=path,
        places=re.findall(r"{(\w+)}", path),
        body=reference(body["content"]["application/json"]["schema"]) if body else None,
        body_required=body.get("required", False),
        parts=parts,
        options=[o for o in operation.get("parameters", []) if o["in"] in KINDS and o["name"] not in omitted],
        form=FORMS[content],
        result=reference(media["schema"]) if content == "application/json" else "",
    )


def success(operation):
    """The first successful response."""
    return next(response for status, response in operation["responses"].items() if status[0] == "2")


def reference(schema):
    return schema["$ref"].rpartition("/")[2]


def annotation(schema, language):
    """The type of a parameter."""
    if "enum" in schema:
        values = [json.dumps(value) for value in schema["enum"]]
        return f"Literal[{', '.join(values)}]" if language == "python" else " | ".join(values)
    if schema.get("type") == "array":
        item = annotation(schema["items"], language)
        return f"Sequence[{item}]" if language == "python" else f"({item})[]"
    if "$ref" in schema:
        return reference_type(schema, language)
    # A part of a form that may be left out is also nullable in its schema.
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    return SCALARS[language][next(kind for kind in kinds if kind != "null")]


def reference_type(schema, language):
    name = reference(schema)
    return f"models.{name}" if language == "python" else f'Schemas["{name}"]'


def groups(all_operations):
    return sorted({operation.group for operation in all_operations})


def snake(name):
    return name.lower().replace("-", "_")


def camel(words):
    return words[0] + pascal(words[1:])


def pascal(words):
    return "".join(word.capitalize() for word in words)


def python(all_operations):
    yield '"""Operations of the API, generated from its description."""\n'
    yield "from __future__ import annotations\n"
    yield "from collections.abc import Sequence"
    yield "from typing import Literal\n"
    yield "from .. import models"
    yield "from ..files import FileContent"
    yield "from .transport import AsyncTransport, quoted"
    for group in groups(all_operations):
        name = pascal(group.split("_"))
        yield f'\n\nclass Async{name}:\n    """Operations of the group `{group}`."""\n'
        yield "    def __init__(self, transport: AsyncTransport) -> None:\n        self._transport = transport"
        for operation in all_operations:
            if operation.group == group:
                yield from python_method(operation)


def python_method(operation):
    result = {"none": "None", "bytes": "bytes", "text": "str"}.get(operation.form)
    result = result or f"models.{operation.result}"
    arguments = ["self", *(f"{place}: str" for place in operation.places)]
    if operation.body:
        arguments.append(f"body: models.{operation.body}" + ("" if operation.body_required else " | None = None"))
    if operation.parts is not None:
        arguments += ["file: FileContent", "*", "name: str | None = None"]
        arguments += [f"{part}: {annotation(schema, 'python')} | None = None" for part, schema in operation.parts.items()]
    if operation.options:
        arguments += [] if operation.parts is not None else ["*"]
        for option in operation.options:
            arguments.append(f"{snake(option['name'])}: {annotation(option['schema'], 'python')} | None = None")
    named = {kind: [f'"{o["name"]}": {snake(o["name"])}' for o in operation.options if o["in"] == kind] for kind in KINDS}
    sent = [f"{field}={{{', '.join(named[kind])}}}" for kind, field in KINDS.items() if named[kind]]
    sent += ["body=body"] if operation.body else []
    if operation.parts is not None:
        fields = ", ".join(f'"{part}": {part}' for part in operation.parts)
        sent += ["file=file", "name=name", f"fields={{{fields}}}"]
    path = re.sub(r"{(\w+)}", r"{quoted(\1)}", operation.path)
    call = ", ".join([f'"{operation.verb}"', f'f"{path}"', f'"{operation.form}"', *sent])
    yield f"\n    async def {'_'.join(operation.words)}({', '.join(arguments)}) -> {result}:"
    yield f'        """{operation.summary}."""'
    yield f"        return await self._transport.call({call})"


def typescript(all_operations):
    yield "// Operations of the API, generated from its description.\n"
    yield 'import type { components } from "./schemas.js";'
    yield 'import { type FileContent, form } from "./files.js";'
    yield 'import type { Transport } from "./transport.js";\n'
    yield 'export type Schemas = components["schemas"];'
    for group in groups(all_operations):
        words = group.split("_")
        yield f"\n/** Operations of the group `{camel(words)}`. */"
        yield f"export class {pascal(words)} {{\n  constructor(private readonly transport: Transport) {{}}"
        for operation in all_operations:
            if operation.group == group:
                yield from typescript_method(operation)
        yield "}"


def typescript_method(operation):
    result = {"none": "void", "bytes": "Uint8Array", "text": "string"}.get(operation.form)
    result = result or f'Schemas["{operation.result}"]'
    arguments = [f"{place}: string" for place in operation.places]
    if operation.body:
        arguments.append(f"body{'' if operation.body_required else '?'}: Schemas[\"{operation.body}\"]")
    if operation.parts is not None:
        arguments.append("file: FileContent")
    # A parameter of the query keeps its name, as members of bodies do; the name of a header is in camel case.
    names = {option["name"]: option["name"] if option["in"] == "query" else camel(snake(option["name"]).split("_")) for option in operation.options}
    members = [f"{names[option['name']]}?: {annotation(option['schema'], 'typescript')}" for option in operation.options]
    if operation.parts is not None:
        members += ["name?: string", *(f"{part}?: {annotation(schema, 'typescript')}" for part, schema in operation.parts.items())]
    arguments.append(f"options: {{ {'; '.join([*members, 'signal?: AbortSignal'])} }} = {{}}")
    named = {kind: [f'"{o["name"]}": options.{names[o["name"]]}' for o in operation.options if o["in"] == kind] for kind in KINDS}
    sent = [f"{field}: {{ {', '.join(named[kind])} }}" for kind, field in KINDS.items() if named[kind]]
    sent += ["body"] if operation.body else []
    if operation.parts is not None:
        fields = ", ".join(f"{part}: options.{part}" for part in operation.parts)
        sent.append(f"body: form(file, options.name, {{ {fields} }})")
    path = re.sub(r"{(\w+)}", r"${encodeURIComponent(\1)}", operation.path)
    call = f'"{operation.verb}", `{path}`, "{operation.form}", {{ {", ".join([*sent, "signal: options.signal"])} }}'
    yield f"\n  /** {operation.summary}. */"
    yield f"  {camel(operation.words)}({', '.join(arguments)}): Promise<{result}> {{"
    yield f"    return this.transport.call({call});"
    yield "  }"


def main():
    path, language = sys.argv[1:]
    with open(path, encoding="utf-8") as file:
        found = list(operations(json.load(file)))
    write = {"python": python, "typescript": typescript}[language]
    print("\n".join(write(found)))


if __name__ == "__main__":
    main()
