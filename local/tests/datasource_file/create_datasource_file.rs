//! `POST /api/v1/datasource/{datasource_id}/file`: creates a file and answers the request that uploads its bytes.

use local::Stack;
use local::http::Call;
use serde_json::{Value, json};
use shared::routes::CREATE_DATASOURCE_FILE;
use shared::values::time::Clock;

use crate::support::fixture::{
    ACME, GLOBEX, call, data, everything, failure, send, settings, stack, stack_of_today, valid_call,
};
use crate::support::log::Log;
use crate::support::records::{ACME_ORG, FRESH, TEST_TIME};

const GLOBEX_ORG: &str = "01900000-0000-7000-8000-b00000000001";
const BYTES: &[u8] = b"Twelve bytes";

fn create(body: &Value) -> Call {
    Call { body: body.to_string().into(), ..valid_call(&CREATE_DATASOURCE_FILE, 'a', ACME) }
}

/// A new file of [`BYTES`] and its upload request.
async fn created(stack: &Stack) -> (Value, Value) {
    let body = json!({"name": "a.txt", "size_bytes": BYTES.len(), "content_type": "text/plain"});
    let file = data(&stack.answer(&create(&body)).await);
    let upload = file["upload"].clone();
    (file, upload)
}

async fn upload(upload: &Value, bytes: &[u8]) -> u16 {
    let (method, url) = (upload["method"].as_str().unwrap(), upload["url"].as_str().unwrap());
    send(method, url, &upload["headers"], bytes).await.0
}

async fn read(stack: &Stack, file: &Value) -> Value {
    let path = format!("/api/v1/datasource/datasourcefile/{}", file["id"].as_str().unwrap());
    data(&stack.answer(&call("GET", &path, ACME)).await)
}

#[tokio::test]
async fn stores_the_body_and_defaults_the_rest() {
    let stack = stack().await;
    let mut file = data(&stack.answer(&create(&json!({"name": "a", "size_bytes": 104_857_600}))).await);
    let upload = file.as_object_mut().unwrap().remove("upload").unwrap();
    assert_eq!(file["id"].as_str().unwrap()[..13], FRESH[0][..13]);
    file["id"] = json!(null);
    let wanted = json!({
        "id": null,
        "datasource_id": "01900000-0000-7000-8000-a00400000001",
        "name": "a",
        "description": null,
        "ds_type": "doc",
        "size_bytes": 104_857_600,
        "uploaded_at": null,
        "uploaded": false,
        "attributes": {},
        "org_id": ACME_ORG,
        "created_at": TEST_TIME,
        "updated_at": TEST_TIME,
    });
    assert_eq!(file, wanted);
    let headers =
        json!({"content-length": "104857600", "content-type": "application/octet-stream", "if-none-match": "*"});
    assert_eq!((&upload["method"], &upload["headers"]), (&json!("PUT"), &headers));
    assert_eq!(upload["expires_at"], "2026-02-01T12:15:00.000Z");
}

#[tokio::test]
async fn the_answered_requests_upload_and_download_the_bytes() {
    let (stack, _) = stack_of_today(settings()).await;
    let (file, how) = created(&stack).await;
    let before = read(&stack, &file).await;
    assert_eq!((&before["uploaded"], &before["download_url"]), (&json!(false), &json!(null)));
    assert_eq!(upload(&how, BYTES).await, 200);
    let after = read(&stack, &file).await;
    assert_eq!(after["uploaded"], true);
    let (status, kind, bytes) = send("GET", after["download_url"].as_str().unwrap(), &json!({}), b"").await;
    assert_eq!((status, kind.as_str(), bytes.as_slice()), (200, "text/plain", BYTES));
    let key = format!("{ACME_ORG}/{}", file["id"].as_str().unwrap());
    assert_eq!(stack.objects.objects().unwrap(), [(key, BYTES.to_vec())]);
}

#[tokio::test]
async fn an_address_accepts_one_key_size_type_and_method() {
    let (stack, _) = stack_of_today(settings()).await;
    let (file, how) = created(&stack).await;
    let (other, _) = created(&stack).await;
    let with = |name: &str, value: Value| {
        let mut how = how.clone();
        how["headers"][name] = value;
        how
    };
    let at = |from: &str, to: &str| {
        let mut how = how.clone();
        let url = how["url"].as_str().unwrap();
        assert!(url.contains(from), "{url}");
        how["url"] = url.replace(from, to).into();
        how
    };
    let id = |file: &Value| file["id"].as_str().unwrap().to_owned();
    let longer = [BYTES, b"!"].concat();
    let signature = how["url"].as_str().unwrap().split("X-Amz-Signature=").nth(1).unwrap()[..64].to_owned();
    let flipped = signature.replace(['0', '1', '2', '3'], "4");
    for (case, how, bytes) in [
        ("another size", with("content-length", "13".into()), longer.as_slice()),
        ("a shorter size", with("content-length", "11".into()), &BYTES[..11]),
        ("another type", with("content-type", "text/html".into()), BYTES),
        ("a condition that allows repeats", with("if-none-match", "x".into()), BYTES),
        ("another key", at(&id(&file), &id(&other)), BYTES),
        ("another organisation", at(ACME_ORG, "01900000-0000-7000-8000-b00000000001"), BYTES),
        ("a longer time", at("X-Amz-Expires=900", "X-Amz-Expires=9000"), BYTES),
        ("another signature", at(&signature, &flipped), BYTES),
        ("no signature", at(&format!("&X-Amz-Signature={signature}"), ""), BYTES),
    ] {
        assert_eq!(upload(&how, bytes).await, 403, "{case}");
    }
    for method in ["GET", "HEAD", "DELETE"] {
        let (status, ..) = send(method, how["url"].as_str().unwrap(), &json!({}), b"").await;
        assert_eq!(status, 403, "{method}");
    }
    assert_eq!(stack.objects.objects().unwrap(), []);
    assert_eq!(upload(&how, BYTES).await, 200);
}

