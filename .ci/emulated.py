"""Runs the programs of the deployment's proof: `cargo local`, a receiver, an emulator of AWS, and the stack on it."""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time

import boto3
import requests
from botocore.config import Config
from release import ROOT, folder

WORK, RELEASE = ROOT / "target/deploy", folder()
STAGE, STACK, ALONE = "dev", "assistants-dev", ("--no-inbox", "--no-runtime", "--no-schedules")


def expect(condition: object, message: str) -> None:
    """Ends the run if a check fails; the processes that it has started end with it."""
    if not condition:
        sys.exit(f"\ndeploy: {message}")


def wait_for(happened, what: str, instead=lambda: ""):
    """Waits until `happened` returns a value, three minutes at most, and returns it."""
    begun = time.monotonic()
    while not (answer := happened()):
        if time.monotonic() - begun > 180:
            expect(condition=False, message=f"not within three minutes: {what} {instead()}")
        time.sleep(0.1)
    return answer


@contextlib.contextmanager
def running(name: str, *command: str, ready, **environment: str):
    """Runs `command` during a block, which begins when `ready` matches the log: the match, and the process id."""
    log = WORK / f"{name}.log"
    with log.open("w") as output:
        pipes = {"stdin": subprocess.DEVNULL, "stdout": output, "stderr": subprocess.STDOUT}
        process = subprocess.Popen(command, cwd=ROOT, env=os.environ | environment, start_new_session=True, **pipes)
        try:
            yield wait_for(lambda: ready(log.read_text()), f"{name} is ready, see {log}"), process.pid
        finally:
            # All processes that it has started are in its group.
            for number in (signal.SIGTERM, signal.SIGKILL):
                with contextlib.suppress(ProcessLookupError, subprocess.TimeoutExpired):
                    os.killpg(process.pid, number)
                    process.wait(5)


def run(*command: str, **environment: str) -> str:
    """Runs `command` to its end and returns its output, which is printed if the command fails."""
    settings = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    ended = subprocess.run(command, cwd=ROOT, env=os.environ | environment, check=False, **settings)
    expect(ended.returncode == 0, f"{ended.stdout}\n{' '.join(command)} ended with {ended.returncode}")
    return ended.stdout


def client(service: str, endpoint: str):
    """A client of an emulated service; it uses no proxy."""
    return boto3.client(service, endpoint_url=endpoint, config=Config(connect_timeout=5, read_timeout=40, proxies={}))


def local_service(name: str, payment_port: int = 0):
    """`cargo local` with a fresh demo set: the addresses of API and DynamoDB, the table's name, the address of KMS."""
    pattern = re.compile(r"API +(\S+)/api/v1\s.*DynamoDB +(\S+) \(table ([^,)]+).*KMS +(\S+).*Try it", re.DOTALL)
    ports = [f"--{of}port=0" for of in ("", "dynamodb-", "s3-", "kms-")] + [f"--payment-port={payment_port}"]
    return running(name, "target/debug/local", *ALONE, *ports, ready=pattern.search)


def receiver(address: str, authority: str):
    """A customer's server, which logs the events it gets: its URL. It writes the certificate that vouches for it."""
    program = "target/debug/examples/receiver"
    return running("receiver", program, address, authority, ready=lambda log: log.partition("\n")[0])


def emulator(scratch: str):
    """AWS, with everything that it keeps in `scratch`: its address. The network is its own, so the port is free."""
    address = "http://127.0.0.1:4566"

    def ready(_log: str) -> str:
        with socket.socket() as probe:
            return "" if probe.connect_ex(("127.0.0.1", 4566)) else address

    # With AUTH, functions may make only the calls that their roles allow.
    settings = {"AUTH": "true", "LAMBDA_EXECUTOR": "local", "BIND_HOST": "127.0.0.1", "GATEWAY_PORT": "4566"}
    settings |= {"SFTP_ENABLED": "0", "IOT_MTLS_ENABLED": "0", "AWS_ENDPOINT_URL": address, "TMPDIR": scratch}
    settings |= {"S3_DATA_DIR": f"{scratch}/s3", "STATE_DIR": f"{scratch}/state"}
    return running("emulator", "ministack", ready=ready, **settings)


class Deployment:
    """The stack on the emulator."""

    def __init__(self, address: str):
        self.emulator, self.functions = address, client("lambda", address)
        formation = client("cloudformation", address)
        stack = formation.describe_stacks(StackName=STACK)["Stacks"][0]
        outputs = {output["OutputKey"]: output["OutputValue"] for output in stack["Outputs"]}
        api = outputs["BaseUrl"].split("/")[2].split(".")[0]
        self.url, self.table = f"{address}/_aws/execute-api/{api}/{STAGE}", outputs["TableName"]
        pages = formation.get_paginator("list_stack_resources").paginate(StackName=STACK)
        parts = [part for page in pages for part in page["StackResourceSummaries"]]
        self.names = {part["LogicalResourceId"]: part["PhysicalResourceId"] for part in parts}

    def invoke(self, function: str, payload: object) -> tuple[bool, dict]:
        """Whether a function without a route succeeds, and what it answers."""
        reply = self.functions.invoke(FunctionName=self.names[function], Payload=json.dumps(payload))
        return "FunctionError" not in reply, json.loads(reply["Payload"].read())

    def configure(self, function: str, **variables: str) -> dict:
        """Gives a function more variables, and returns its former configuration."""
        was = self.functions.get_function_configuration(FunctionName=self.names[function])
        environment = {"Variables": was["Environment"]["Variables"] | variables}
        self.functions.update_function_configuration(FunctionName=was["FunctionName"], Environment=environment)
        return was

    def get(self, path: str, key: str) -> tuple[int, dict]:
        """Status and body of the answer to a GET."""
        answer = requests.get(self.url + path, params={"api_key": key}, timeout=40)
        return answer.status_code, answer.json()

    def send(self, name: str) -> tuple[int, dict]:
        """Status and body of the answer to a recorded GET."""
        return self.get(self.recorded(name)["path"], self.key(name))

    def key(self, name: str = "get-agent-list") -> str:
        """The key of a recorded event."""
        return self.recorded(name)["queryStringParameters"]["api_key"]

    def recorded(self, name: str) -> dict:
        """A recorded event."""
        return json.loads((ROOT / f"events/{name}.json").read_text())
