"""Answers the messages of users by any server that speaks chat completions: docs/RUNTIME.md says how to run it."""
import base64, hashlib, hmac, json, os, time
from concurrent.futures import ThreadPoolExecutor, wait
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.request import Request, urlopen
API, KEY, CHAT = (os.environ[name] for name in ("API", "KEY", "CHAT_URL"))
SECRET, WORKERS = base64.b64decode(os.environ["WEBHOOK_SECRET"].removeprefix("whsec_")), ThreadPoolExecutor(16)

def is_signed(headers, body):
    event, at, given = (headers.get("webhook-" + name, "") for name in ("id", "timestamp", "signature"))
    wanted = b"v1," + base64.b64encode(hmac.digest(SECRET, f"{event}.{at}.".encode() + body, hashlib.sha256))
    is_recent = at.isdecimal() and abs(time.time() - int(at)) <= 300
    return is_recent and any(hmac.compare_digest(wanted, one.encode()) for one in given.split(" "))

def post(url, key, body, **headers):
    headers |= {"authorization": f"Bearer {key}", "content-type": "application/json"}
    return json.load(urlopen(Request(url, json.dumps(body).encode(), headers), timeout=60))

def answer(event, message, context):
    chat = [{"role": "system", "content": context["assistant"]["system_prompt"]}]
    role = lambda said: "user" if said["sender_type"] == "user" else "assistant"
    chat += [{"role": role(said), "content": said["text"]} for said in context["messages"]]
    body = {"model": os.environ.get("CHAT_MODEL", context["assistant"]["llm_model"]), "messages": chat}
    text = post(f"{CHAT}/chat/completions", os.environ.get("CHAT_KEY"), body)["choices"][0]["message"]["content"]
    bot, path = {"sender_type": "bot", "text": text, "in_reply_to": message["id"]}, message["conversation_id"]
    post(f"{API}/api/v1/conversation/{path}/message", KEY, bot, **{"idempotency-key": event["id"]})

class Runtime(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        event, status = (json.loads(body), 204) if is_signed(self.headers, body) else ({}, 401)
        if (context := event.get("data", {}).get("context")) and context["assistant"]:
            work = WORKERS.submit(answer, event, event["data"], context)
            wait([work], timeout=2)  # the work goes on: a language model may take longer than an event waits
            failed = work.done() and work.exception()  # 409: it is answered, or the conversation is closed
            status = 503 if failed and getattr(failed, "code", 0) not in (409, 422) else 204
        self.send_response(status)
        self.end_headers()

ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", "8080"))), Runtime).serve_forever()
