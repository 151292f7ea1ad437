//! The binaries as they would be deployed, the reference programs, and the environment in which they run.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use embedded_dynamodb::partitions::{Counting, Partitions};
use local::database::{Data, snapshot};
use local::{Settings, Stack};
use ring::digest::{SHA256, digest};
use tokio::sync::OnceCell;

use crate::Result;
use crate::process::{Program, path};

/// Programs whose instructions are counted at the same time: other load does not change a count, and one core would
/// otherwise be idle.
pub const AT_ONCE: usize = 2;

/// Reports that `what` is measured next, the `number`th of `of` from 0: all of them together take minutes to an hour.
pub fn progress(what: &str, number: usize, of: usize) {
    eprintln!("measuring: {what}, {} of {of}", number + 1);
}

/// Measures on threads of its own: database, proxy and receiver must not wait for the harness.
pub fn on_own_threads<F: Future<Output = Result<()>>>(measure: impl FnOnce() -> F + Send) -> Result<()> {
    std::thread::scope(|scope| {
        let run = || {
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
            runtime.block_on(measure())
        };
        scope.spawn(run).join().map_err(|_| "the measure panicked")?
    })
}

/// A function of the service.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Function {
    /// Its name, which is the name of its binary.
    pub name: String,
    /// The folder of its package, which may contain more functions.
    pub package: PathBuf,
}

/// The tools of every measure.
#[derive(Debug)]
pub struct Bench {
    /// The checkout.
    pub root: PathBuf,
    /// A folder for temporary files.
    pub scratch: PathBuf,
    /// Functions that are not measured this time.
    pub skipped: BTreeSet<String>,
    /// How many times each count of instructions is taken.
    pub effort: Effort,
    /// Contacts of the export that is measured.
    pub rows: u64,
    binaries: PathBuf,
    loaded: OnceCell<PathBuf>,
}

/// How many times each count of instructions is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effort {
    /// Once or three times: enough to show that a count has not risen.
    Quick,
    /// As many times as the median needs to be the same in every run.
    Thorough,
}

impl Bench {
    /// The checkout, without a build of any function: for measures that run inside the harness.
    pub fn of_checkout() -> Result<Self> {
        let root = repository::root();
        let scratch = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("performance");
        std::fs::create_dir_all(&scratch)?;
        let binaries = root.join("target/lambda");
        let (skipped, effort, loaded) = (BTreeSet::new(), Effort::Thorough, OnceCell::new());
        Ok(Self { root, scratch, skipped, effort, rows: 0, binaries, loaded })
    }

    /// Builds every function in release mode, as `sam build` does.
    pub fn build() -> Result<Self> {
        let bench = Self::of_checkout()?;
        run(&mut lambda_build(&bench.root)?)?;
        Ok(bench)
    }

    /// Builds the reference programs.
    pub fn build_references(&self) -> Result<()> {
        run(&mut lambda_build_of(&self.root, &["--package", "bare", "--package", "hello"])?)?;
        // The naive program has a workspace of its own, and so a target folder of its own.
        let mut naive = lambda_build_of(&self.root, &["--manifest-path", "local/benches/naive/Cargo.toml"])?;
        run(naive.env("CARGO_TARGET_DIR", self.root.join("target/naive")))?;
        install_twin(&self.root)
    }

    /// Builds the sender that is allowed to send to this machine.
    pub fn build_sender(&self) -> Result<()> {
        run(&mut lambda_build_of(&self.root, &["--package", "sender"])?)
    }

    /// A fresh service with the demo set; the binaries use its table.
    pub async fn stack(&self) -> Result<Stack> {
        let partitions = || Partitions::new(Counting::Counted);
        let settings = || Settings { stream: false, partitions: partitions(), ..Settings::of(&self.root) };
        let load = async || -> Result<PathBuf> {
            let file = self.scratch.join(format!("demo-{}.db", std::process::id()));
            let stack = Stack::start(settings()).await?;
            snapshot(&stack.database, &file)?;
            stack.stop().await;
            Ok(file)
        };
        let loaded = self.loaded.get_or_try_init(load).await?;
        Ok(Stack::start(Settings { data: Data::CopyOf(loaded.clone()), ..settings() }).await?)
    }

