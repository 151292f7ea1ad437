#!/usr/bin/env python3
"""Writes the resources of a client, such as `client.tags`, from `openapi.json` and `clients/names.json`.

Usage: `generate.py typescript FILE`, or `generate.py python FOLDER` with the package that openapi-python-client wrote.
`generate.py samples FOLDER` writes the samples of the document instead, for compilers.
"""

import ast
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

    name: str
    method: str
    path: str
    says: dict[str, Any]

    @property
    def id(self) -> str:
        """Its id in the document."""
        return str(self.says["operationId"])

    @property
    def folder(self) -> str:
        """Where openapi-python-client puts it."""
        return str(self.says["tags"][0]).replace("-", "_")

    def parameters(self, place: str) -> list[dict[str, Any]]:
        """The parameters in the path or in the query."""
        return [parameter for parameter in self.says["parameters"] if parameter["in"] == place]

    def about(self, language: str) -> str:
        """Its description, which names other operations as the client does."""
        named = re.compile("`([a-z]+(?:-[a-z]+)*)`")

        def name(found: re.Match[str]) -> str:
            other = NAMES.get(camel(found[1].replace("-", "_")))
            return f"`{other[language]}`" if other else found[0]

        return named.sub(name, self.says["description"])

    @property
    def is_paged(self) -> bool:
        """Whether its answer is a page of a list."""
        if not self.name.startswith("list"):
            return False
        answer = resolved(self.says["responses"]["200"]["content"]["application/json"]["schema"])
        return bool({"next", "next_page"} & resolved(answer["properties"]["data"])["properties"].keys())


