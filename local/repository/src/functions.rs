//! Lists the functions of the service from the route table and the files.

use std::collections::BTreeSet;

use shared::request::route::Route;
use shared::routes;

use crate::plain::{PlainOperation, own_file};
use crate::{camel_case, names_in, read, root, snake_case};

/// A function: its package, its name, and the trait that it implements.
pub struct Function {
    pub package: String,
    pub name: String,
    pub kind: &'static str,
}

impl Function {
    /// The plain operation that it is, if it has no file.
    pub fn plain(&self) -> Option<PlainOperation<'_>> {
        if self.kind == "Operation" { PlainOperation::of(&root(), &self.package, &self.name) } else { None }
    }

    /// The file with its code.
    pub fn file(&self) -> String {
        self.plain().map_or_else(|| own_file(&self.package, &self.name), |plain| plain.file())
    }

    /// Its type.
    pub fn type_name(&self) -> String {
        let own = || format!("{}::{}", snake_case(&self.package), camel_case(&self.name));
        self.plain().map(|plain| plain.types()).map_or_else(own, |[verb, record]| format!("{verb}<{record}>"))
    }

    /// The expression that makes its handler in the binary and in the local stack.
    pub fn handler(&self) -> String {
        let (type_name, constant) = (self.type_name(), snake_case(&self.name).to_uppercase());
        match self.kind {
            "Operation" => format!("Handler::of::<{type_name}>(&routes::{constant})"),
            "SignedOperation" => format!("Handler::signed::<{type_name}>(&routes::{constant})"),
            "Document" => format!("Published::of::<{type_name}>(&routes::{constant})"),
            "ToolServer" => format!("Server::of::<{type_name}>(&routes::{constant})"),
            "OperatorTask" => format!("Task::of::<{type_name}>()"),
            "StreamConsumer" => format!("Consumer::of::<{type_name}>()"),
            _ => format!("Scheduled::of::<{type_name}>()"),
        }
    }

    /// The source of its binary.
    pub fn main(&self) -> String {
        let (kind, run) = match self.kind {
            "Operation" | "SignedOperation" => ("request::pipeline::Handler", "run"),
            "Document" => ("runtime::document::Published", "run_document"),
            "ToolServer" => ("mcp::Server", "run_server"),
            "OperatorTask" => ("runtime::operator::Task", "run_task"),
            "StreamConsumer" => ("runtime::stream::Consumer", "run_consumer"),
            _ => ("runtime::schedule::Scheduled", "run_scheduled"),
        };
        let (name, handler) = (&self.name, self.handler());
        let mut paths = BTreeSet::from([kind.to_owned(), "runtime::lambda".to_owned()]);
        paths.extend(handler.contains("&routes::").then(|| "routes".to_owned()));
        if let Some(mut types) = self.plain().map(|plain| plain.types()) {
            types.sort();
            paths.insert(format!("prelude::{{{}}}", types.join(", ")));
        }
        let uses: String = paths.iter().map(|path| format!("use shared::{path};\n")).collect();
        format!(
            "//! Runs `{name}` under Lambda. Written by `cargo generate`.\n\n{uses}\n\
             fn main() -> Result<(), lambda::Fatal> {{\n    lambda::{run}({handler})\n}}\n"
        )
    }
}

/// Every function: first the ones of the route table in its order, then the ones without a route.
pub fn functions() -> Vec<Function> {
    let lists: [(&[&Route], _); 4] = [
        (routes::ALL, "Operation"),
        (routes::SIGNED, "SignedOperation"),
        (routes::DOCUMENTS, "Document"),
        (&[&routes::MCP], "ToolServer"),
    ];
    let of = |route: &Route, kind| Function { package: route.record.to_owned(), name: route.name.to_owned(), kind };
    let routed = lists.into_iter().flat_map(|(routes, kind)| routes.iter().map(move |route| of(route, kind)));
    let kind = |source: &str| {
        let kinds = ["OperatorTask", "StreamConsumer", "ScheduledTask"];
        kinds.into_iter().find(|kind| source.contains(&format!("impl {kind} for ")))
    };
    let unrouted = ["operator", "background"].into_iter().flat_map(|package| {
        let files = names_in(&format!("functions/{package}/src")).into_iter();
        files.filter_map(move |file| {
            let name = file.strip_suffix(".rs").filter(|name| *name != "lib")?.replace('_', "-");
            let kind = kind(&read(&format!("functions/{package}/src/{file}")))?;
            Some(Function { package: package.to_owned(), name, kind })
        })
    });
    let mut functions: Vec<_> = routed.chain(unrouted).collect();
    let order =
        ["Operation", "SignedOperation", "Document", "ToolServer", "OperatorTask", "StreamConsumer", "ScheduledTask"];
    functions.sort_by_key(|function| order.iter().position(|kind| *kind == function.kind));
    records_are_declared(&functions);
    functions
}

/// Asserts that the record of each plain operation is listed, before `cargo generate` writes code that cannot compile.
fn records_are_declared(functions: &[Function]) {
    let records = "shared/src/records";
    let text = |file: String| Some(read(&format!("{records}/{}.rs", file.strip_suffix(".rs")?)));
    let declared: String = names_in(records).into_iter().filter_map(text).collect();
    for function in functions {
        let Some([_, record]) = function.plain().map(|plain| plain.types()) else { continue };
        let head = format!("pub struct {record}({record}Id): listed(");
        let own = own_file(&function.package, &function.name);
        assert!(declared.contains(&head), "{own} is missing, and no listed record is called {record}");
    }
}

/// The names of all functions.
pub fn names_of_functions() -> BTreeSet<String> {
    functions().into_iter().map(|function| function.name).collect()
}
