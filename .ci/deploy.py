"""Proves the deployment: the real binaries behind the real template, on an emulator of AWS.

In this order: build, weigh, deploy twice, work with keys, load the demo set, send every recorded event and compare the answers with
those of `cargo local`, see the function on the table's stream follow, take a role away, break a function in the middle of a call. The
first thing that is not as it should be ends the run, with 1. Logs are kept in target/deploy.
"""

import base64
import calendar
import contextlib
import http.client
import http.server
import io
import json
import os
import platform
import re
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import uuid
import zipfile
from dataclasses import dataclass, field
from pathlib import Path

import boto3
import yaml
from botocore.config import Config

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / "target/deploy"
# Not .aws-sam: a release that somebody has built there for another processor must not be replaced behind their back.
BUILD = WORK / "build"
ENVIRONMENT = "dev"
STACK = "assistants-dev"
ARCHITECTURE = {"x86_64": "x86_64", "aarch64": "arm64"}.get(platform.machine(), "x86_64")
# A megabyte is milliseconds of a cold start. The others are those that bring an HTTP client of their own.
ZIP_LIMIT = 3_200_000
ZIP_LIMIT_WITH_CLIENT = 3_900_000
WITH_CLIENT = ("SetupPaymentWebhookFunction", "SendDeliveryFunction")
# Everything at once; a first build on a small machine is most of it.
TIME_LIMIT = 60 * 60

INTERNAL_ERROR = {"detail": [{"loc": [], "msg": "Internal server error", "type": "internal_error"}]}


# What the emulator is known not to do. Besides, it takes without effect, so that nothing here can prove them: the expiry of items, alarms,
# and the parameters that SAM itself reads (Rollout, Tracing).


@dataclass
class Known:
    """A call that the emulator answers in its own way, and why. When it no longer does, the run fails: the entry is to be removed."""

    status: int
    body: object
    reason: str
    # What answers on API Gateway: the template's GatewayResponses, each of which must say what `cargo local` does.
    responses: tuple[str, ...]


NO_RESPONSES = "it applies no GatewayResponses"
UNKNOWN = Known(403, {"message": "Missing Authentication Token"}, NO_RESPONSES, ("MISSING_AUTHENTICATION_TOKEN",))
EXITED = {"errorMessage": "Runtime exited before returning a response", "errorType": "Runtime.ExitError"}
CRASHED = Known(502, {"message": json.dumps(EXITED)}, NO_RESPONSES, ("INTEGRATION_FAILURE", "DEFAULT_5XX"))
KNOWN = {"unknown path": UNKNOWN, "unknown method": UNKNOWN, "killed in a call": CRASHED}
# Its events name no domain, so that a function which tells the address of the API says this.
EMULATED_BASE = "https://localhost/{stage}"


class Failure(Exception):
    """Something is not as it should be."""


def expect(condition: object, message: str) -> None:
    if not condition:
        raise Failure(message)


# Processes -----------------------------------------------------------------------------------------------------------------------


def forget_accounts() -> None:
    """Leaves nothing in the environment that a call could reach an account with."""
    for name in [name for name in os.environ if name.startswith(("AWS_", "SAM_"))]:
        del os.environ[name]
    os.environ |= {
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_REGION": "us-east-1",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_ENDPOINT_URL": "http://127.0.0.1:1",
        "SAM_CLI_TELEMETRY": "0",
        "NO_PROXY": "127.0.0.1,localhost",
        "no_proxy": "127.0.0.1,localhost",
    }


@contextlib.contextmanager
def started(name: str, command: tuple[str, ...], environment: dict[str, str]):
    """A process, and a function that reads its log so far. At the end of the block it ends, with all that it started."""
    log = WORK / f"{name}.log"
    with log.open("w") as output:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=os.environ | environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            yield process, lambda: log.read_text(errors="replace")
        finally:
            end(process)


def run(name: str, *command: str, **environment: str) -> str:
    """Runs `command` to its end and answers what it printed, which is shown where it fails."""
    with started(name, command, environment) as (process, log):
        process.wait()
        expect(process.returncode == 0, f"{log()}\n{' '.join(command)} ended with {process.returncode}")
        return log()


def end(process: subprocess.Popen) -> None:
    """Ends `process` and all that it started, politely first."""
    for number, patience in ((signal.SIGTERM, 5), (signal.SIGKILL, 5)):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(patience)


