//! What is kept of a run, in `docs/performance.json`: every figure, what the charts draw, and the machine. The page is written from it.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::figures::{Figures, Row, Series};
use crate::machine::PROCESSOR;
use crate::{Result, machine};

/// Where it is kept, from the root of the checkout.
const FILE: &str = "docs/performance.json";

/// All that is kept of a run.
#[derive(Debug, Serialize, Deserialize)]
pub struct Kept {
    /// What it was measured on and with: names and values.
    pub machine: Vec<(String, String)>,
    /// What was measured.
    #[serde(flatten)]
    pub figures: Figures,
}

impl Kept {
    /// `figures` of this machine, with the programs that are found on `path`.
    pub fn of(figures: Figures, path: &std::ffi::OsStr) -> Result<Self> {
        let machine = machine::described()?.into_iter().chain(machine::versions(path)).collect();
        Ok(Self { machine, figures })
    }

    /// What was kept last.
    pub fn read(root: &Path) -> Result<Self> {
        Ok(serde_json::from_str(&std::fs::read_to_string(root.join(FILE))?)?)
    }

    /// Keeps it: a line for each figure, so that two runs can be compared line by line.
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