def resolved(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema, or the component to which it refers."""
    component: dict[str, Any] = SCHEMAS[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
    return component


def resources(language: str) -> Iterator[tuple[str, list[Operation]]]:
    """Each resource with its operations."""
    found: dict[str, list[Operation]] = {}
    for path, operations in DOCUMENT["paths"].items():
        for method, says in operations.items():
            if names := NAMES.get(says["operationId"]):
                resource, name = names[language].split(".")
                found.setdefault(resource, []).append(Operation(name, method, path, says))
    for resource, group in sorted(found.items()):
        yield resource, sorted(group, key=lambda operation: operation.name)


def class_name(resource: str) -> str:
    """The name of the class of a resource: `CampaignContactsResource`."""
    return "".join(word[0].upper() + word[1:] for word in resource.split("_")) + "Resource"


def camel(name: str) -> str:
    """A name of the document in TypeScript."""
    return re.sub("_(.)", lambda found: found[1].upper(), name)


# TypeScript

TYPESCRIPT = """// The operations of each resource. `clients/generate.py` has written it.

import { Calls, path, type Body, type Data, type Item, type Options, type Pages, type Query, type Settings } from \
"./calls.js";
%s
/** A client of the API. */
export class Client {
%s
  constructor(settings: Settings) {
    const calls = new Calls(settings);
%s  }
}
"""

TYPESCRIPT_RESOURCE = """
export class %s {
  readonly #calls: Calls;

  constructor(calls: Calls) {
    this.#calls = calls;
  }
%s}
"""

TYPESCRIPT_METHOD = """
  /** %s */
  %s(%s): %s {
    return this.#calls.%s;
  }
"""


def typescript() -> str:
    """The resources in TypeScript."""
    classes = members = assignments = ""
    for resource, operations in resources("typescript"):
        title = class_name(resource)
        methods = "".join(typescript_method(operation) for operation in operations)
        classes += TYPESCRIPT_RESOURCE % (title, methods)
        members += f"  readonly {resource}: {title};\n"
        assignments += f"    this.{resource} = new {title}(calls);\n"
    return TYPESCRIPT % (classes, members, assignments)


def typescript_method(operation: Operation) -> str:
    """A method of a resource."""
    kind = f'<"{operation.id}">'
    parameters = [f"{camel(parameter['name'])}: string" for parameter in operation.parameters("path")]
    sent = []
    if body := operation.says.get("requestBody"):
        parameters.append(f"body{'' if body['required'] else '?'}: Body{kind}")
        sent.append("body")
    if query := operation.parameters("query"):
        is_required = any(parameter["required"] for parameter in query)
        parameters.append(f"query{'' if is_required else '?'}: Query{kind}")
        sent.append("query")
    parameters.append("options?: Options")
    path = "path`" + re.sub(r"\{(\w+)\}", lambda found: "${" + camel(found[1]) + "}", operation.path) + "`"
    if operation.is_paged:
        answer, call = f"Pages<Item{kind}>", f"list{kind}({path}, query, options)"
    else:
        answer = f"Promise<Data{kind}>"
        call = f'send{kind}("{operation.method.upper()}", {path}, {{ {", ".join([*sent, "options"])} }})'
    about = operation.about("typescript").replace("*/", "*\\/")
    return TYPESCRIPT_METHOD % (about, operation.name, ", ".join(parameters), answer, call)


# Python

# The models are many, so a program loads only those that it uses.
PYTHON = """\"\"\"The operations of each resource. `clients/generate.py` has written it.\"\"\"
from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Any, TypeAlias
from uuid import UUID

from .calls import AsyncBase, AsyncPages, At, Base, Pages, Resource, answered
from .client import AuthenticatedClient
from .types import UNSET, Unset

if TYPE_CHECKING:
    from .models import %s

    WebhookEvent: TypeAlias = %s
else:
    WebhookEvent = Any

EVENTS = %s

%s"""

PYTHON_CLIENT = """
class %sClient(%sBase):
    \"\"\"A client of the API for %ssynchronous code.\"\"\"

    def _begin(self, api: AuthenticatedClient) -> None:
%s
"""

PYTHON_METHOD = """
    %sdef %s(%s) -> %s:
        \"\"\"%s\"\"\"
        from .api.%s import %s
        return %s
"""

PYTHON_LIST = """
    def %s(%s) -> %sPages[%s]:
        \"\"\"%s\"\"\"
        from .api.%s import %s
        %sdef one(at: At) -> %s:
            return %s
        return %sPages(one, At(%s))
"""

PYTHON_MODELS = """\"\"\"The models of the API, each of which is loaded when it is first used.\"\"\"
from importlib import import_module
from typing import TYPE_CHECKING, Any

%s
MODULES = %r

if TYPE_CHECKING:
%s
else:
    def __getattr__(name: str) -> Any:
        if name not in MODULES:
            raise AttributeError(name)
        return getattr(import_module(f".{MODULES[name]}", __name__), name)
"""


def snake(name: str) -> str:
    """The module of an operation."""
    return re.sub("(?<=[a-z0-9])([A-Z])", r"_\1", name).lower()


class Package:
    """The package that openapi-python-client wrote: its operations, and the members of its models."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        text = (folder / "models/__init__.py").read_text()
        self.exports = text[text.index("__all__") :]
        imports = [node for node in ast.parse(text).body if isinstance(node, ast.ImportFrom)]
        self.models = {alias.name: str(node.module) for node in imports for alias in node.names}

    def member(self, model: str, name: str) -> str:
        """The type of a member of a model."""
        tree = ast.parse((self.folder / f"models/{self.models[model]}.py").read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == name:
                return ast.unparse(node.annotation)
        raise KeyError(f"{model}.{name}")

    def function(self, operation: Operation) -> ast.FunctionDef:
        """The function that calls an operation."""
        tree = ast.parse((self.folder / f"api/{operation.folder}/{snake(operation.id)}.py").read_text())
        return next(node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "sync_detailed")

    def lazy_models(self) -> str:
        """The file that loads a model when it is first used."""
        imports = "\n".join(f"    from .{module} import {model}" for model, module in self.models.items())
        return PYTHON_MODELS % (self.exports, self.models, imports)


def python(package: Package) -> str:
    """The resources in Python, for synchronous and for asynchronous code."""
    code = ""
    for word in ["", "Async"]:
        members = []
        for resource, operations in resources("python"):
            title = word + class_name(resource)
            code += f"\nclass {title}(Resource):"
            code += "".join(python_method(package, operation, word) for operation in operations)
            members.append(f"        self.{resource} = {title}(api)")
        code += PYTHON_CLIENT % (word, word, "a" if word else "", "\n".join(members))
    bodies = {kind: event["post"]["requestBody"]["content"] for kind, event in DOCUMENT["webhooks"].items()}
    references = {kind: body["application/json"]["schema"]["$ref"] for kind, body in bodies.items()}
    events = {kind: reference.rpartition("/")[2] for kind, reference in references.items()}
    return PYTHON % (", ".join(package.models), " | ".join(events.values()), events, code)


def python_method(package: Package, operation: Operation, word: str) -> str:
    """A method of a resource."""
    function = package.function(operation)
    (answer,) = re.findall(r"\w+Answer", ast.unparse(function))[:1]
    data = package.member(answer, "data")
    ids = [argument.arg for argument in function.args.args]
    signature = ["self", *(ast.unparse(argument) for argument in function.args.args)]
    options: list[str] = []
    sent = [*ids, "client=self._api"]
    pages = [key for key in ["page", "after"] if operation.is_paged and key in ast.unparse(function.args)]
    for argument, default in zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True):
        key = argument.arg
        if key == "client":
            continue
        parameter = ast.unparse(argument) + (f" = {ast.unparse(default)}" if default else "")
        (signature if key == "body" else options).append(parameter)
        sent.append(f"{key}=at.{key}" if key in pages else f"{key}={key}")
    parameters = ", ".join([*signature, *(["*", *options] if options else [])])
    module = snake(operation.id)
    begin, wait, kind = ("async ", "await ", "asyncio_detailed") if word else ("", "", "sync_detailed")
    call = f"answered({wait}{module}.{kind}({', '.join(sent)})).data"
    about = operation.about("python").replace("\\", "\\\\").replace('"', "'")
    if not operation.is_paged:
        return PYTHON_METHOD % (begin, operation.name, parameters, data, about, operation.folder, module, call)
    item = package.member(data, "items").removeprefix("list[").removesuffix("]")
    start = ", ".join(f"{key}={key}" for key in pages)
    head = (operation.name, parameters, word, item, about, operation.folder, module)
    return PYTHON_LIST % (*head, begin, data, call, word, start)


def samples(place: Path) -> None:
    """Writes the samples of the document for a language, such as `createTag.ts`, so that a compiler can check them."""
    place.mkdir()
    for operations in DOCUMENT["paths"].values():
        for says in operations.values():
            for sample in says.get("x-codeSamples", []):
                if ending := {"typescript": "ts", "python": "py"}.get(sample["lang"]):
                    (place / f"{says['operationId']}.{ending}").write_text(sample["source"] + "\n")


if __name__ == "__main__":
    language, place = sys.argv[1], Path(sys.argv[2])
    if language == "samples":
        samples(place)
    elif language == "typescript":
        place.write_text(typescript())
    else:
        package = Package(place)
        (place / "resources.py").write_text(python(package))
        (place / "models/__init__.py").write_text(package.lazy_models())