    /// SHA-256 of the binary of a function, in hexadecimal digits: different builds have different digests.
    pub fn digest(&self, name: &str) -> Result<String> {
        let digest = digest(&SHA256, &std::fs::read(self.binary(name))?);
        Ok(digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// The file of a binary.
    pub fn binary(&self, name: &str) -> PathBuf {
        self.binaries.join(name).join("bootstrap")
    }

    /// Every measured function: the binaries of the packages under `functions/`.
    pub fn functions(&self) -> Result<Vec<Function>> {
        let mut functions = Vec::new();
        for package in std::fs::read_dir(self.root.join("functions"))? {
            let package = package?.path();
            for binary in std::fs::read_dir(package.join("src/bin"))? {
                let name = binary?.path().file_stem().ok_or("no name")?.to_string_lossy().into_owned();
                functions.push(Function { name, package: package.clone() });
            }
        }
        functions.retain(|function: &Function| !self.skipped.contains(&function.name));
        functions.sort();
        Ok(functions)
    }

    /// A binary, with its environment from the template.
    pub fn program(&self, name: &str, stack: &Stack) -> Program {
        Program::new(vec![self.binary(name).display().to_string()], environment(stack))
    }

    /// The naive program.
    pub fn naive(&self, stack: &Stack) -> Program {
        Program::new(vec![self.naive_binary().display().to_string()], environment(stack))
    }

    /// Its file.
    pub fn naive_binary(&self) -> PathBuf {
        self.root.join("target/naive/lambda/naive/bootstrap")
    }

    /// The same service in Python.
    pub fn twin(&self, stack: &Stack) -> Program {
        let program = [self.root.join("target/twin/bin/python"), self.root.join("local/benches/twin/bootstrap.py")];
        // The folder for compiled code: the first start fills it, as a package for deployment would contain it.
        let compiled = self.root.join("target/twin/compiled").display().to_string();
        Program::new(program.map(|path| path.display().to_string()).into(), environment(stack))
            .with("PYTHONPYCACHEPREFIX", compiled)
    }

    /// The recorded event of an operation.
    pub fn event(&self, name: &str) -> Result<String> {
        Ok(std::fs::read_to_string(self.root.join(format!("events/{name}.json")))?)
    }
}

/// The environment that the template gives every function.
fn environment(stack: &Stack) -> Vec<(String, String)> {
    let set = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
    let environment = [
        ("AWS_ACCESS_KEY_ID", "local"),
        ("AWS_SECRET_ACCESS_KEY", "local"),
        ("AWS_SESSION_TOKEN", "local"),
        ("AWS_REGION", "us-east-1"),
        ("AWS_DEFAULT_REGION", "us-east-1"),
        ("TABLE_NAME", local::database::TABLE_NAME),
        ("FILES_BUCKET", local::bucket::BUCKET_NAME),
        ("FAILED_RECORDS_BUCKET", local::bucket::FAILED_RECORDS_NAME),
        ("SECRETS_KEY", local::kms::KEY),
        ("PAYMENT_API_BASE", &stack.gateway.service.config.payment_api_base),
        ("SENDS_PER_SECOND", "10"),
        // Higher than any measured load.
        ("QUOTAS", "running_campaigns=1000000,sends_a_day=1000000000"),
        // Higher than any measured load: no request is refused, and none takes a lease.
        ("KEY_REQUESTS_PER_SECOND", "10000"),
        ("KEY_BURST", "1000000"),
        ("AUDIT_DAYS", "400"),
        // A process under callgrind is fifty times slower: this must not cause a second attempt.
        ("TABLE_ATTEMPT_SECONDS", "60"),
        ("AWS_ENDPOINT_URL_DYNAMODB", &stack.dynamodb_url),
        ("AWS_ENDPOINT_URL_S3", &stack.s3_url),
        ("AWS_ENDPOINT_URL_KMS", &stack.kms_url),
    ];
    environment.map(set).into()
}

fn run(command: &mut Command) -> Result<()> {
    if command.status()?.success() { Ok(()) } else { Err(format!("{command:?} failed").into()) }
}

/// Installs the packages of the twin, if they have changed.
fn install_twin(root: &Path) -> Result<()> {
    let (wanted, folder) = (root.join("local/benches/twin/requirements.txt"), root.join("target/twin"));
    let installed = folder.join("requirements.txt");
    if std::fs::read(&installed).ok() == Some(std::fs::read(&wanted)?) {
        return Ok(());
    }
    run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder))?;
    let hashed = ["--require-hashes", "--only-binary", ":all:", "--requirement"];
    let pip = ["install", "--quiet", "--disable-pip-version-check"].into_iter().chain(hashed);
    run(Command::new(folder.join("bin/pip")).args(pip).arg(&wanted))?;
    std::fs::copy(&wanted, &installed)?;
    Ok(())
}

/// The command that builds every function in release mode, to the same bytes as `.ci/release`. It names the packages of
/// the functions, because cargo unifies the features of all packages in a build, and other packages enable more
/// features.
pub fn lambda_build(root: &Path) -> Result<Command> {
    let mut command = lambda_build_of(root, &[])?;
    for package in std::fs::read_dir(root.join("functions"))? {
        command.arg("--package").arg(package?.file_name());
    }
    Ok(command)
}

/// The same for the packages that `which` selects.
pub fn lambda_build_of(root: &Path, which: &[&str]) -> Result<Command> {
    let flags = Command::new(root.join(".ci/rustflags")).output()?;
    let mut command = cargo();
    command.env("RUSTFLAGS", String::from_utf8(flags.stdout)?.trim());
    command.args(["lambda", "build", "--locked", "--release", "--quiet"]).args(which);
    command.current_dir(root).env("PATH", programs(root)?);
    Ok(command)
}

/// The search path for programs: first the pinned tools.
pub fn programs(root: &Path) -> Result<OsString> {
    let tools = Command::new(root.join(".ci/tools")).output()?;
    let tools = String::from_utf8(tools.stdout)?;
    Ok(std::env::join_paths(std::env::split_paths(tools.trim()).chain(std::env::split_paths(&path())))?)
}

/// Cargo, without the environment that another cargo gave this program.
pub fn cargo() -> Command {
    let mut command = Command::new("cargo");
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(|name| name.starts_with("CARGO_") && name != "CARGO_HOME") {
            command.env_remove(name);
        }
    }
    command
}
