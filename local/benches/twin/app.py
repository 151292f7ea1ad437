"""Two routes of the service as they are written in Python: FastAPI behind Mangum, and boto3."""

import hashlib
import json
import os
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Generic, TypeVar
from uuid import UUID, uuid4

import boto3
from boto3.dynamodb.conditions import Key
from fastapi import Depends, FastAPI, HTTPException, Query
from mangum import Mangum
from pydantic import BaseModel, Field

app = FastAPI()
table = boto3.resource("dynamodb").Table(os.environ["TABLE_NAME"])

Locale = Annotated[str, Field(pattern="^[a-z]{2,3}-[A-Z]{2}$")]
T = TypeVar("T")


class AssistantType(StrEnum):
    SIMPLE = "simple"
    CHAT = "chat"
    PHONE = "phone"
    NL2SQL = "nl2sql"
    REALTIME = "realtime_openai"


class LlmModel(StrEnum):
    GPT_4_PREVIEW_0125 = "gpt-4-0125-preview"
    GPT_35_TURBO_0125 = "gpt-3.5-turbo-0125"
    GPT_35_TURBO_1106 = "gpt-3.5-turbo-1106"
    GPT_35_TURBO = "gpt-3.5-turbo"
    GPT_4_PREVIEW_1106 = "gpt-4-1106-preview"
    GPT_4O_20240513 = "gpt-4o-2024-05-13"
    GPT_4O_MINI = "gpt-4o-mini"
    LLAMA_31_VERSATILE = "llama-3.1-70b-versatile"
    GPT_4O_REALTIME = "gpt-4o-realtime-preview"
    GPT_4O_MINI_REALTIME = "gpt-4o-mini-realtime-preview"
    DEEPSEEK_R1_DISTILL = "deepseek-r1-distill-llama-70b"
    O3_MINI = "o3-mini"


class AssistantFields(BaseModel):
    name: str | None = None
    description: str | None = None
    attributes: dict[str, Any] = {}
    system_prompt: str = ""
    voice: bool = False
    custom_voice: bool = False
    voice_languages: list[Locale] = []
    org_id: UUID | None = None
    show_images: bool = False
    hide_ds: bool = False
    webhook_id: UUID | None = None
    has_human_agent: bool = False
    use_tools: bool = False
    conversation_flow_id: UUID | None = None
    assistant_type: AssistantType = AssistantType.SIMPLE
    llm_model: LlmModel = LlmModel.GPT_4_PREVIEW_0125


class Assistant(AssistantFields):
    id: UUID


class User(BaseModel):
    id: UUID
    first_name: str | None
    last_name: str | None
    email: str | None
    is_active: bool
    is_superuser: bool
    birthdate: datetime | None
    is_enterprise: bool
    role_id: UUID | None
    phone: str | None
    state: str | None
    country: str | None
    address: str | None
    active_billing_plan_id: UUID | None
    next_billing_plan_id: UUID | None
    payment_customer_id: str | None
    payment_subscription_id: str | None
    payment_subscription_status: str | None
    payment_has_payment_method: bool
    is_trial: bool
    used_trial: bool
    is_paying: bool
    payment_last_payment_date: datetime | None
    billing_updated_at: datetime | None
    last_credits_refresh: datetime | None
    next_credits_refresh: datetime | None
    follower_count: int
    following_count: int


class Page(BaseModel, Generic[T]):
    items: list[T]
    total: int
    page: int
    size: int
    pages: int
    previous_page: int | None
    next_page: int | None


class Envelope(BaseModel, Generic[T]):
    message: str = ""
    meta: dict[str, Any] = {}
    data: T


known: dict[str, dict[str, Any]] = {}


def organisation(api_key: str) -> UUID:
    """Whose key it is. A warm process remembers the keys that it has seen."""
    digest = hashlib.sha256(api_key.encode()).hexdigest()
    if digest not in known:
        item = table.get_item(Key={"pk": f"KEY#{digest}", "sk": "KEY"}, ConsistentRead=True).get("Item")
        if item is None or item.get("revoked_at"):
            raise HTTPException(401, "Invalid API key")
        known[digest] = item
    return UUID(known[digest]["org_id"])


Organisation = Annotated[UUID, Depends(organisation)]


@app.post("/api/v1/assistant", status_code=201)
def create_assistant(fields: AssistantFields, org: Organisation) -> Envelope[Assistant]:
    assistant = Assistant(id=uuid4(), **fields.model_dump(exclude={"org_id"}), org_id=org)
    item = assistant.model_dump(mode="json")
    item["attributes"] = json.dumps(item["attributes"])
    table.put_item(Item={"pk": f"ORG#{org}#ASSISTANT#{assistant.id}", "sk": "ASSISTANT", **item})
    return Envelope(message="Data created successfully", data=assistant)


@app.get("/api/v1/user/get_agent_list/")
def get_agent_list(
    org: Organisation,
    page: Annotated[int, Query(ge=1)] = 1,
    size: Annotated[int, Query(ge=1, le=100)] = 50,
) -> Envelope[Page[User]]:
    head = table.query(KeyConditionExpression=Key("pk").eq(f"ORG#{org}#LIST#USER"), ConsistentRead=True)["Items"]
    total = int(head[0]["next_ordinal"]) if head else 0
    first = Key("sk").gte(f"{(page - 1) * size:010}")
    rows = table.query(
        KeyConditionExpression=Key("pk").eq(f"ORG#{org}#LIST#USER#ROWS") & first, Limit=size, ConsistentRead=True
    )["Items"]
    pages = -(-total // size)
    data = Page(
        items=[User.model_validate(row) for row in rows],
        total=total,
        page=page,
        size=size,
        pages=pages,
        previous_page=page - 1 if page > 1 else None,
        next_page=page + 1 if page < pages else None,
    )
    return Envelope(data=data)


handler = Mangum(app, lifespan="off")
