//! Adds a record with five plain operations to a copy of the workspace by the steps of `CONTRIBUTING.md`, and tests it.
//! CI runs this slow test by itself: `cargo test --package local --test contributing -- --ignored`.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

use std::path::{Path, PathBuf};
use std::process::Command;

const RECORD: &str = r#"//! Notes.

use crate::values::id::{NoteId, OrgId};
use crate::values::json::JsonObject;
use crate::values::time::Timestamp;

crate::record! {
    /// A note.
    pub struct Note(NoteId): listed("NOTE") {
        /// Title.
        input title: String,
        /// What it says.
        input details: Option<String> = None,
        /// The organisation.
        org org_id: OrgId,
        /// Free-form.
        input attributes: JsonObject = JsonObject::default(),
        /// When it was made.
        created created_at: Timestamp,
        /// When it last changed.
        updated updated_at: Timestamp,
    }
}
"#;

/// The operations: constant, name, line of the route table, exercise.
const OPERATIONS: [(&str, &str, &str, &str); 5] = [
    (
        "CREATE_NOTE",
        "create-note",
        r#"POST "/api/v1/note" Write 201 256"#,
        r##"Exercise {
        body: |_| r#"{"title":"Monday"}"#.into(),
        recorded: || vec![("without-title", with_body(&routes::CREATE_NOTE, r#"{"title":null}"#))],
        ..Exercise::of(&routes::CREATE_NOTE)
    }"##,
    ),
    ("READ_NOTE", "read-note", r#"GET "/api/v1/note/{note_id}" Read 200 256"#, "Exercise::of(&routes::READ_NOTE)"),
    (
        "LIST_NOTES",
        "list-notes",
        r#"GET "/api/v1/note/list" Read 200 256"#,
        "Exercise { rows: Some([2, 2]), ..Exercise::of(&routes::LIST_NOTES) }",
    ),
    (
        "UPDATE_NOTE",
        "update-note",
        r#"PUT "/api/v1/note/{note_id}" Write 200 256"#,
        r##"Exercise { body: |_| r#"{"title":"Tuesday"}"#.into(), ..Exercise::of(&routes::UPDATE_NOTE) }"##,
    ),
    (
        "DELETE_NOTE",
        "delete-note",
        r#"DELETE "/api/v1/note/{note_id}" Write 200 256"#,
        "Exercise::of(&routes::DELETE_NOTE)",
    ),
];

/// A copy of the workspace, with the files that git knows.
struct Copy(PathBuf);

/// The copy builds in the workspace's target folder, so that it shares the dependencies. Its packages have another
/// version, because cargo distinguishes packages of two workspaces only by name, version and path.
fn compiled() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap()
}

impl Copy {
    fn of(workspace: &Path) -> Self {
        let copy = Path::new(env!("CARGO_TARGET_TMPDIR")).join("contributing");
        let listed = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
        let listed = Command::new("git").args(listed).current_dir(workspace).output().unwrap();
        assert!(listed.status.success(), "git lists no files");
        let _ = std::fs::remove_dir_all(&copy);
        for name in String::from_utf8(listed.stdout).unwrap().split_terminator('\0') {
            let (from, to) = (workspace.join(name), copy.join(name));
            if from.is_file() {
                std::fs::create_dir_all(to.parent().unwrap()).unwrap();
                std::fs::copy(from, to).unwrap();
            }
        }
        let copy = Self(copy);
        copy.replace("Cargo.toml", "version = \"0.1.0\"\nedition", "version = \"0.1.1\"\nedition");
        copy
    }

    /// Puts `new` before `mark`, which occurs once in the file.
    fn insert(&self, file: &str, mark: &str, new: &str) {
        let text = std::fs::read_to_string(self.0.join(file)).unwrap();
        assert_eq!(text.matches(mark).count(), 1, "{file}: {mark}");
        std::fs::write(self.0.join(file), text.replace(mark, &format!("{new}{mark}"))).unwrap();
    }

    /// Writes a new file.
    fn write(&self, file: &str, text: &str) {
        let path = self.0.join(file);
        assert!(!path.exists(), "{file} is there already");
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// Replaces `old`, which occurs once in the file, by `new`.
    fn replace(&self, file: &str, old: &str, new: &str) {
        self.insert(file, old, new);
        let text = std::fs::read_to_string(self.0.join(file)).unwrap();
        std::fs::write(self.0.join(file), text.replacen(&format!("{new}{old}"), new, 1)).unwrap();
    }

    /// The folder of the copy's binaries. The workspace's binaries have the same names and may be running.
    fn target(&self) -> PathBuf {
        self.0.join("target")
    }

    /// Whether cargo succeeds in the copy, and its output.
    fn cargo(&self, arguments: &[&str]) -> (bool, String) {
        let mut command = Command::new(env!("CARGO"));
        command.current_dir(&self.0).args(arguments);
        // The variables of this test's cargo would make build scripts and their dependents compile again.
        let of_cargo = |name: &str| name.starts_with("CARGO_") && name != "CARGO_HOME";
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(of_cargo)) {
            command.env_remove(name);
        }
        // The binaries run once, without a debugger.
        command.env("CARGO_INCREMENTAL", "0").env("CARGO_PROFILE_DEV_DEBUG", "false");
        command.env("CARGO_TARGET_DIR", self.target()).env("CARGO_BUILD_BUILD_DIR", compiled());
        let output = command.output().unwrap();
        let output_text =
            [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
        (output.status.success(), output_text)
    }
}

/// The steps "… a record".
fn add_record(copy: &Copy) {
    copy.insert("shared/src/values/id.rs", "    /// A tag.\n    TagId", "    /// A note.\n    NoteId \"note_id\";\n");
    copy.write("shared/src/records/note.rs", RECORD);
    copy.insert("shared/src/records.rs", "pub mod tag;\n", "pub mod note;\n");
    copy.insert(
        "shared/src/records.rs",
        "    pub use crate::records::tag::*;\n",
        "    pub use crate::records::note::*;\n",
    );
    let (export, source) = ("shared/src/records/export.rs", "shared/src/records/export/source.rs");
    copy.insert(export, "        Suppression = \"suppression\",\n", "        Note = \"note\",\n");
    copy.insert(source, "    Suppression \"suppression\" ", "    Note \"note\" ListOf<Note>;\n");
    copy.insert(source, "use crate::records::suppression::Suppression;\n", "use crate::records::note::Note;\n");
    for organisation in ["a", "b"] {
        let id = |number| format!("01900000-0000-7000-8000-{organisation}0200000000{number}");
        let rows = format!("        - {{id: {}, title: One}}\n        - {{id: {}, title: Two}}\n", id(0), id(1));
        let forms = format!("      forms:\n        - {{id: 01900000-0000-7000-8000-{organisation}00300000000,");
        copy.insert("local/demo.yaml", &forms, &format!("      notes:\n{rows}"));
    }
    let demo = "local/src/demo.rs";
    copy.insert(demo, "use shared::records::tag::{Link, Tag};\n", "use shared::records::note::Note;\n");
    let insert = "Box::pin(by.insert::<Note>(Some(&routes::CREATE_NOTE), (), records))";
    copy.insert(demo, "    (\"tags\", |by", &format!("    (\"notes\", |by, records, _| {insert}),\n"));
    copy.insert("shared/src/records/event/kind.rs", "    \"Tag\" \"tag\";\n", "    \"Note\" \"note\";\n");
    let emit = "shared/src/reactions/emit.rs";
    copy.insert(emit, "    shown::<Tag>(),\n", "    shown::<Note>(),\n");
    copy.insert(emit, "use crate::records::tag::{Link, Tag};\n", "use crate::records::note::Note;\n");
    copy.insert("local/tests/stored.rs", "        (\"Tag\", ", "        (\"Note\", \"\", reads::<Note>),\n");
    let when = "A note is a text of your own. Use notes to remember what you have found out.";
    copy.insert("local/src/openapi/tags.rs", "    (\n        \"tag\",\n", &format!("    (\"note\", \"{when}\"),\n"));
    let create = "Creates a note of the organisation. Its title says what it is about.";
    let plain = "local/repository/src/plain.rs";
    copy.insert(plain, "    (\"create-tag\", ", &format!("    (\"create-note\", \"{create}\"),\n"));
}

/// The steps "… an operation": two edits.
fn add_operation(copy: &Copy, (constant, name, route, exercise): (&str, &str, &str, &str)) {
    let last = "    CANCEL_CAMPAIGN ";
    copy.insert("shared/src/routes.rs", last, &format!("    {constant} \"note\" \"{name}\" {route};\n"));
    let last = "    Exercise { further: Further::Conflict, ..Exercise::of(&routes::CANCEL_CAMPAIGN) },\n";
    copy.insert("local/tests/exercises.rs", last, &format!("    {exercise},\n"));
}

#[test]
#[ignore = "it compiles all functions once more: CI runs it by itself"]
fn the_steps_of_contributing_add_a_record_with_five_operations() {
    let workspace = repository::root();
    let copy = Copy::of(&workspace);
    add_record(&copy);
    for operation in OPERATIONS {
        add_operation(&copy, operation);
    }
    let generate = ["generate", "--quick"];
    // The writing tests that the later steps need.
    let writing = ["contract::", "cost::the_table", "events::every_event", "permissions::", "stored::", "template::"];
    let (generated, output_text) = copy.cargo(&[&generate[..], &writing].concat());
    assert!(generated, "{output_text}");
    for name in OPERATIONS.map(|(_, name, ..)| name) {
        assert!(copy.0.join(format!("events/{name}.json")).is_file(), "no event of {name}: {output_text}");
    }
    // The binaries are compiled as empty tests, so that they share the dependencies of the other tests.
    let binaries = OPERATIONS.iter().flat_map(|(_, name, ..)| ["--bin", name]);
    let tests = ["test", "--package", "local", "--package", "note", "--test", "stack"].into_iter().chain(binaries);
    let tests: Vec<&str> = tests.chain(["--"]).collect();
    // Another program measures the figures, and takes long.
    let matrices = [
        "contract::",
        "deletes::",
        "demo::the_loaded",
        "events::every_event",
        "exercises::",
        "exports::each_record",
        "isolation::",
        "matrix::",
        "openapi::every_tag",
        "pages::",
        "permissions::",
        "replay::a_read_only",
        "storage::",
        "stored::",
        "subscriptions::each_listed_record",
    ];
    let skipped = ["--skip", "figures_of_every_function_are_kept"];
    let (passes, output_text) = copy.cargo(&[&tests[..], &matrices, &skipped].concat());
    assert!(passes, "{output_text}");
}
