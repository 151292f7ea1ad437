//! The functions of the service, as the route table and their files name them.

use std::collections::BTreeSet;

use local::template::camel_case;
use shared::routes;

use crate::support::generated::{names_in, read};

/// A function: the package that it is in, its name, and the trait that it implements.
pub struct Function {
    pub package: String,
    pub name: String,
    pub kind: &'static str,
}

impl Function {
    /// Its source.
    pub fn file(&self) -> String {
        format!("functions/{}/src/{}.rs", self.package, snake_case(&self.name))
    }

    /// What makes a handler of it, as the binaries and the local stack both have it.
    pub fn handler(&self) -> String {
        let (krate, name) = (snake_case(&self.package), camel_case(&self.name));
        match self.kind {
            "Operation" => {
                format!("Handler::of::<{krate}::{name}>(&routes::{})", snake_case(&self.name).to_uppercase())
            }
            "SignedOperation" => {
                format!("Handler::signed::<{krate}::{name}>(&routes::{})", snake_case(&self.name).to_uppercase())
            }
            "Document" => {
                format!("Published::of::<{krate}::{name}>(&routes::{})", snake_case(&self.name).to_uppercase())
            }
            "ToolServer" => format!("Server::of::<{krate}::{name}>(&routes::MCP)"),
            "OperatorTask" => format!("Task::of::<{krate}::{name}>()"),
            "StreamConsumer" => format!("Consumer::of::<{krate}::{name}>()"),
            _ => format!("Scheduled::of::<{krate}::{name}>()"),
        }
    }
}

pub fn snake_case(name: &str) -> String {
    name.replace('-', "_")
}

/// Every function: those of the route table in its order, then those without a route, which their files name.
pub fn functions() -> Vec<Function> {
    let routed = routes::ALL.iter().map(|route| Function {
        package: route.record.to_owned(),
        name: route.name.to_owned(),
        kind: "Operation",
    });
    let signed = routes::SIGNED.iter().map(|route| Function {
        package: route.record.to_owned(),
        name: route.name.to_owned(),
        kind: "SignedOperation",
    });
    let documents = routes::DOCUMENTS.iter().map(|route| Function {
        package: route.record.to_owned(),
        name: route.name.to_owned(),
        kind: "Document",
    });
    let server =
        Function { package: routes::MCP.record.to_owned(), name: routes::MCP.name.to_owned(), kind: "ToolServer" };
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
    let mut functions: Vec<_> = routed.chain(signed).chain(documents).chain([server]).chain(unrouted).collect();
    let order =
        ["Operation", "SignedOperation", "Document", "ToolServer", "OperatorTask", "StreamConsumer", "ScheduledTask"];
    functions.sort_by_key(|function| order.iter().position(|kind| *kind == function.kind));
    functions
}

/// The names of all functions.
pub fn names_of_functions() -> BTreeSet<String> {
    functions().into_iter().map(|function| function.name).collect()
}