@contextlib.contextmanager
def running(name: str, *command: str, ready, **environment: str):
    """Runs `command` in the background until the block ends; the block begins when `ready` answers something for its log."""
    with started(name, command, environment) as (process, log):
        until = time.monotonic() + 60
        while not (answer := ready(log())):
            expect(process.poll() is None, f"{log()}\n{name} ended with {process.poll()}")
            expect(time.monotonic() < until, f"{log()}\n{name} is not ready after a minute")
            time.sleep(0.05)
        yield process, answer


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


# The two sides -------------------------------------------------------------------------------------------------------------------


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: str

    def json(self) -> object:
        with contextlib.suppress(ValueError):
            return json.loads(self.body)
        return self.body


@dataclass
class Service:
    """An API and the Lambda functions behind it, deployed or local."""

    port: int
    host: str
    prefix: str
    # What the service takes for its own address.
    base: str
    functions: object
    names: dict[str, str] = field(default_factory=dict)

    def call(self, method: str, path: str, query: str = "", headers: dict[str, str] | None = None, body: bytes | None = None) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=40)
        with contextlib.closing(connection):
            target = self.prefix + path + (f"?{query}" if query else "")
            connection.request(method, target, body, {**(headers or {}), "host": self.host})
            response = connection.getresponse()
            text = response.read().decode(errors="replace")
            return Answer(response.status, {name.lower(): value for name, value in response.getheaders()}, text)

    def invoke(self, function: str, payload: object) -> Answer:
        """Invokes a function that has no route; 200 stands for success, 400 for an error."""
        reply = self.functions.invoke(FunctionName=self.names.get(function, function), Payload=json.dumps(payload))
        return Answer(400 if "FunctionError" in reply else 200, {}, reply["Payload"].read().decode())

    def replay(self, function: str, event: dict) -> Answer:
        """Sends a recorded event: as HTTP, where that is what it came from."""
        if "httpMethod" not in event:
            return self.invoke(function, event)
        body = event["body"]
        if body is not None:
            body = base64.b64decode(body) if event["isBase64Encoded"] else body.encode()
        headers = {name: value for name, value in (event["headers"] or {}).items() if name.lower() not in ("host", "content-length")}
        query = urllib.parse.urlencode(event["multiValueQueryStringParameters"] or {}, doseq=True)
        return self.call(event["httpMethod"], event["path"], query, headers, body)


def client(service: str, endpoint: str):
    return boto3.client(service, endpoint_url=endpoint, config=Config(connect_timeout=5, read_timeout=40, proxies={}))


@contextlib.contextmanager
def local_service(name: str, program: str):
    """`cargo local` with a fresh demo set: the service, its DynamoDB, its table, the port of its payment provider."""
    payment = free_port()
    pattern = re.compile(r"API +http://127\.0\.0\.1:(\d+)/.*DynamoDB +(\S+) \(table ([^,)]+).*Try it:", re.DOTALL)
    command = [program, "--port", "0", "--dynamodb-port", "0", "--payment-port", str(payment)]
    with running(name, *command, ready=pattern.search) as (_, found):
        port, dynamodb, table = int(found[1]), found[2], found[3]
        base = f"http://127.0.0.1:{port}"
        yield Service(port, f"127.0.0.1:{port}", "", base, client("lambda", base)), client("dynamodb", dynamodb), table, payment


