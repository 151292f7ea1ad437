"""Proves the deployment: the packed functions behind the packaged template, on an emulator of AWS.

In this order: weigh, deploy twice without Rust, work with keys, load the demo set, send every recorded event (`replay`
compares the answers with those of `cargo local`), see the functions on the stream follow, upload, download a file, kill
a function in a call, use the tools, take a role away. What is wrong ends the run, with 1. Logs: target/deploy.
"""

import concurrent.futures
import contextlib
import json
import os
import re
import shutil
import signal
import sys
import tempfile
import time
import zipfile
from pathlib import Path

import requests
from emulated import RELEASE, STAGE, WORK, Deployment, client, emulator, expect, local_service, receiver, run, wait_for
from standardwebhooks import Webhook

PAYMENT_PORT = 8002
# A megabyte costs milliseconds of a cold start. A binary that contains a text of `LARGER` has an HTTP client of its own
# or all time zones. The functions in `ALL_KINDS` handle every kind of record, and no caller waits for them.
ZIP_LIMIT, LARGER_ZIP_LIMIT = 3_700_000, 4_500_000
LARGER, ALL_KINDS = (b"/reqwest-", b"Antarctica/"), ("RecordChangedFunction", "RedriveFunction", "RunExportsFunction")

INTERNAL_ERROR = {"detail": [{"loc": [], "msg": "Internal server error", "type": "internal_error"}]}
# Known gaps of the emulator: it applies no GatewayResponses, and its events name no domain. It accepts, but ignores,
# the expiry of items, alarms, and the parameters of SAM itself, so these steps cannot prove them.
NO_SUCH_PATH = (403, {"message": "Missing Authentication Token"})
CRASHED = (502, "Runtime.ExitError")
EMULATED_ADDRESS = f"https://localhost/{STAGE}"


def step(title: str, action, *arguments) -> None:
    """Prints the name of a step, runs it, and prints its time."""
    print(f"\n-- {title}", flush=True)
    begun = time.monotonic()
    action(*arguments)
    print(f"   {time.monotonic() - begun:.1f} s", flush=True)


def weigh() -> None:
    """Every function's zip is small enough."""
    for archive in sorted(RELEASE.glob("functions/*.zip")):
        binary, name = zipfile.ZipFile(archive).read("bootstrap"), archive.stem
        size, larger = archive.stat().st_size, any(text in binary for text in LARGER) or name in ALL_KINDS
        limit = LARGER_ZIP_LIMIT if larger else ZIP_LIMIT
        print(f"   {name:45} {len(binary) / 1e6:6.2f} MB, zip {size / 1e6:.2f} MB")
        expect(size <= limit, f"the zip of {name} may have {limit / 1e6:.1f} MB at most")


def deploy(address: str, wanted: str) -> None:
    """Deploys the release, without cargo; the output of SAM must contain `wanted`."""
    config = ("--config-file", str(RELEASE / "samconfig.toml"), "--config-env", STAGE)
    overrides = ("--parameter-overrides", f"Stage={STAGE}", "Mcp=Enabled")  # instead of those of samconfig.toml
    folders = os.environ["PATH"].split(os.pathsep)
    path = os.pathsep.join(folder for folder in folders if not shutil.which("cargo", path=folder))
    packaged = ("--template-file", str(RELEASE / "template.yaml"))
    said = run("sam", "deploy", *config, *packaged, *overrides, AWS_ENDPOINT_URL=address, PATH=path)
    expect(wanted in said, f"{said}\nsam deploy does not say: {wanted}")


def keys(service: Deployment) -> None:
    """From an empty table to the first successful call, and back."""
    good, made = service.invoke("IssueApiKeyFunction", {"name": "CI"})
    expect(good, f"no key was issued: {made}")
    key, organisation = made.pop("api_key"), made["org_id"]
    status, users = service.get("/api/v1/user/get_agent_list/", key)
    expect(status == 200 and users["data"]["total"] == 0, f"a new key opens no new organisation: {status} {users}")
    _, listed = service.invoke("ListApiKeysFunction", {"org_id": organisation})
    expect(listed == [made], f"issued {made}, listed {listed}")
    good, revoked = service.invoke("RevokeApiKeyFunction", {"org_id": organisation, "id": made["id"]})
    expect(good and revoked["revoked_at"], f"not revoked: {revoked}")
    # Another function, which has not seen the key before: the one above trusts the key for half a minute more.
    status, late = service.get("/api/v1/link_tag_entity/list", key)
    expect(status == 401, f"a revoked key was answered {status} {late}")


