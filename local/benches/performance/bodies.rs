//! The cost of a body that was written to be expensive, compared with a plain parse of the same bytes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use shared::request::route::Route;
use shared::routes;

use crate::Result;
use crate::bench::Bench;
use crate::figures::{Figures, Must, Row, Unit, figure};
use crate::process::Process;

const SECTION: &str = "Validation of a hostile body";
/// The most plain parses that the validation may cost.
const MOST: f64 = 3.0;
/// Size of every body.
const SIZE: usize = 256 * 1024;
/// Counted calls of each body: their instructions hardly differ.
const COUNTED: u32 = 3;
/// Calls before the counted ones.
const WARM: u32 = 5;
const OTHER: &str = "01900000-0000-7000-8000-ffffffffffff";

/// A body, and how it is compared.
struct Body {
    what: &'static str,
    bytes: Vec<u8>,
    /// Whether a parse into a `Value` gives up at its start, so that the plain parse must be one that skips values.
    skipped: bool,
}

/// An operation that reads a body, and the members from which its bodies are made.
struct Reader {
    route: &'static Route,
    /// A member that accepts text.
    text: &'static str,
    /// A member that accepts a number or a boolean.
    scalar: &'static str,
    /// A member that accepts an array, or any value.
    list: &'static str,
    /// The error at the end of a body that is otherwise valid, so that the database is never called.
    refused: &'static str,
    /// The other required members.
    required: &'static str,
    /// Whether `list` accepts ids, and no member is free-form.
    id: bool,
}

const READERS: [Reader; 3] = [
    Reader {
        route: &routes::CREATE_ASSISTANT,
        text: "system_prompt",
        scalar: "voice",
        list: "voice_languages",
        refused: "org_id",
        required: "",
        id: false,
    },
    Reader {
        route: &routes::CREATE_AGENCY_BILLING_PLAN,
        text: "description",
        scalar: "bots_count",
        list: "credits",
        refused: "agency_id",
        required: r#""name":"a","description":"a","bots_count":1,"queries_count":1,"words_count":1,"voice_seconds":1,"premium_support":true,"#,
        id: false,
    },
    Reader {
        route: &routes::RUN_CAMPAIGN,
        text: "message",
        scalar: "start_new_conversation",
        list: "contact_ids",
        refused: "contact_ids",
        required: "",
        id: true,
    },
];

