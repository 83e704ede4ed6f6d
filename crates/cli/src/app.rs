//! What all commands share: the store, the output, the hints.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lodestep::Runtime;
use lodestep::core::{Error, Result, RunKey};
use lodestep::process::Demand;
use lodestep::secrets::Environment;
use lodestep::store::{RunRow, STORE_FOLDER, SqliteStore, SystemClock};
use serde_json::{Value, json};

use crate::args::Cli;
use crate::bulk::DECLINED;
use crate::text::{quoted, short_id};
use crate::wiring;

/// What was typed before the command, and how to say things.
pub struct App {
    store: Option<PathBuf>,
    /// Print JSON on stdout.
    pub json: bool,
    by: Option<String>,
    /// Whether tools start where they can't be kept from the store's files.
    pub cage: Demand,
    program: String,
    run: Mutex<Option<String>>,
}

/// The store's file in it.
const FILE: &str = "lodestep.db";

impl App {
    /// What was typed.
    pub fn new(cli: &Cli) -> Self {
        let program = std::env::args().next().unwrap_or_else(|| "lodestep".to_owned());
        let (store, by) = (cli.store.clone(), cli.by.clone());
        Self { store, json: cli.json, by, cage: cli.cage.unwrap_or(Demand::BestEffort), program, run: Mutex::default() }
    }

    /// Who says it: as given, else the machine's user.
    pub fn by(&self) -> String {
        let said = |name: String| Some(name.trim().to_owned()).filter(|name| !name.is_empty());
        let named = |variable| std::env::var(variable).ok().and_then(said);
        // The system's own program knows users of every kind; it is asked only where the environment tells nothing.
        let system = || {
            let output =
                std::process::Command::new("id").arg("-un").stdin(std::process::Stdio::null()).output().ok()?;
            String::from_utf8(output.stdout).ok().and_then(said)
        };
        let by = self.by.clone().or_else(|| named("USER")).or_else(|| named("LOGNAME")).or_else(system);
        by.unwrap_or_else(|| "operator".to_owned())
    }

    /// The command as this binary was started, with the store if one was named.
    pub fn command(&self, rest: &str) -> String {
        let program = quoted(&self.program);
        match &self.store {
            Some(store) => format!("{program} --store {} {rest}", quoted(&store.display().to_string())),
            None => format!("{program} {rest}"),
        }
    }

    /// The run whose id ends so, which hints name from then on.
    ///
    /// # Errors
    ///
    /// `run.not_found`, `run.ambiguous`, and the store's errors.
    pub async fn find(&self, runtime: &Runtime, id_end: &str) -> Result<RunRow> {
        let row = runtime.find(id_end).await?;
        self.speaks_of(&row.run.key);
        Ok(row)
    }

    /// From now on hints name this run.
    pub fn speaks_of(&self, run: &RunKey) {
        *self.run() = Some(short_id(run.run.as_str(), &[]).to_owned());
    }

    fn run(&self) -> MutexGuard<'_, Option<String>> {
        self.run.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A hint's commands as they can be typed: as this binary was started, with its store, and for the run that is meant.
    pub fn pasted(&self, hint: &str) -> String {
        let hint = hint.replace("`lodestep ", &format!("`{}", self.command("")));
        match &*self.run() {
            Some(run) => hint.replace(" RUN`", &format!(" {run}`")),
            None => hint,
        }
    }

    /// Where the store is.
    pub fn store_path(&self) -> PathBuf {
        self.store_found().0
    }

    /// Where the store is, and why there.
    pub fn store_found(&self) -> (PathBuf, &'static str) {
        if let Some(path) = &self.store {
            let by_variable = std::env::var_os("LODESTEP_STORE").is_some_and(|named| named == *path.as_os_str());
            return (path.clone(), if by_variable { "LODESTEP_STORE names it" } else { "--store names it" });
        }
        let here = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
        // A store that was lost is still this folder's: another one further up would begin its runs anew.
        let found = here
            .ancestors()
            .map(|folder| folder.join(STORE_FOLDER).join(FILE))
            .find(|path| SqliteStore::is_or_was_at(path));
        match found {
            Some(path) => (path, "in the nearest folder upwards that has or had one"),
            None => (here.join(STORE_FOLDER).join(FILE), "no folder from here upwards has one"),
        }
    }