def resealed(value, context: dict, source, target, key: str):
    """A stored value, with the data key of each sealed secret encrypted with `key` of `target`."""
    if isinstance(value, list):
        return [resealed(each, context, source, target, key) for each in value]
    if isinstance(value, dict):
        return {name: resealed(each, context, source, target, key) for name, each in value.items()}
    if not isinstance(value, bytes):
        return value
    # The version, two lengths, the data key, and the rest.
    end = 7 + int.from_bytes(value[1:3], "big")
    plain = source.decrypt(KeyId="local", CiphertextBlob=value[7:end], EncryptionContext=context)["Plaintext"]
    new = target.encrypt(KeyId=key, Plaintext=plain, EncryptionContext=context)["CiphertextBlob"]
    return value[:1] + len(new).to_bytes(2, "big") + value[3:7] + new + value[end:]


def load(source, source_name: str, target, target_name: str, *keys) -> None:
    """Copies a table's items, but no counts: the stream makes them. `keys`: both KMS, and the key that seals."""
    pages = source.get_paginator("scan").paginate(TableName=source_name)
    items = [item for page in pages for item in page["Items"] if "#COUNTS#" not in item["pk"]["S"]]
    for place, item in enumerate(items):
        if item.get("record", {}).get("S") in ("Agency", "Webhook", "Widget"):
            items[place] = resealed(item, {"organisation": item["pk"]["S"].split("#")[1]}, *keys)
    for start in range(0, len(items), 25):
        left = {target_name: [{"PutRequest": {"Item": item}} for item in items[start : start + 25]]}
        while left:
            left = target.batch_write_item(RequestItems=left)["UnprocessedItems"]
    print(f"   {len(items)} items")


def replay(service: Deployment, local: str, *selection: str) -> None:
    """Sends recorded events to the deployment and to `cargo local`, and compares the answers."""
    unknown = service.get("/api/v1/nothing", "")
    expect(unknown == NO_SUCH_PATH, f"the emulator answers an unknown path {unknown}: replay `unknown` as well")
    addresses = ("--base-url", service.url, "--public-url", EMULATED_ADDRESS, "--against", local)
    print(run("target/debug/replay", *addresses, "--api-key", service.key(), *selection))


def document(service: Deployment) -> None:
    """Anybody gets the document, with its own address; a caller that has it already gets a 304."""
    url = f"{service.url}/api/v1/openapi.json"
    first = requests.get(url, timeout=40)
    expect(first.json()["servers"] == [{"url": EMULATED_ADDRESS}], f"the document: {first.status_code}")
    again = requests.get(url, headers={"If-None-Match": first.headers["etag"]}, timeout=40)
    expect((again.status_code, again.text) == (304, ""), f"the document again: {again.status_code}")


def tls_only(service: Deployment) -> None:
    """The bucket refuses requests without TLS. The emulator has no TLS, so the policy is removed afterwards."""
    refused = service.send("read-datasource-file")
    expect(refused == (500, INTERNAL_ERROR), f"with the policy of the bucket: {refused}")
    client("s3", service.emulator).delete_bucket_policy(Bucket=service.names["FilesBucket"])


def files(service: Deployment) -> None:
    """Only signed addresses upload and download bytes. The bytes of a deleted file are gone."""
    event, good = service.recorded("create-datasource-file"), b"%PDF-1.7\n".ljust(9120, b"x")
    settings = {"params": event["queryStringParameters"], "timeout": 40}
    made = requests.post(service.url + event["path"], data=event["body"], **settings).json()["data"]
    path = f"/api/v1/datasource/datasourcefile/{made['id']}"

    def put(content: bytes) -> int:
        upload = made["upload"]
        headers = {name: value for name, value in upload["headers"].items() if name != "content-length"}
        return requests.put(upload["url"], content, headers=headers, timeout=40).status_code

    answers = [put(content) for content in (good[1:], good, good)]
    expect(answers == [403, 200, 412], f"too short, as signed, once more: {answers}")
    read = requests.get(service.url + path, **settings).json()["data"]
    got = requests.get(read["download_url"], timeout=40)
    kind = got.headers["content-type"]
    expect(read["uploaded"] and (got.content, kind) == (good, "application/pdf"), f"{read} {got}")
    requests.delete(service.url + path, **settings).raise_for_status()
    wait_for(lambda: requests.get(read["download_url"], timeout=40).content != good, "the bytes are gone")
    expect(put(good) == 412, "an upload after the delete is refused")


