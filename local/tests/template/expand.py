"""Expands template.yaml with SAM's own translator, and fails if 300 operations exceed the quotas of CloudFormation.

It expands the template twice: unchanged, to compare the number of resources with docs/OPERATIONS.md, and with as many
made-up operations as that page has room for, to check that they fit.
"""

import copy
import json
import logging
import re
import sys
from pathlib import Path

from samcli.yamlhelper import yaml_parse
from samtranslator.parser.parser import Parser
from samtranslator.translator.translator import Translator

ROOT = Path(__file__).resolve().parents[3]
FEWEST_OPERATIONS = 300
# CloudFormation's quotas for a stack.
RESOURCES, OUTPUTS, BYTES = 500, 200, 1_000_000
# A bucket and a key of the length that `sam package` writes.
CODE = {"Bucket": "aws-sam-cli-managed-default-samclisourcebucket-0123456789ab", "Key": "assistants-prod/" + "0" * 32}


def expand(template: dict) -> dict:
    """The template that SAM makes of `template` for CloudFormation."""
    template = copy.deepcopy(template)
    for resource in template["Resources"].values():
        if resource["Type"] == "AWS::Serverless::Function":
            resource["Properties"]["CodeUri"] = CODE
    # The parser fills in the defaults of parameters, and checks the template against SAM's schema, without a network.
    return Translator({}, Parser()).translate(template, {}, {})


def operations(template: dict) -> dict[str, tuple[str, dict]]:
    """The function of each operation: its path and its method."""
    found = {}
    for path, methods in template["Resources"]["Api"]["Properties"]["DefinitionBody"]["paths"].items():
        if "Fn::If" in methods:
            continue  # no operation; a parameter adds it
        for method in methods.values():
            uri = method["x-amazon-apigateway-integration"]["uri"]["Fn::Sub"]
            found[re.search(r"\$\{(\w+)\.Arn\}", uri)[1]] = (path, method)
    return found


def with_made_up(template: dict, count: int) -> dict:
    """The template with `count` more operations: copies of its operations, each with its own path."""
    template = copy.deepcopy(template)
    paths = template["Resources"]["Api"]["Properties"]["DefinitionBody"]["paths"]
    models = list(operations(template).items())
    for number in range(count):
        model, (path, method) = models[number % len(models)]
        name = f"{model.removesuffix('Function')}{number}Function"
        template["Resources"][name] = copy.deepcopy(template["Resources"][model])
        method = copy.deepcopy(method)
        uri = method["x-amazon-apigateway-integration"]["uri"]
        uri["Fn::Sub"] = uri["Fn::Sub"].replace("${" + model + ".Arn}", "${" + name + ".Arn}")
        paths[f"{path}/made_up_{number}"] = {"post": method}
    return template


def measure(name: str, template: dict) -> tuple[int, list[str]]:
    """The number of resources of the expanded template, and the exceeded limits."""
    expanded = expand(template)
    size = {
        "resources": (len(expanded["Resources"]), RESOURCES),
        "outputs": (len(expanded["Outputs"]), OUTPUTS),
        "bytes before SAM": (len(json.dumps(template)), BYTES),
        "bytes after SAM": (len(json.dumps(expanded)), BYTES),
    }
    print(f"{name}: " + ", ".join(f"{count} {what} of {limit}" for what, (count, limit) in size.items()))
    return size["resources"][0], [f"{name}: {count} {what}" for what, (count, limit) in size.items() if count > limit]


def main() -> None:
    """Makes and compares both expansions."""
    logging.disable(logging.WARNING)
    template = yaml_parse((ROOT / "template.yaml").read_text())
    page = (ROOT / "docs/OPERATIONS.md").read_text()
    stated = re.search(r"(\d+) resources today.*room for (\d+) more operations", page, re.DOTALL)
    if not stated:
        sys.exit("expand: docs/OPERATIONS.md does not say how many resources there are, and how many operations fit")
    resources, room = int(stated[1]), int(stated[2])
    counted, wrong = measure("as it is", template)
    if counted != resources:
        wrong.append(f"docs/OPERATIONS.md says {resources} resources, and SAM makes {counted}")
    full, beyond = measure(f"with {room} made-up operations", with_made_up(template, room))
    wrong += beyond
    if full != counted + room:
        wrong.append(f"{room} made-up operations take {full - counted} resources")
    if (fit := len(operations(template)) + room) < FEWEST_OPERATIONS:
        wrong.append(f"only {fit} operations fit")
    if wrong:
        sys.exit("expand: " + "; ".join(wrong))


if __name__ == "__main__":
    main()