    /// Opens the store, making it when `make` says so.
    ///
    /// # Errors
    ///
    /// `store.not_found` when there is none, and the store's own errors.
    pub fn open(&self, make: bool) -> Result<Runtime> {
        self.open_to_work(make, Environment::default())
    }

    /// As [`Self::open`], for a process that works on runs: their tools get this environment.
    ///
    /// # Errors
    ///
    /// As [`Self::open`].
    pub fn open_to_work(&self, make: bool, environment: Environment) -> Result<Runtime> {
        let path = if make { self.store_path() } else { self.existing()? };
        prepare_folder(&path)?;
        let is_new = !SqliteStore::is_or_was_at(&path);
        let store = SqliteStore::open(&path, Arc::new(SystemClock))?;
        if is_new {
            lodestep::note!("a new store: {}", path.display());
        }
        let builder = Runtime::builder(Arc::new(store)).cage(self.cage).environment(environment);
        Ok(builder.keep_out(wiring::keep_out(self)).build())
    }

    /// Opens the store to look at it, also where it can't be written.
    ///
    /// # Errors
    ///
    /// As [`Self::open`].
    pub fn open_to_read(&self) -> Result<Runtime> {
        let path = self.existing()?;
        let store = SqliteStore::open_to_read(&path, Arc::new(SystemClock))?;
        Ok(Runtime::builder(Arc::new(store)).build())
    }

    fn existing(&self) -> Result<PathBuf> {
        let path = self.store_path();
        // What is to be done about one that was lost is the store's to say.
        if SqliteStore::is_or_was_at(&path) {
            return Ok(path);
        }
        Err(Error::new(
            "store.not_found",
            format!("there is no store at {}", path.display()),
            "`lodestep run FILE` makes one; `--store` or LODESTEP_STORE names another",
        ))
    }

    /// Prints to stdout; a reader that has gone away is no error.
    pub fn print(&self, text: &str) {
        print_out(text);
    }

    /// Prints the text, or the JSON when that was asked for.
    pub fn say(&self, text: &str, value: &Value) {
        if self.json {
            self.print(&format!("{value}\n"));
        } else {
            self.print(text);
        }
    }

    /// Prints an error where it belongs, and gives its exit code.
    pub fn report(&self, error: &Error) -> u8 {
        if self.json {
            self.print(&format!("{}\n", json!({"error": self.as_json(error)})));
        } else if error.code() == DECLINED {
            lodestep::note!("{}", error.what());
        } else {
            lodestep::note!("error: {} [{}]", error.what(), error.code());
            let next = self.pasted(error.next());
            if !next.is_empty() {
                lodestep::note!("  {next}");
            }
        }
        exit_code(error)
    }

    /// An error as JSON.
    pub fn as_json(&self, error: &Error) -> Value {
        json!({"code": error.code(), "what": error.what(), "next": self.pasted(error.next())})
    }
}

/// Prints to stdout; a reader that has gone away is no error.
pub fn print_out(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// 7 for the store, 2 for what was typed or written, 1 for a refusal.
pub fn exit_code(error: &Error) -> u8 {
    match error.code() {
        "run.unfinished" | "run.id_invalid" => 2,
        code if code.starts_with("store.") => 7,
        code if ["agent.", "input.", "usage.", "model.", "hold.target", "wiring."]
            .iter()
            .any(|kind| code.starts_with(kind)) =>
        {
            2
        }
        _ => 1,
    }
}

/// Makes a store's default folder, if the path is in one: it is the owner's alone, and no business of version control.
///
/// # Errors
///
/// `store.unavailable`.
pub fn prepare_folder(path: &Path) -> Result<()> {
    let folder = path.parent().filter(|folder| folder.ends_with(STORE_FOLDER));
    let Some(folder) = folder.filter(|folder| !folder.exists()) else {
        return Ok(());
    };
    let fault = |error: std::io::Error| {
        let what = format!("{} can't be made: {error}", folder.display());
        Error::new("store.unavailable", what, "`--store PATH` puts the store elsewhere")
    };
    let mut builder = std::fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder).map_err(fault)?;
    let mut file = std::fs::OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut file, 0o600);
    let written = file.write(true).create(true).truncate(true).open(folder.join(".gitignore"));
    written.and_then(|mut file| file.write_all(b"*\n")).map_err(fault)
}
