"""Writes the resources of a client, such as `client.tags` with its methods, from `openapi.json` and `clients/names.json`.

Usage: `generate.py typescript FILE`, or `generate.py python FOLDER` with the package that openapi-python-client wrote.
"""

import ast
import itertools
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
DOCUMENT: dict[str, Any] = json.loads((ROOT / "openapi.json").read_text())
NAMES: dict[str, dict[str, str]] = json.loads((ROOT / "clients/names.json").read_text())
SCHEMAS = DOCUMENT["components"]["schemas"]


@dataclass
class Operation:
    """An operation of the API."""

    method: str
    path: str
    says: dict[str, Any]

    @property
    def id(self) -> str:
        """Its id in the document."""
        return str(self.says["operationId"])

    def parameters(self, place: str) -> list[dict[str, Any]]:
        """The parameters in the path or in the query."""
        return [parameter for parameter in self.says["parameters"] if parameter["in"] == place]

    @property
    def is_paged(self) -> bool:
        """Whether its answer is a page of a list."""
        answer = self.says["responses"].get("200")
        if not answer or not self.id.startswith(("list", "get", "readLinkTag")):
            return False
        schema = resolved(answer["content"]["application/json"]["schema"])
        return bool({"next", "next_page"} & resolved(schema["properties"]["data"])["properties"].keys())


def resolved(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema, or the component to which it refers."""
    component: dict[str, Any] = SCHEMAS[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
    return component


def resources(language: str) -> Iterator[tuple[str, list[tuple[str, Operation]]]]:
    """Each resource with its operations by their names."""
    named = []
    for path, operations in DOCUMENT["paths"].items():
        for method, says in operations.items():
            if name := NAMES.get(says["operationId"]):
                named.append((*name[language].split("."), Operation(method, path, says)))
    named.sort(key=lambda one: one[:2])
    for resource, group in itertools.groupby(named, lambda one: one[0]):
        yield resource, [(name, operation) for _, name, operation in group]


def class_name(resource: str) -> str:
    """The name of the class of a resource: `CampaignContactsResource`."""
    return "".join(word[0].upper() + word[1:] for word in resource.split("_")) + "Resource"


def camel(name: str) -> str:
    """A name of the document in TypeScript."""
    return re.sub("_(.)", lambda found: found[1].upper(), name)


# TypeScript


def typescript() -> str:
    """The resources in TypeScript."""
    text = "// The operations of each resource. Written by `clients/generate.py`.\n\n"
    text += 'import { Calls, Pages, path, type Body, type Data, type Item, type Options, type Query, type Settings } from "./calls.js";\n'
    members = []
    for resource, operations in resources("typescript"):
        title = class_name(resource)
        members.append((resource, title))
        text += f"\nexport class {title} {{\n  readonly #calls: Calls;\n\n  constructor(calls: Calls) {{\n    this.#calls = calls;\n  }}\n"
        text += "".join(typescript_method(name, operation) for name, operation in operations) + "}\n"
    text += "\n/** A client of the API. */\nexport class Client {\n"
    text += "".join(f"  readonly {resource}: {title};\n" for resource, title in members)
    text += "\n  constructor(settings: Settings) {\n    const calls = new Calls(settings);\n"
    text += "".join(f"    this.{resource} = new {title}(calls);\n" for resource, title in members)
    return text + "  }\n}\n"


def typescript_method(name: str, operation: Operation) -> str:
    """A method of a resource."""
    id = f'"{operation.id}"'
    parameters = [f"{camel(parameter['name'])}: string" for parameter in operation.parameters("path")]
    sent = []
    if body := operation.says.get("requestBody"):
        parameters.append(f"body: Body<{id}>" if body["required"] else f"body?: Body<{id}>")
        sent.append("body")
    if query := operation.parameters("query"):
        is_required = any(parameter["required"] for parameter in query)
        parameters.append(f"query: Query<{id}>" if is_required else f"query?: Query<{id}>")
        sent.append("query")
    parameters.append("options?: Options")
    template = re.sub(r"\{(\w+)\}", lambda found: "${" + camel(found[1]) + "}", operation.path)
    if operation.is_paged:
        answer, call = f"Pages<Item<{id}>>", f"list<{id}>(path`{template}`, query, options)"
    else:
        answer = f"Promise<Data<{id}>>"
        call = f'send<{id}>("{operation.method.upper()}", path`{template}`, {{ {", ".join([*sent, "options"])} }})'
    about = operation.says["description"].replace("*/", "*\\/")
    return f"\n  /** {about} */\n  {name}({', '.join(parameters)}): {answer} {{\n    return this.#calls.{call};\n  }}\n"


# Python


def snake(name: str) -> str:
    """The module of an operation or a model."""
    return re.sub("(?<=[a-z0-9])([A-Z])", r"_\1", name).lower()


class Package:
    """The generated package: its operations, and the members of its models."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.models = {
            alias.name: node.module
            for node in ast.parse((folder / "models/__init__.py").read_text()).body
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }

    def member(self, model: str, name: str) -> str:
        """The type of a member of a model."""
        tree = ast.parse((self.folder / f"models/{self.models[model]}.py").read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == name:
                return ast.unparse(node.annotation)
        raise KeyError(f"{model}.{name}")

    def function(self, operation: Operation) -> ast.FunctionDef:
        """The function that calls an operation."""
        folder = operation.says["tags"][0].replace("-", "_")
        tree = ast.parse((self.folder / f"api/{folder}/{snake(operation.id)}.py").read_text())
        found = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "sync_detailed"]
        return found[0]


