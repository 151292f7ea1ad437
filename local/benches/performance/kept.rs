//! The stored results of a run, in `docs/performance.json`: every figure, the lines of the charts, and the machine. The
//! page is written from them.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::figures::{Figures, Row, Series};
use crate::machine::PROCESSOR;
use crate::{Result, machine};

/// The path of the file, from the root of the checkout.
const FILE: &str = "docs/performance.json";

/// The stored results of a run.
#[derive(Debug, Serialize, Deserialize)]
pub struct Kept {
    /// The machine and the tools of the run: names and values.
    pub machine: Vec<(String, String)>,
    /// The figures.
    #[serde(flatten)]
    pub figures: Figures,
}

impl Kept {
    /// `figures` of this machine, with the versions of the programs on `path`.
    pub fn of(figures: Figures, path: &std::ffi::OsStr) -> Result<Self> {
        let machine = machine::described()?.into_iter().chain(machine::versions(path)).collect();
        Ok(Self { machine, figures })
    }

    /// The results that were stored last.
    pub fn read(root: &Path) -> Result<Self> {
        Ok(serde_json::from_str(&std::fs::read_to_string(root.join(FILE))?)?)
    }

    /// Stores the results: one line for each figure, so that two runs can be compared line by line.
    pub fn write(&self, root: &Path) -> Result<()> {
        let machine = lines(&self.machine)?;
        let (rows, series) = (lines::<Row>(&self.figures.rows)?, lines::<Series>(&self.figures.series)?);
        let text =
            format!("{{\n\"machine\": [\n{machine}\n],\n\"rows\": [\n{rows}\n],\n\"series\": [\n{series}\n]\n}}\n");
        Ok(std::fs::write(root.join(FILE), text)?)
    }

    /// The processor's model.
    pub fn processor(&self) -> &str {
        self.machine.iter().find(|(name, _)| name == PROCESSOR).map_or("another processor", |(_, value)| value)
    }
}

/// Each of `values` on a line of its own.
fn lines<T: Serialize>(values: &[T]) -> Result<String> {
    let lines = values.iter().map(serde_json::to_string).collect::<std::result::Result<Vec<_>, _>>()?;
    Ok(lines.join(",\n"))
}