class PaymentProxy(http.server.ThreadingHTTPServer):
    """The payment provider as the deployed function reaches it; it can be told to keep a call waiting."""

    daemon_threads = True

    def __init__(self, provider: int):
        super().__init__(("127.0.0.1", 0), PaymentProxy.Handler)
        self.provider, self.reached, self.open = provider, threading.Event(), threading.Event()
        self.open.set()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.open.set()
        self.shutdown()
        self.server_close()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            self.server.reached.set()
            self.server.open.wait(30)
            connection = http.client.HTTPConnection("127.0.0.1", self.server.provider, timeout=20)
            with contextlib.closing(connection), contextlib.suppress(ConnectionError):
                connection.request("POST", self.path, body, dict(self.headers))
                response = connection.getresponse()
                answer = response.read()
                self.send_response(response.status)
                self.send_header("content-type", response.getheader("content-type", "application/json"))
                self.send_header("content-length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

        def log_message(self, *_):
            pass


# Comparing -----------------------------------------------------------------------------------------------------------------------


def without_what_is_fresh(text: str, base: str) -> object:
    """The body with names in place of what differs from run to run: ids and times of the last minutes, new keys, the own address."""
    seen: dict[str, str] = {}
    now = time.time()

    def name(kind: str, text: str) -> str:
        # Numbered by first appearance: the same value twice stays the same value twice.
        return seen.setdefault(text, f"<{kind} {len(seen) + 1}>")

    def fresh_id(found: re.Match) -> str:
        made = (uuid.UUID(found[0]).int >> 80) / 1000
        return name("id", found[0]) if abs(now - made) < 600 else found[0]

    def fresh_event(found: re.Match) -> str:
        made = (uuid.UUID(found[1]).int >> 80) / 1000
        return name("event", found[0]) if abs(now - made) < 600 else found[0]

    def fresh_time(found: re.Match) -> str:
        made = calendar.timegm(time.strptime(found[0][:19], "%Y-%m-%dT%H:%M:%S"))
        return "<now>" if abs(now - made) < 600 else found[0]

    text = text.replace(base, "<base>")
    text = re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", fresh_id, text)
    text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", fresh_time, text)
    text = re.sub(r'(?<=")in-(?!demo)[\w-]{4}([\w-]{39})?(?=")', lambda found: name("key", found[0]), text)
    text = re.sub(r"whsec_[A-Za-z0-9+/=]+", lambda found: name("secret", found[0]), text)
    text = re.sub(r"evt_([0-9a-f]{32})", fresh_event, text)
    with contextlib.suppress(ValueError):
        return json.loads(text)
    return text


def gateway_response(kind: str) -> tuple[int, object]:
    """What the template has API Gateway answer in the case `kind`."""
    api = yaml.safe_load((BUILD / "template.yaml").read_text())["Resources"]["Api"]
    response = api["Properties"]["GatewayResponses"][kind]
    return response["StatusCode"], json.loads(response["ResponseTemplates"]["application/json"])


COMPARED_HEADERS = ("content-type", "retry-after", "www-authenticate")


def difference(name: str, deployed: Answer, local: Answer, base: str, local_base: str) -> str:
    """What is wrong with an answer of the deployment, given that of `cargo local`; empty, nothing is."""
    wanted = without_what_is_fresh(local.body, local_base)
    got = without_what_is_fresh(deployed.body, base)
    same = (deployed.status, got) == (local.status, wanted)
    if known := KNOWN.get(name):
        if same:
            return "no longer differs: remove it from KNOWN"
        if (deployed.status, deployed.json()) != (known.status, known.body):
            return f"differs in another way than is known: {deployed.status} {deployed.body}"
        promised = [response for response in map(gateway_response, known.responses) if response != (local.status, local.json())]
        return f"the template promises {promised}, local: {local.status} {local.body}" if promised else ""
    if not same:
        return f"deployed: {deployed.status} {json.dumps(got)}\n    local:    {local.status} {json.dumps(wanted)}"
    for header in COMPARED_HEADERS:
        if deployed.headers.get(header) != local.headers.get(header):
            return f"{header}: {deployed.headers.get(header)}, local {local.headers.get(header)}"
    if "x-request-id" in local.headers and "x-request-id" not in deployed.headers:
        return "no x-request-id"
    return ""


def table(heads: list[str], rows: list[list[object]]) -> None:
    cells = [heads, *([str(cell) for cell in row] for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(heads))]
    cells.insert(1, ["-" * width for width in widths])
    for row in cells:
        print("  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


# The steps -----------------------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def step(title: str):
    print(f"\n-- {title}", flush=True)
    begun = time.monotonic()
    yield
    print(f"   {time.monotonic() - begun:.1f} s", flush=True)


def build() -> str:
    """Every function as it would be deployed, and the program behind `cargo local`, whose path is the answer."""
    overrides = f"Architecture={ARCHITECTURE}"
    run("build", "sam", "build", "--build-dir", str(BUILD), "--parameter-overrides", overrides)
    messages = run("build-local", "cargo", "build", "--quiet", "--package", "local", "--bin", "local", "--message-format", "json")
    artifacts = (json.loads(line) for line in messages.splitlines() if line.startswith("{"))
    programs = [artifact["executable"] for artifact in artifacts if artifact.get("executable")]
    expect(len(programs) == 1, f"`local` is {len(programs)} programs")
    return programs[0]


def weigh() -> None:
    rows, heavy = [], []
    for bootstrap in sorted(BUILD.glob("*/bootstrap")):
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.write(bootstrap, "bootstrap")
        size = len(packed.getvalue())
        rows.append([bootstrap.parent.name, f"{bootstrap.stat().st_size / 1e6:.2f} MB", f"{size / 1e6:.2f} MB"])
        limit = ZIP_LIMIT_WITH_CLIENT if bootstrap.parent.name in WITH_CLIENT else ZIP_LIMIT
        if size > limit:
            heavy.append(f"{bootstrap.parent.name} (at most {limit / 1e6:.1f} MB)")
    expect(rows, "sam build left no function")
    table(["function", "binary", "zip"], rows)
    expect(not heavy, f"too large a zip: {', '.join(heavy)}")


@contextlib.contextmanager
def emulator(scratch: str):
    """AWS on a free port, with everything that it keeps in `scratch`."""
    port = free_port()
    address = f"http://127.0.0.1:{port}"

    def ready(_log: str) -> bool:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return True
        return False

    settings = {
        "AWS_ENDPOINT_URL": address,
        "AUTH": "true",  # functions may do what their roles say, and nothing else
        "LAMBDA_EXECUTOR": "local",
        "RUST_BACKTRACE": "0",
        "BIND_HOST": "127.0.0.1",
        "GATEWAY_PORT": str(port),
        "SFTP_ENABLED": "0",
        "IOT_MTLS_ENABLED": "0",
        "S3_DATA_DIR": f"{scratch}/s3",
        "STATE_DIR": f"{scratch}/state",
        "TMPDIR": scratch,
    }
    with running("emulator", "ministack", ready=ready, **settings) as (process, _):
        yield process, port, address


def deploy(name: str, address: str, payment: str) -> str:
    # What is given here takes the place of samconfig.toml's own overrides, hence the stage.
    overrides = [f"Stage={ENVIRONMENT}", f"Architecture={ARCHITECTURE}", f"PaymentApiBase={payment}"]
    command = ["sam", "deploy", "--config-file", str(ROOT / "samconfig.toml"), "--config-env", ENVIRONMENT]
    template = ["--template-file", str(BUILD / "template.yaml")]
    return run(name, *command, *template, "--parameter-overrides", *overrides, AWS_ENDPOINT_URL=address)


def state(address: str) -> dict[str, object]:
    """What a deployment could change: resources, and the code and versions of the functions."""
    pages = client("cloudformation", address).get_paginator("list_stack_resources").paginate(StackName=STACK)
    resources = [resource for page in pages for resource in page["StackResourceSummaries"]]
    functions = client("lambda", address)
    found = {}
    for part in resources:
        logical, physical = part["LogicalResourceId"], part["PhysicalResourceId"]
        found[logical] = [physical, str(part.get("LastUpdatedTimestamp"))]
        if part["ResourceType"] == "AWS::Lambda::Function":
            versions = functions.list_versions_by_function(FunctionName=physical)["Versions"]
            found[logical] += [(version["Version"], version["CodeSha256"]) for version in versions]
    return found


def deployed_service(port: int, address: str) -> tuple[Service, str]:
    """The deployment as its own outputs describe it, and the name of its table."""
    stack = client("cloudformation", address).describe_stacks(StackName=STACK)["Stacks"][0]
    outputs = {output["OutputKey"]: output["OutputValue"] for output in stack["Outputs"]}
    url = urllib.parse.urlsplit(outputs["BaseUrl"])
    api, stage = url.hostname.split(".")[0], url.path.strip("/")
    pages = client("cloudformation", address).get_paginator("list_stack_resources").paginate(StackName=STACK)
    names = {
        kebab_case(resource["LogicalResourceId"].removesuffix("Function")): resource["PhysicalResourceId"]
        for page in pages
        for resource in page["StackResourceSummaries"]
        if resource["ResourceType"] == "AWS::Lambda::Function"
    }
    base = EMULATED_BASE.format(stage=stage)
    service = Service(port, f"{api}.execute-api.localhost", f"/{stage}", base, client("lambda", address), names)
    return service, outputs["TableName"]


def kebab_case(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "-", name).lower()


def keys(service: Service) -> None:
    """From an empty table to the first successful call, and back."""

    def asked(key: str, path: str) -> Answer:
        return service.call("GET", path, f"api_key={key}")

    refused = service.invoke("issue-api-key", {"name": "CI", "role": "admin"})
    expect(refused.status == 400 and "role" in refused.body, f"a wrong role was answered {refused.body}")
    issued = service.invoke("issue-api-key", {"name": "CI"})
    expect(issued.status == 200, f"no key was issued: {issued.body}")
    made = issued.json()
    key, organisation = made.pop("api_key"), made["org_id"]
    users = asked(key, "/api/v1/user/get_agent_list/")
    empty = users.status == 200 and users.json()["data"]["total"] == 0
    expect(empty, f"a new key does not open a new organisation: {users.status} {users.body}")
    listed = service.invoke("list-api-keys", {"org_id": organisation})
    expect(listed.json() == [made], f"issued {made}, listed {listed.body}")
    expect(key not in listed.body, "the list shows a whole key")
    revoked = service.invoke("revoke-api-key", {"org_id": organisation, "id": made["id"]})
    expect(revoked.status == 200 and revoked.json()["revoked_at"], f"not revoked: {revoked.body}")
    # A function that has not seen the key before: the one above trusts it for half a minute yet.
    late = asked(key, "/api/v1/link_tag_entity/list")
    expect(late.status == 401, f"a revoked key was answered {late.status} {late.body}")
    print("   issued, used, listed, revoked, refused")


def copy_table(source, source_name: str, target, target_name: str) -> int:
    pages = source.get_paginator("scan").paginate(TableName=source_name)
    items = [item for page in pages for item in page["Items"]]
    for start in range(0, len(items), 25):
        left = {target_name: [{"PutRequest": {"Item": item}} for item in items[start : start + 25]]}
        while left:
            left = target.batch_write_item(RequestItems=left)["UnprocessedItems"]
    return len(items)


def replay(deployed: Service, local: Service, deletes: bool) -> None:
    """Every recorded event that deletes, or every other, with a few calls that no event can be recorded of; first what changes nothing."""
    events = {path.stem: json.loads(path.read_text()) for path in sorted(ROOT.glob("events/*.json"))}
    expect(events, "no recorded events")
    key = events["get-agent-list"]["queryStringParameters"]["api_key"]
    query, bearer = f"api_key={key}&size=1", {"authorization": f"Bearer {key}"}
    calls = {} if deletes else {
        "key in the header": lambda service: service.call("GET", "/api/v1/user/get_agent_list/", "size=1", bearer),
        "without its slash": lambda service: service.call("GET", "/api/v1/user/get_agent_list", query),
        "with a slash more": lambda service: service.call("GET", "/api/v1/link_tag_entity/list/", query),
        "unknown path": lambda service: service.call("GET", "/api/v1/nothing", query),
        "unknown method": lambda service: service.call("PUT", "/api/v1/user/get_agent_list/", query),
    }
    for name, event in sorted(events.items(), key=lambda item: item[1].get("httpMethod") != "GET"):
        if (event.get("httpMethod") == "DELETE") != deletes:
            continue
        calls[name] = lambda service, name=name, event=event: service.replay(name.split(".")[0], event)
    rows, wrong = [], []
    for name, call in calls.items():
        answer, expected = call(deployed), call(local)
        fault = difference(name, answer, expected, deployed.base, local.base)
        note = "DIFFERS" if fault else f"known of the emulator: {KNOWN[name].reason}" if name in KNOWN else "same"
        rows.append([name, answer.status, expected.status, note])
        if fault:
            wrong.append(f"{name}: {fault}")
    table(["event", "deployed", "local", "status and body"], rows)
    expect(not wrong, "\n  " + "\n  ".join(wrong))


def delivered(deployed: Service, local: Service) -> None:
    """The closed conversation's event gets a delivery and is tried: two functions on the stream, one after the other. It does not arrive
    anywhere: the demo set's webhook leads to an address that nobody here reaches."""
    event = json.loads((ROOT / "events/list-deliveries.json").read_text())
    closed = json.loads((ROOT / "events/close-conversation.json").read_text())["pathParameters"]["conversation_id"]
    for name, service in (("deployed", deployed), ("local", local)):
        begun = time.monotonic()
        while True:
            items = service.replay("list-deliveries", event).json()["data"]["items"]
            tried = [item for item in items if item["conversation_id"] == closed and item["attempts"]]
            if tried:
                break
            expect(time.monotonic() - begun < 60, f"{name}: a closed conversation was not told of within a minute: {items}")
            time.sleep(0.2)
        expect(len(tried) == 1 and tried[0]["event"] == "conversation.closed" and tried[0]["error"], f"{name}: {tried}")
        print(f"   {name}: {tried[0]['state']} after an attempt, {tried[0]['error']}, {time.monotonic() - begun:.1f} s")


def follow_up(deployed: Service, local: Service) -> None:
    """The deleted tag's links leave their list, by the function on the table's stream: on both sides, all that the demo set has."""
    event = json.loads((ROOT / "events/read-link-tag-entity-list.json").read_text())
    for name, service in (("deployed", deployed), ("local", local)):
        begun = time.monotonic()
        while total := service.replay("read-link-tag-entity-list", event).json()["data"]["total"]:
            expect(time.monotonic() - begun < 60, f"{name}: {total} links of a deleted tag are still there after a minute")
            time.sleep(0.2)
        print(f"   {name}: gone after {time.monotonic() - begun:.1f} s")


def confined(service: Service, address: str) -> None:
    """The emulator holds functions to their roles, or all of the above would prove nothing about them: without its policy one fails."""
    event = json.loads((ROOT / "events/get-agent-list.json").read_text())
    role = service.functions.get_function_configuration(FunctionName=service.names["get-agent-list"])["Role"].rsplit("/", 1)[1]
    roles = client("iam", address)
    names = roles.list_role_policies(RoleName=role)["PolicyNames"]
    policies = {name: roles.get_role_policy(RoleName=role, PolicyName=name)["PolicyDocument"] for name in names}
    expect(policies, f"{role} has no policy of its own")
    for name in policies:
        roles.delete_role_policy(RoleName=role, PolicyName=name)
    without = service.replay("get-agent-list", event)
    for name, policy in policies.items():
        roles.put_role_policy(RoleName=role, PolicyName=name, PolicyDocument=json.dumps(policy))
    again = service.replay("get-agent-list", event)
    expect((without.status, without.json()) == (500, INTERNAL_ERROR), f"without its policy: {without.status} {without.body}")
    expect(again.status == 200, f"with its policy again: {again.status} {again.body}")
    print("   get-agent-list without its policy: 500; with it: 200")


def process_of(function: str, parent: int) -> int:
    """The process that runs `function`."""
    mark = f"AWS_LAMBDA_FUNCTION_NAME={function}".encode()
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            of_parent = int((path / "stat").read_text().rsplit(")", 1)[1].split()[1]) == parent
            if of_parent and mark in (path / "environ").read_bytes().split(b"\0"):
                found.append(int(path.name))
    expect(len(found) == 1, f"{function} runs as {found}")
    return found[0]


def logged(address: str, group: str, text: str) -> bool:
    """Whether a function has written `text`."""
    pages = client("logs", address).get_paginator("filter_log_events").paginate(logGroupName=group)
    return any(text in event["message"] for page in pages for event in page["events"])


def break_it(service: Service, payments: PaymentProxy, parent: int, address: str) -> None:
    """A function that dies in a call, and one that panics: the caller is answered, and the next call is, too."""
    event = json.loads((ROOT / "events/setup-payment-webhook.json").read_text())
    function = service.names["setup-payment-webhook"]

    def call() -> Answer:
        return service.replay("setup-payment-webhook", event)

    def works(when: str) -> None:
        answer = call()
        expect(answer.status == 200, f"{when}: {answer.status} {answer.body}")

    works("before anything is broken")
    victim = process_of(function, parent)
    payments.reached.clear()
    payments.open.clear()
    answers: list[Answer] = []
    caller = threading.Thread(target=lambda: answers.append(call()))
    caller.start()
    expect(payments.reached.wait(20), "the call did not get as far as the payment provider")
    os.kill(victim, signal.SIGKILL)
    caller.join(40)
    payments.open.set()
    expect(answers, "the call of a killed function is not answered")
    wanted = Answer(500, {}, json.dumps(INTERNAL_ERROR))
    fault = difference("killed in a call", answers[0], wanted, service.base, service.base)
    expect(not fault, f"killed in a call: {fault}")
    works("after a function was killed")
    successor = process_of(function, parent)
    expect(successor != victim, "the killed process is still there")
    print(f"   killed in a call: {answers[0].status} for the template's 500 (known of the emulator: {NO_RESPONSES}); the next call: 200")

    # The provider's name is looked up on a thread of its own. Without the memory for one, the runtime panics: a real panic, in the
    # middle of a call, of the binary as it is. An idle thread would be used again, so it has to be gone first.
    until = time.monotonic() + 30
    while len(list(Path(f"/proc/{successor}/task").iterdir())) > 1:
        expect(time.monotonic() < until, "the threads of an idle function do not end")
        time.sleep(0.2)
    pages = int(Path(f"/proc/{successor}/statm").read_text().split()[0])
    unlimited = resource.prlimit(successor, resource.RLIMIT_AS)
    resource.prlimit(successor, resource.RLIMIT_AS, (pages * resource.getpagesize() + 1_000_000, unlimited[1]))
    panicked = call()
    resource.prlimit(successor, resource.RLIMIT_AS, unlimited)
    expect((panicked.status, panicked.json()) == (500, INTERNAL_ERROR), f"a panic was answered {panicked.status} {panicked.body}")
    expect(logged(address, f"/aws/lambda/{STACK}/setup-payment-webhook", "OS can't spawn worker thread"), "no panic is in the log")
    works("after a panic")
    expect(process_of(function, parent) == successor, "a panic ended the process")
    print("   panic in a call: 500 in the one error shape; the next call, of the same process: 200")


def main() -> None:
    WORK.mkdir(parents=True, exist_ok=True)
    with step(f"build, {ARCHITECTURE}"):
        program = build()
    with step("size"):
        weigh()
    with contextlib.ExitStack() as stack:
        scratch = stack.enter_context(tempfile.TemporaryDirectory(prefix="deploy-"))
        # Two of them, each with its own demo set: one to compare with, one that lends its records and its payment provider.
        local, _, _, _ = stack.enter_context(local_service("local", program))
        _, demo, demo_table, provider = stack.enter_context(local_service("demo", program))
        payments = stack.enter_context(contextlib.closing(PaymentProxy(provider)))
        process, port, address = stack.enter_context(emulator(scratch))
        # A name and not a number, so that it has to be looked up.
        payment_base = f"http://localhost:{payments.server_address[1]}"
        with step("deploy"):
            deploy("deploy", address, payment_base)
            service, table_name = deployed_service(port, address)
        with step("deploy again"):
            before = state(address)
            said = deploy("deploy-again", address, payment_base)
            after = state(address)
            changed = [name for name in before.keys() | after.keys() if before.get(name) != after.get(name)]
            expect(not changed, f"the second deployment changed {', '.join(sorted(changed))}")
            expect("No changes to deploy" in said, f"{said}\nthe second deployment had something to do")
            print(f"   none of {len(after)} resources changed")
        with step("keys"):
            keys(service)
        with step("demo set"):
            print(f"   {copy_table(demo, demo_table, client('dynamodb', address), table_name)} items")
        with step("recorded events"):
            replay(service, local, deletes=False)
        with step("delivery of the closed conversation"):
            delivered(service, local)
        with step("recorded events that delete"):
            replay(service, local, deletes=True)
        with step("links of the deleted tag"):
            follow_up(service, local)
        with step("roles"):
            confined(service, address)
        with step("killed, panicking"):
            break_it(service, payments, process.pid, address)
    print("\nThe deployment holds.")


SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGALRM)


def interrupted(number: int, _frame: object) -> None:
    # The processes are being ended now, and a second signal must not keep that from happening.
    for each in SIGNALS:
        signal.signal(each, signal.SIG_IGN)
    raise Failure(f"no end after {TIME_LIMIT} s" if number == signal.SIGALRM else signal.Signals(number).name)


if __name__ == "__main__":
    for each in SIGNALS:
        signal.signal(each, interrupted)
    signal.alarm(TIME_LIMIT)
    forget_accounts()
    try:
        main()
    except Failure as failure:
        sys.exit(f"\ndeploy: {failure}")