def python(package: Package) -> str:
    """The resources in Python, for synchronous and for asynchronous code."""
    modules, classes, clients = [], [], []
    for word in ["", "Async"]:
        members = []
        for resource, operations in resources("python"):
            title = word + class_name(resource)
            members.append(f"        self.{resource} = {title}(api)")
            methods = "".join(python_method(package, name, operation, word) for name, operation in operations)
            classes.append(f"class {title}(Resource):\n{methods}")
            if not word:
                modules += [
                    f"from .api.{operation.says['tags'][0].replace('-', '_')} import {snake(operation.id)}"
                    for _, operation in operations
                ]
        clients.append(
            f'class {word}Client({word}Base):\n    """A client of the API for {"a" if word else ""}synchronous code."""\n\n'
            "    def _begin(self, api: AuthenticatedClient) -> None:\n" + "\n".join(members) + "\n"
        )
    code = "\n\n".join(classes + clients)
    used = [model for model in package.models if re.search(rf"\b{model}\b", code)]
    kinds = {kind: event["post"]["requestBody"] for kind, event in DOCUMENT["webhooks"].items()}
    events = {kind: body["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2] for kind, body in kinds.items()}
    return "\n".join(
        [
            '"""The operations of each resource. Written by `clients/generate.py`."""',
            "from __future__ import annotations",
            "import datetime",
            "from typing import Any, TypeAlias",
            "from uuid import UUID",
            *sorted(modules),
            f"from .models import {', '.join(sorted({*used, *events.values()}))}",
            "from .client import AuthenticatedClient",
            "from .calls import AsyncBase, AsyncPages, At, Base, Pages, Resource, answered",
            "from .types import UNSET, Unset",
            "",
            code,
            "WebhookEvent: TypeAlias = " + " | ".join(events.values()),
            "EVENTS: dict[str, Any] = {" + ", ".join(f'"{kind}": {model}' for kind, model in events.items()) + "}",
            "",
        ]
    )


def python_method(package: Package, name: str, operation: Operation, word: str) -> str:
    """A method of a resource."""
    function = package.function(operation)
    (answer,) = set(re.findall(r"\w+Answer", ast.unparse(function.returns or function)))
    data = package.member(answer, "data")
    keywords = zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True)
    given = {argument.arg: "" for argument in function.args.args}
    first = [f"{argument.arg}: {ast.unparse(argument.annotation or argument)}" for argument in function.args.args]
    named = []
    for argument, default in keywords:
        if argument.arg == "client":
            continue
        text = f"{argument.arg}: {ast.unparse(argument.annotation or argument)}"
        text += f" = {ast.unparse(default)}" if default else ""
        given[argument.arg] = argument.arg
        (first if argument.arg == "body" else named).append(text)
    parameters = ["self", *first, *(["*", *named] if named else [])]
    is_paged = operation.is_paged
    pages = [key for key in ["page", "after"] if key in given]
    sent = ["client=self._api"]
    for key, value in given.items():
        sent.append(f"at.{key}" if is_paged and key in pages else key)
        if value:
            sent[-1] = f"{key}={sent[-1]}"
    positional = [one for one in sent if "=" not in one]
    sent = positional + [one for one in sent if "=" in one]
    is_async = bool(word)
    call = f"{snake(operation.id)}.{'asyncio_detailed' if is_async else 'sync_detailed'}({', '.join(sent)})"
    call = f"answered({'await ' if is_async else ''}{call}).data"
    begin = "async def" if is_async else "def"
    about = json.dumps(operation.says["description"], ensure_ascii=False)[1:-1].replace('\\"', "'")
    if not is_paged:
        return f'    {begin} {name}({", ".join(parameters)}) -> {data}:\n        """{about}"""\n        return {call}\n\n'
    item = package.member(data, "items").removeprefix("list[").removesuffix("]")
    start = ", ".join(f"{key}={key}" for key in pages)
    return (
        f'    def {name}({", ".join(parameters)}) -> {word}Pages[{item}]:\n        """{about}"""\n'
        f"        {begin} one(at: At) -> {data}:\n            return {call}\n\n"
        f"        return {word}Pages(one, At({start}))\n\n"
    )


if __name__ == "__main__":
    language, place = sys.argv[1], Path(sys.argv[2])
    if language == "typescript":
        place.write_text(typescript())
    else:
        (place / "resources.py").write_text(python(Package(place)))