pub async fn measure(bench: &Bench, figures: &mut Figures) -> Result<()> {
    let stack = bench.stack().await?;
    let hello = bench.program("hello", &stack).counted(&bench.scratch);
    let mut parses = hello.start().await?;
    let mut skips = hello.with("SKIPS", "1").counted(&bench.scratch).start().await?;
    for reader in &READERS {
        let event: Value = serde_json::from_str(&bench.event(reader.route.name)?)?;
        let mut ours = bench.program(reader.route.name, &stack).counted(&bench.scratch).start().await?;
        let small = with_body(&event, br#"{"org_id":0,"agency_id":0,"contact_ids":0}"#)?;
        for process in [&mut ours, &mut parses, &mut skips] {
            count(process, &small, WARM).await?;
        }
        for body in bodies(reader) {
            let plain = if body.skipped { &mut skips } else { &mut parses };
            let large = with_body(&event, &body.bytes)?;
            let (status, ours) = beyond(&mut ours, &small, &large).await?;
            let (_, plain) = beyond(plain, &small, &large).await?;
            let parse = if body.skipped { "a parse that keeps nothing" } else { "a parse into a `Value`" };
            let subject = format!("{}: {}, answered {status}", reader.route.name, body.what);
            let row = Row::new(SECTION, &subject, ours, Unit::Instructions);
            figures.push(row.compared_with(parse, plain));
            let row = Row::new(SECTION, format!("{subject}: times {parse}"), ours / plain, Unit::Times);
            figures.push(row.must(Must::AtMost(MOST)));
        }
        ours.end().await?;
    }
    parses.end().await?;
    skips.end().await?;
    stack.stop().await;
    Ok(())
}

/// The cost of a call beyond one with a small body that is refused in the same way, and its status.
async fn beyond(process: &mut Process, small: &str, large: &str) -> Result<(u64, f64)> {
    let (_, few) = count(process, small, COUNTED).await?;
    let (status, many) = count(process, large, COUNTED).await?;
    Ok((status, (many - few) / f64::from(COUNTED)))
}

async fn count(process: &mut Process, event: &str, calls: u32) -> Result<(u64, f64)> {
    process.counted().await?;
    let mut status = 0;
    for _ in 0..calls {
        let answer: Value = serde_json::from_str(&process.invoke(event).await?.body)?;
        status = answer["statusCode"].as_u64().filter(|status| *status < 500).ok_or("a call failed")?;
    }
    Ok((status, figure(process.counted().await?)))
}

/// The event with another body; bytes that are no text have the form that the gateway sends.
fn with_body(event: &Value, bytes: &[u8]) -> Result<String> {
    let mut event = event.clone();
    if let Ok(text) = std::str::from_utf8(bytes) {
        event["body"] = json!(text);
    } else {
        event["body"] = json!(STANDARD.encode(bytes));
        event["isBase64Encoded"] = json!(true);
    }
    Ok(serde_json::to_string(&event)?)
}

/// `start`, then `unit` as many times as it fits before `end`, then `end`.
fn filled(start: &str, unit: &str, end: &str) -> Vec<u8> {
    let times = (SIZE - start.len() - end.len()) / unit.len();
    format!("{start}{}{end}", unit.repeat(times)).into_bytes()
}

/// As many numbered members as fit.
fn members(end: &str) -> Vec<u8> {
    let mut text = "{".to_owned();
    for number in 0.. {
        let member = format!("\"m{number}\":{number},");
        if text.len() + member.len() + end.len() > SIZE {
            break;
        }
        text += &member;
    }
    (text + end).into_bytes()
}

fn bodies(reader: &Reader) -> Vec<Body> {
    let Reader { text, scalar, list, refused, required, id, .. } = reader;
    let last = if *id { String::new() } else { format!(r#","{refused}":"{OTHER}""#) };
    let valid = if *id {
        filled(&format!(r#"{{"{list}":["#), &format!(r#""{OTHER}","#), r#""x"]}"#)
    } else {
        filled(&format!(r#"{{{required}"attributes":{{"a":["#), r#"{"b":[1,"c",null]},"#, &format!("0]}}{last}}}"))
    };
    let depth = SIZE / 2 - 64;
    let nested = format!(r#"{{"{list}":{}{}}}"#, "[".repeat(depth), "]".repeat(depth)).into_bytes();
    let unknown = format!(r#"{{"unknown":{}{}}}"#, "[".repeat(depth), "]".repeat(depth)).into_bytes();
    let objects = filled(r#"{"unknown":"#, r#"{"a":"#, "");
    let mut no_text = filled(&format!(r#"{{"{text}":""#), "a", "??\"}");
    let at = no_text.len() - 4;
    no_text[at] = 0xff;
    let of = |what, bytes| Body { what, bytes, skipped: false };
    let deep = |what, bytes| Body { what, bytes, skipped: true };
    vec![
        of("valid up to its last member", valid),
        deep("arrays in one another, where an array belongs", nested),
        deep("arrays in one another, in an unknown member", unknown),
        deep("objects in one another that never end", objects),
        of("unknown members with values 100 deep", filled("{", &deep_member(), "\"z\":0}")),
        of("small unknown members", members(&format!(r#""{refused}":0}}"#))),
        of("one name again and again", filled("{", &format!(r#""{text}":"a","#), &format!(r#""{refused}":0}}"#))),
        of(
            "a name with escapes, again and again",
            filled("{", r#""\u006e\u0061\u006d\u0065":"a","#, &format!(r#""{refused}":0}}"#)),
        ),
        of("one text with `\\n` alone", filled(&format!(r#"{{"{refused}":0,"{text}":""#), "\\n", "\"}")),
        of("one text with `\\u0041` alone", filled(&format!(r#"{{"{refused}":0,"{text}":""#), "\\u0041", "\"}")),
        of(
            "one text with surrogate pairs alone",
            filled(&format!(r#"{{"{refused}":0,"{text}":""#), "\\ud83d\\ude00", "\"}"),
        ),
        of("one text without escapes", filled(&format!(r#"{{"{refused}":0,"{text}":""#), "a", "\"}")),
        of("one name without escapes", filled("{\"", "a", &format!(r#"":0,"{refused}":0}}"#))),
        of("a long text where a number or a truth value belongs", filled(&format!(r#"{{"{scalar}":""#), "1", "\"}")),
        deep("a long number", filled(&format!(r#"{{"{scalar}":"#), "1", "}")),
        of("zeros where others belong", filled(&format!(r#"{{"{list}":["#), "0,", "0]}")),
        of("empty texts where others belong", filled(&format!(r#"{{"{list}":["#), "\"\",", "\"\"]}")),
        of("members without an end", members("\"z\":0")),
        of("no text in the end", no_text),
        of("white space", filled("{", " ", "}")),
        of("an array instead of an object", filled("[", "0,", "0]")),
        of("a text instead of an object", filled("\"", "a", "\"")),
    ]
}

fn deep_member() -> String {
    format!(r#""unknown":{}{},"#, "[".repeat(100), "]".repeat(100))
}
