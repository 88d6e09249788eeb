#!/usr/bin/env python3
"""Converts an OpenAPI 3.1 description into 3.0 for progenitor, with one media type for each body and one type of success for each
operation. `openapi_3_0.py INPUT OUTPUT`"""

import json
import sys


def main():
    source, target = sys.argv[1:]
    with open(source) as file:
        description = converted(json.load(file))
    description["openapi"] = "3.0.3"
    description.pop("webhooks", None)
    description["info"]["license"].pop("identifier", None)
    for path in description["paths"].values():
        for method in [method for method, operation in path.items() if is_form(operation)]:
            del path[method]
    for operation in (operation for path in description["paths"].values() for operation in path.values()):
        reduce(operation)
    for response in description["components"]["responses"].values():
        # progenitor reads a response as its type only if it is `application/json`.
        response["content"] = {"application/json": response["content"]["application/problem+json"]}
    with open(target, "w") as file:
        json.dump(description, file)


def converted(node):
    """The node with `nullable` in place of the type `null`, and with `enum` in place of `const`."""
    if isinstance(node, list):
        return [converted(item) for item in node]
    if not isinstance(node, dict):
        return node
    node = {name: converted(member) for name, member in node.items()}
    if isinstance(node.get("type"), list):
        kinds = [kind for kind in node["type"] if kind != "null"]
        assert len(kinds) == 1, f"a union of types: {node}"
        node.update(type=kinds[0], nullable=True)
    if {"type": "null"} in (node.get("oneOf") or []):
        branches = [branch for branch in node.pop("oneOf") if branch != {"type": "null"}]
        node.update({"allOf" if len(branches) == 1 else "oneOf": branches}, nullable=True)
    if isinstance(node.get("const"), str):
        node["enum"] = [node.pop("const")]
    return node


def is_form(operation):
    """Whether the body is a form with files, which progenitor does not know."""
    return "multipart/form-data" in operation.get("requestBody", {}).get("content", {})


def reduce(operation):
    for body in [*operation["responses"].values(), operation.get("requestBody", {})]:
        if "application/json" in body.get("content", {}):
            body["content"] = {"application/json": body["content"]["application/json"]}
    responses = operation["responses"]
    if any("content" in response for status, response in responses.items() if status < "3"):
        operation["responses"] = {status: response for status, response in responses.items() if status >= "4" or "content" in response}


if __name__ == "__main__":
    main()