def journey(service: Deployment, scratch: str, receives: str) -> None:
    """A new organisation goes through docs/JOURNEY.md: its event arrives. Only its keys and expiring items are left."""
    _, made = service.invoke("IssueApiKeyFunction", {"name": "Journey", "role": "admin"})
    authority = f"{scratch}/authority.pem"
    with receiver(f"{receives}:443", authority) as (address, _):
        # No public authority has signed the certificate of this machine.
        service.configure("SendDeliveryFunction", SSL_CERT_FILE=authority)
        said = run(".ci/journey", API=service.url, KEY=made["api_key"], RECEIVER=address)
    secret = re.search(r"whsec_[\w+/=]+", said)[0]
    # Events on other paths are retries of other steps.
    lines = (WORK / "receiver.log").read_text().splitlines()[1:]
    events = [event for event in map(json.loads, lines) if event["path"] == "/events"]
    told = [Webhook(secret).verify(event["body"], event["headers"]) for event in events]
    # The event of the campaign's conversation, closed just before the webhook is deleted, may arrive as well.
    kinds, ids = {event["event"] for event in told}, {event["id"] for event in told}
    expect(kinds == {"conversation.closed"} and len(ids) == len(told), f"the receiver got {told}")
    partition, table = f"ORG#{made['org_id']}", client("dynamodb", service.emulator)
    # Heads and holes keep the next number of a list, and counters of quotas stay, with 0. The health of an endpoint is
    # removed at its next turn. The guard of suppressions stays.
    kept = re.compile(r"#LIST#[^#]+(#HOLES)?|#ENDPOINT_HEALTH#.*|#METERS#.*|#SUPPRESSION_GUARD")

    def left() -> list[dict]:
        pages = table.get_paginator("scan").paginate(TableName=service.table)
        items = [item for page in pages for item in page["Items"] if item["pk"]["S"].startswith(partition)]
        ours = [item for item in items if "ttl" not in item and not item["pk"]["S"].endswith("#API_KEYS")]
        ours = [item for item in ours if not kept.fullmatch(item["pk"]["S"], len(partition))]
        return [item for item in ours if item["pk"]["S"] != f"{partition}#USE" or {"N": "0"} not in item.values()]

    wait_for(lambda: not left(), "nothing of the journey is left", lambda: [item["pk"] for item in left()])


def tools(service: Deployment) -> None:
    """The official client uses the tools. The emulator imports no method ANY, and no name leads to it: both are set."""
    function = service.configure("McpFunction", API_BASE_URL=service.url)
    gateway, api = client("apigateway", service.emulator), service.url.split("/")[-2]
    resources = gateway.get_resources(restApiId=api, limit=500)["items"]
    resource = next(part["id"] for part in resources if part["path"] == "/api/v1/mcp")
    method = {"restApiId": api, "resourceId": resource, "httpMethod": "ANY"}
    gateway.put_method(**method, authorizationType="NONE")
    uri = f"arn:aws:apigateway:us-east-1:lambda:path/2015-03-31/functions/{function['FunctionArn']}/invocations"
    gateway.put_integration(**method, type="AWS_PROXY", integrationHttpMethod="POST", uri=uri)
    read_only = service.key("create-assistant.read-only-key")
    print(run(".ci/mcp", API=service.url, ACME=service.key(), ACME_READ_ONLY=read_only))


def process_of(function: str, parent: int) -> int:
    """The process that runs `function`."""
    mark, children = f"AWS_LAMBDA_FUNCTION_NAME={function}\0".encode(), run("pgrep", "--parent", str(parent)).split()
    found = [int(child) for child in children if mark in Path(f"/proc/{child}/environ").read_bytes()]
    expect(len(found) == 1, f"{function} runs as {found}")
    return found[0]


