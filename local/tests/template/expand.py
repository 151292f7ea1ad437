"""Expands template.yaml with SAM's own translator, and fails where CloudFormation leaves no room for 300 operations.

It expands the template twice: as it is, to compare the number of resources with the one in docs/OPERATIONS.md, and
with as many made-up operations as that page says fit, to see that they do.
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
# As long as those that `sam package` writes; the stages and names of a real stack are no longer than these.
CODE = {"Bucket": "aws-sam-cli-managed-default-samclisourcebucket-0123456789ab", "Key": "assistants-prod/" + "0" * 32}


def expand(template: dict) -> dict:
    """What CloudFormation gets once SAM has expanded `template`."""
    template = copy.deepcopy(template)
    for resource in template["Resources"].values():
        if resource["Type"] == "AWS::Serverless::Function":
            resource["Properties"]["CodeUri"] = CODE
    # The parser fills in the defaults of parameters, and checks the template against SAM's schema. It looks nothing up.
    return Translator({}, Parser()).translate(template, {}, {})


def operations(template: dict) -> dict[str, tuple[str, dict]]:
    """The function of each operation: its path and its method."""
    found = {}
    for path, methods in template["Resources"]["Api"]["Properties"]["DefinitionBody"]["paths"].items():
        if "Fn::If" in methods:
            continue  # no operation, and not there unless a parameter says so
        for method in methods.values():
            uri = method["x-amazon-apigateway-integration"]["uri"]["Fn::Sub"]
            found[re.search(r"\$\{(\w+)\.Arn\}", uri)[1]] = (path, method)
    return found


def with_made_up(template: dict, count: int) -> dict:
    """The template with `count` operations more: copies of those that are there, each with a path of its own."""
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
    """The resources of the expanded template, and the limits that it or the template itself passes."""
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
    """Both expansions."""
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
