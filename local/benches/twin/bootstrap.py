"""Asks Lambda's runtime API for one event after the other and hands each to the app, as a custom runtime does."""

import http.client
import json
import os
import traceback

from app import handler

RUNTIME = "/2018-06-01/runtime/invocation"


class Context:
    """What a handler is told of its invocation."""

    def __init__(self, request_id: str) -> None:
        self.aws_request_id = request_id


connection = http.client.HTTPConnection(os.environ["AWS_LAMBDA_RUNTIME_API"])


def call(method: str, path: str, body: str | None = None) -> tuple[http.client.HTTPMessage, bytes]:
    connection.request(method, RUNTIME + path, body)
    response = connection.getresponse()
    return response.headers, response.read()


while True:
    headers, event = call("GET", "/next")
    request_id = headers["lambda-runtime-aws-request-id"]
    try:
        outcome, answer = "response", handler(json.loads(event), Context(request_id))
    except Exception as error:
        traceback.print_exc()
        outcome, answer = "error", {"errorType": type(error).__name__, "errorMessage": str(error)}
    call("POST", f"/{request_id}/{outcome}", json.dumps(answer))