def killed(service: Deployment, parent: int, provider: int) -> None:
    """A function crashes while it waits for the payment provider: this call and the next one get an answer."""
    function = service.names["SetupPaymentWebhookFunction"]
    victim = process_of(function, parent)
    # A request that the provider has not read, in the kernel's list of connections.
    unread = re.compile(rf":{PAYMENT_PORT:04X} \S+ 01 \w+:(?!0{{8}})")
    os.kill(provider, signal.SIGSTOP)
    with concurrent.futures.ThreadPoolExecutor() as pool:
        call = pool.submit(service.send, "setup-payment-webhook")
        wait_for(lambda: unread.search(Path("/proc/net/tcp").read_text()), "the call gets as far as the provider")
        os.kill(victim, signal.SIGKILL)
        status, answer = call.result()
    os.kill(provider, signal.SIGCONT)
    known = (status, json.loads(answer.get("message", "{}")).get("errorType")) == CRASHED
    expect(known, f"the call of a killed function was answered {status} {answer}")
    status, answer = service.send("setup-payment-webhook")
    expect(status == 200 and process_of(function, parent) != victim, f"the call after it: {status} {answer}")


def confined(service: Deployment) -> None:
    """The emulator enforces the roles of functions; otherwise the steps above would prove nothing about the roles."""
    function = service.functions.get_function_configuration(FunctionName=service.names["GetAgentListFunction"])
    role, roles = function["Role"].rsplit("/", 1)[1], client("iam", service.emulator)
    policies = roles.list_role_policies(RoleName=role)["PolicyNames"]
    with_them = service.send("get-agent-list")[0]
    for name in policies:
        roles.delete_role_policy(RoleName=role, PolicyName=name)
    without = service.send("get-agent-list")
    expect(policies and with_them == 200, f"with the policies {policies} of its role: {with_them}")
    expect(without == (500, INTERNAL_ERROR), f"without the policies of its role: {without}")


def main(receives: str) -> None:
    """Everything, in order."""
    step("size", weigh)
    with contextlib.ExitStack() as stack:
        scratch = stack.enter_context(tempfile.TemporaryDirectory(prefix="deploy-"))
        # Two of them, each with its own demo set: one to compare with, one that lends its records and its provider.
        local, _ = stack.enter_context(local_service("local"))
        demo, provider = stack.enter_context(local_service("demo", PAYMENT_PORT))
        address, parent = stack.enter_context(emulator(scratch))
        step("deploy", deploy, address, "Successfully created/updated stack")
        step("deploy again", deploy, address, "No changes to deploy")
        service = Deployment(address)
        for name in ("SetupPaymentWebhookFunction", "CheckPaymentWebhookFunction", "RemovePaymentWebhooksFunction"):
            service.configure(name, PAYMENT_API_BASE=f"http://127.0.0.1:{PAYMENT_PORT}")  # the parameter takes https
        step("keys", keys, service)
        kms = client("kms", demo[4]), client("kms", address), service.names["SecretsKey"]
        step("demo set", load, client("dynamodb", demo[2]), demo[3], client("dynamodb", address), service.table, *kms)
        step("page", run, ".ci/page", service.url, "--deployed")
        step("bucket", tls_only, service)
        # Two change the key of the tools. The answers of three depend on the schedule, on deletes, and on whole copies.
        later = ("unknown", "delete-", "update-key", "revoke-key", "update-campaign.completed", "read-analytics.by-day")
        step("recorded events", replay, service, local[1], *(part for name in later for part in ("--skip", name)))
        step("document", document, service)
        step("files", files, service)
        step("journey", journey, service, scratch, receives)
        step("killed", killed, service, parent, provider)
        # What belongs to others goes first: it would go with them.
        of_others = ("delete-agency-", "delete-campaign-", "delete-campaign.", "delete-datasource-", "delete-link")
        first = [part for name in of_others for part in ("--only", name)]
        then = [part for name in (*of_others, "delete-campaign") for part in ("--skip", name)]
        step("recorded events that delete", replay, service, local[1], *first)
        step("and the others", replay, service, local[1], "--only", "delete-", *then)
        links = "read-link-tag-entity-list"
        step("links of the deleted tag", wait_for, lambda: not service.send(links)[1]["data"]["total"], "they are gone")
        step("tools", tools, service)
        step("and those of keys", replay, service, local[1], "--only", "update-key", "--only", "revoke-key")
        step("roles", confined, service)
    print("\nThe deployment holds.")


if __name__ == "__main__":
    # All processes that run end with the program, whatever signal ends it.
    for each in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, lambda number, _: expect(condition=False, message=signal.Signals(number).name))
    main(*sys.argv[1:])