#[tokio::test]
async fn an_address_works_once_and_for_a_quarter_of_an_hour() {
    let (stack, clock) = stack_of_today(settings()).await;
    let (_, how) = created(&stack).await;
    assert_eq!(upload(&how, BYTES).await, 200);
    assert_eq!(upload(&how, b"Other bytes.").await, 412);
    assert_eq!(stack.objects.objects().unwrap()[0].1, BYTES);
    for (ago, wanted) in [(901, 403), (600, 200)] {
        clock.set(Clock::System.now().plus_seconds(-ago));
        let (_, how) = created(&stack).await;
        assert_eq!(upload(&how, BYTES).await, wanted, "{ago}");
    }
}

#[tokio::test]
async fn refuses_an_invalid_file_and_creates_nothing() {
    let stack = stack().await;
    let before = everything(&stack).await;
    for (body, wanted) in [
        (json!({}), vec![r#"["body","name"] missing"#, r#"["body","size_bytes"] missing"#]),
        (
            json!({"name": null, "size_bytes": null}),
            vec![r#"["body","name"] string_type"#, r#"["body","size_bytes"] int_type"#],
        ),
        (json!({"name": "a", "size_bytes": 0}), vec![r#"["body","size_bytes"] greater_than_equal"#]),
        (json!({"name": "a", "size_bytes": 104_857_601}), vec![r#"["body","size_bytes"] less_than_equal"#]),
        (
            json!({"name": "a", "size_bytes": 1, "content_type": "a\r\nb: c"}),
            vec![r#"["body","content_type"] string_pattern_mismatch"#],
        ),
        (json!({"name": "a", "size_bytes": 1, "ds_type": "x"}), vec![r#"["body","ds_type"] enum"#]),
    ] {
        let wanted = wanted.into_iter().map(str::to_owned).collect();
        assert_eq!(failure(&stack.answer(&create(&body)).await), (422, wanted), "{body}");
    }
    let other = json!({"name": "a", "size_bytes": 1, "org_id": "01900000-0000-7000-8000-b00000000001"});
    let forbidden = (403, vec![r#"["body","org_id"] forbidden"#.to_owned()]);
    assert_eq!(failure(&stack.answer(&create(&other)).await), forbidden);
    assert_eq!(everything(&stack).await, before);
}

/// The answer is stored encrypted for its idempotency key; `idempotency.rs` shows this for every operation.
#[tokio::test]
async fn only_the_answer_contains_the_signature() {
    let log = Log::default();
    let _guard = log.listen(shared::runtime::lambda::tracing::Level::INFO);
    let (stack, _) = stack_of_today(settings()).await;
    let headers = [("idempotency-key".to_owned(), "a-key".to_owned())].into();
    let call = Call { headers, ..valid_call(&CREATE_DATASOURCE_FILE, 'b', GLOBEX) };
    let first = stack.answer(&call).await;
    assert_eq!(stack.answer(&call).await.body, first.body, "a repeat has another address");
    let signature = first.body.split("X-Amz-Signature=").nth(1).unwrap()[..64].to_owned();
    let table = format!("{:?}", everything(&stack).await);
    // Each text also holds a word that shows that it is the text of this call.
    for (text, word) in [(log.text(), "create-datasource-file"), (table, "IDEMPOTENCY")] {
        assert!(!text.contains(&signature) && !text.contains("X-Amz-"), "{text}");
        assert!(text.contains(word), "no {word}: {text}");
    }
}

/// A form with `parts`, each with its headers, and its end.
fn form(parts: &[(&str, &[u8])]) -> Call {
    let mut body = Vec::new();
    for (headers, bytes) in parts {
        body.extend(format!("--frontier\r\ncontent-disposition: form-data; {headers}\r\n\r\n").into_bytes());
        body.extend([*bytes, b"\r\n"].concat());
    }
    body.extend(b"--frontier--\r\n");
    let headers = [("content-type".to_owned(), "multipart/form-data; boundary=frontier".to_owned())].into();
    Call { headers, body, ..valid_call(&CREATE_DATASOURCE_FILE, 'a', ACME) }
}

const PDF: &str = "name=\"datasourcefile_file\"; filename=\"Prices of May.pdf\"\r\ncontent-type: application/pdf";

#[tokio::test]
async fn a_form_has_the_bytes_of_the_file() {
    let (stack, _) = stack_of_today(settings()).await;
    // Bytes that are no text, and the boundary of another form.
    let bytes = [b"%PDF-1.7\n\x00\xff\r\n--front\r\n".as_slice(), &[0x80; 4096]].concat();
    let file = data(&stack.answer(&form(&[(PDF, &bytes), ("name=\"description\"", b"Prices")])).await);
    for (field, wanted) in [
        ("name", json!("Prices of May.pdf")),
        ("description", json!("Prices")),
        ("ds_type", json!("doc")),
        ("size_bytes", json!(bytes.len())),
        ("uploaded", json!(true)),
        ("org_id", json!(ACME_ORG)),
    ] {
        assert_eq!(file[field], wanted, "{field}");
    }
    // The bytes are there, so they cannot be uploaded again.
    assert_eq!(upload(&file["upload"], &bytes).await, 412);
    // Published clients name the type in the query.
    let typed = form(&[(PDF, &bytes)]);
    let typed = Call { query: typed.query.clone() + "&ds_type=pdf&name=May", ..typed };
    let other = data(&stack.answer(&typed).await);
    assert_eq!((&other["ds_type"], &other["name"]), (&json!("pdf"), &json!("May")));
    let read = read(&stack, &file).await;
    let (status, kind, found) = send("GET", read["download_url"].as_str().unwrap(), &json!({}), b"").await;
    assert_eq!((status, &*kind, &found), (200, "application/pdf", &bytes));
}

#[tokio::test]
async fn a_file_of_four_mebibytes_fits_a_form_and_a_larger_body_does_not() {
    let (stack, _) = stack_of_today(settings()).await;
    let largest = vec![b'x'; 4 * 1024 * 1024];
    let file = data(&stack.answer(&form(&[(PDF, &largest)])).await);
    assert_eq!(file["size_bytes"], 4 * 1024 * 1024);
    let larger = vec![b'x'; CREATE_DATASOURCE_FILE.body_limit];
    let before = everything(&stack).await;
    assert_eq!(stack.answer(&form(&[(PDF, &larger)])).await.status, 413);
    assert_eq!(everything(&stack).await, before);
}

#[tokio::test]
async fn a_form_with_issues_is_refused_with_all_of_them() {
    let stack = stack().await;
    let before = everything(&stack).await;
    let (text, empty) = ("name=\"datasourcefile_file\"", "name=\"datasourcefile_file\"; filename=\"a\"");
    let of = |parts: &[(&str, &[u8])]| form(parts);
    let cut = Call { body: b"--frontier\r\ncontent-disposition: form-data; name=a\r\n\r\nx".to_vec(), ..of(&[]) };
    for (call, issues) in [
        (of(&[]), vec![r#"["body","datasourcefile_file"] missing"#]),
        (of(&[(text, b"x")]), vec![r#"["body","datasourcefile_file"] file_type"#]),
        (of(&[(empty, b"")]), vec![r#"["body","datasourcefile_file"] file_empty"#]),
        (
            of(&[(empty, b""), ("name=\"ds_type\"", b"novel"), (r#"name="name"; filename="x""#, b"x")]),
            vec![
                r#"["body","datasourcefile_file"] file_empty"#,
                r#"["body","name"] string_type"#,
                r#"["body","ds_type"] enum"#,
            ],
        ),
        (cut, vec![r#"["body"] multipart_invalid"#]),
    ] {
        let answer = stack.answer(&call).await;
        assert_eq!(failure(&answer), (422, issues.into_iter().map(str::to_owned).collect()), "{}", answer.body);
    }
    let others = of(&[(PDF, b"x"), ("name=\"org_id\"", GLOBEX_ORG.as_bytes())]);
    assert_eq!(failure(&stack.answer(&others).await), (403, vec![r#"["body","org_id"] forbidden"#.to_owned()]));
    // Only this operation takes a form.
    let elsewhere = Call { path: "/api/v1/tag".to_owned(), ..of(&[("name=\"name\"", b"x")]) };
    assert_eq!(failure(&stack.answer(&elsewhere).await).0, 422);
    assert_eq!(everything(&stack).await, before);
}

#[tokio::test]
async fn a_form_that_is_repeated_makes_one_file() {
    let (stack, _) = stack_of_today(settings()).await;
    let mut call = form(&[(PDF, b"%PDF-1.7")]);
    call.headers.insert("idempotency-key".to_owned(), "one".to_owned());
    let first = stack.answer(&call).await;
    let again = stack.answer(&call).await;
    assert_eq!((first.status, &first.body), (201, &again.body));
    assert_eq!(stack.objects.objects().unwrap().len(), 1);
}
