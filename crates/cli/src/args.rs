//! What can be typed.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{Args, CommandFactory as _, Parser, Subcommand};
use lodestep::process::Demand;

use crate::bulk::Bulk;
use crate::commands::init::Template;
use crate::commands::ls::CameTo;
use crate::commands::schema::Schema;
use crate::select::Selection;

/// A durable execution runtime for AI agents.
#[derive(Parser)]
#[command(name = "lodestep", version, about, max_term_width = 100)]
pub struct Cli {
    /// The store's file. Without it LODESTEP_STORE, else .lodestep/lodestep.db in the nearest folder upwards, else here.
    #[arg(long, global = true, value_name = "PATH", help_heading = COMMON)]
    pub store: Option<PathBuf>,
    /// Print JSON on stdout.
    #[arg(long, global = true, help_heading = COMMON)]
    pub json: bool,
    /// Who says it, for approvals and other words to a run. Without it LODESTEP_USER, else the user of the machine.
    #[arg(long, global = true, value_name = "NAME", help_heading = COMMON)]
    pub by: Option<String>,
    /// Whether tools start on a machine that can't keep them from the store's files: best-effort or required. Without
    /// it LODESTEP_CAGE, else best-effort.
    #[arg(long, global = true, value_name = "DEMAND", value_parser = demand, help_heading = COMMON)]
    pub cage: Option<Demand>,
    #[command(subcommand)]
    pub command: Command,
}

/// The heading of the options that every command takes.
const COMMON: &str = "Common options";

impl Cli {
    /// What was typed, and of the common options what the environment says where nothing was typed. The parser itself would
    /// show an option that the environment gives as one that has to be typed.
    pub fn typed() -> Self {
        Self::with(Self::parse(), |name| std::env::var_os(name).filter(|value| !value.is_empty()))
            .unwrap_or_else(|error| error.exit())
    }

    fn with(mut cli: Self, variable: impl Fn(&str) -> Option<OsString>) -> Result<Self, clap::Error> {
        cli.store = cli.store.or_else(|| variable("LODESTEP_STORE").map(PathBuf::from));
        cli.by = cli.by.or_else(|| variable("LODESTEP_USER").map(|by| by.to_string_lossy().into_owned()));
        if let (None, Some(text)) = (cli.cage, variable("LODESTEP_CAGE")) {
            let cage = demand(&text.to_string_lossy()).map_err(|why| {
                let what = format!("LODESTEP_CAGE is `{}`: {why}\n", text.to_string_lossy().escape_debug());
                Self::command().error(ErrorKind::InvalidValue, what)
            })?;
            cli.cage = Some(cage);
        }
        Ok(cli)
    }
}

fn demand(text: &str) -> Result<Demand, String> {
    match text {
        "best-effort" => Ok(Demand::BestEffort),
        "required" => Ok(Demand::Required),
        _ => Err("it is `best-effort` or `required`".to_owned()),
    }
}

/// The commands.
#[derive(Subcommand)]
pub enum Command {
    /// Write an agent that runs offline at once, to begin with.
    #[command(after_help = "Example: lodestep init my-agent --template approval")]
    Init {
        /// The folder; here without it.
        #[arg(default_value = ".")]
        folder: PathBuf,
        /// What to begin with.
        #[arg(long, value_enum, default_value = "research")]
        template: Template,
    },
    /// Run an agent from a file; an unfinished run of it goes on.
    ///
    /// Exits with 0 completed, 1 failed or refused, 2 an error in the file or in what was typed, 3 waiting for a person
    /// or a time, 4 cancelled, 5 in doubt or quarantined, 6 stopped, 7 for the store, 130 handed over after Ctrl-C or
    /// SIGTERM.
    #[command(
        after_help = "Example: lodestep run agent.toml -i topic=\"why async Rust needs Pin\"\n         lodestep run agent.toml --dry-run"
    )]
    Run(RunArgs),
    /// Let a run go on: the only unfinished one, or one by its id. With filters: tell stopped runs to go on.
    ///
    /// Exits as `run` does. With filters the runs are told and the work is left to whichever worker is there; --all does
    /// the work itself, on all of them at once.
    #[command(
        after_help = "Example: lodestep resume 7k2m\n         lodestep resume --all\n         lodestep resume --agent digest"
    )]
    Resume {
        /// The end of the run's id.
        run: Option<String>,
        /// Work on every unfinished run, up to 256 at once. Then each is shown, and asked about at this terminal.
        #[arg(long, conflicts_with = "run")]
        all: bool,
        #[command(flatten)]
        bulk: Bulk,
        /// Wait so long after each step, to watch it.
        #[arg(long, value_name = "DURATION", value_parser = duration)]
        pace: Option<std::time::Duration>,
        /// Abort the process at a fault point, as with `run`.
        #[arg(long, value_name = "TOOL:POINT")]
        crash_at: Option<String>,
    },
    /// Advance everything that is due, until Ctrl-C.
    ///
    /// Exits with 0 when nothing is due any more, which takes --until-idle, 1 refused, 2 for what was typed, 7 for the
    /// store, 130 handed over after Ctrl-C or SIGTERM. How the runs end is no matter of it: `ls` shows them.
    #[command(after_help = "Example: lodestep worker --until-idle")]
    Worker {
        /// Leave when nothing is due now.
        #[arg(long)]
        until_idle: bool,
        /// Abort the process at a fault point, as with `run`.
        #[arg(long, value_name = "TOOL:POINT")]
        crash_at: Option<String>,
    },
    /// Run an agent once, then once per fault point with a crash there, and count its effects.
    #[command(after_help = "Example: lodestep test examples/research/agent.toml")]
    Test(TestArgs),
    /// List runs: what needs you first.
    #[command(after_help = "Example: lodestep ls --status waiting")]
    Ls {
        #[command(flatten)]
        selection: Selection,
        /// Only runs with an effect that came to this, of any status; with --tool an effect of that tool.
        #[arg(long, value_name = "STATE")]
        effect: Option<CameTo>,
        /// At most so many of each group; of the others there is a count.
        #[arg(long)]
        limit: Option<usize>,
    },
    /// List what waits for people, a line each, with the command that settles it.
    #[command(after_help = "Example: lodestep todo --label team=billing")]
    Todo {
        #[command(flatten)]
        selection: Selection,
        /// At most so many.
        #[arg(long, default_value_t = 100)]
        limit: usize,
    },
    /// Show a run: its state, and what can be done now.
    #[command(after_help = "Example: lodestep show 7k2m")]
    Show {
        /// The end of the run's id.
        run: String,
        /// As it was after this step.
        #[arg(long, value_name = "STEP")]
        at: Option<u64>,
    },
    /// Print what the model was asked, rebuilt to the byte, and what it was made of.
    #[command(after_help = "Example: lodestep context 7k2m --at 14")]
    Context {
        /// The end of the run's id.
        run: String,
        /// The last request at this step or before it; the last of all if nothing is said.
        #[arg(long, value_name = "STEP")]
        at: Option<u64>,
        /// The request whose reply became this decision.
        #[arg(long, value_name = "NUMBER", conflicts_with = "at")]
        decision: Option<u32>,
    },
    /// Say what changed between two steps of a run, or between two runs.
    #[command(after_help = "Example: lodestep diff 7k2m --from 10 --to 20")]
    Diff {
        /// The end of the run's id.
        run: String,
        /// The end of another run's id, to compare with.
        other: Option<String>,
        /// The first state: after this step. Without it the start; of two runs the last.
        #[arg(long, value_name = "STEP")]
        from: Option<u64>,
        /// The second state: after this step. Without it the last.
        #[arg(long, value_name = "STEP")]
        to: Option<u64>,
    },
    /// Follow a run to its end, or all runs: a line for each transition. Ctrl-C ends the watching alone.
    #[command(after_help = "Example: lodestep watch 7k2m")]
    Watch {
        /// The end of the run's id; all runs without it.
        run: Option<String>,
    },
    /// Print the JSON Schema of a file that you write, for your editor; without a name: list those that there are.
    #[command(after_help = "Example: lodestep schema agent > .lodestep/agent.schema.json")]
    Schema {
        /// Of which file.
        name: Option<Schema>,
    },
    /// Print the completions of a shell.
    #[command(after_help = "Example: lodestep completions bash > ~/.local/share/bash-completion/completions/lodestep")]
    Completions {
        /// bash, elvish, fish, powershell or zsh.
        shell: clap_complete::Shell,
    },
    /// Make a new run that begins with the state of another, as it is or as it was after a step.
    #[command(after_help = "Example: lodestep fork 7k2m --at 9 -i topic=\"another one\"")]
    Fork(ForkArgs),
    /// Let an unfinished run go on with the definition of a file. With filters: those that they choose.
    ///
    /// What changes is shown first, and what it means for the run's actions. What was not sent of a changed tool is asked
    /// anew; what may have been sent ends as it began. What the run has done, spent and reached stays.
    #[command(
        after_help = "Example: lodestep upgrade 7k2m agent.toml\n         lodestep upgrade agent.toml --status stopped --dry-run"
    )]
    Upgrade(UpgradeArgs),
    /// Write a run to one file: journal, values, artifacts, definition, inbox. Or every run of a store, damaged or not.
    #[command(after_help = "Examples: lodestep export 7k2m run.lodestep\n          lodestep export --all saved")]
    Export {
        /// The end of the run's id.
        #[arg(required_unless_present = "all")]
        run: Option<String>,
        /// The file; it is not there yet.
        #[arg(required_unless_present = "all")]
        file: Option<PathBuf>,
        /// Write every run that can be read to a file of its own in this folder, which is not there yet.
        #[arg(long, value_name = "FOLDER", conflicts_with_all = ["run", "file"])]
        all: Option<PathBuf>,
    },
    /// Take in a run from a file; one that is not over is held until you release it.
    #[command(after_help = "Example: lodestep import run.lodestep")]
    Import {
        /// The file.
        file: PathBuf,
    },
    /// Print a run's events.
    #[command(after_help = "Example: lodestep log 7k2m --from 20")]
    Log {
        /// The end of the run's id.
        run: String,
        /// From this transition on.
        #[arg(long, default_value_t = 1)]
        from: u64,
        /// At most so many transitions.
        #[arg(long, default_value_t = 1000)]
        limit: usize,
    },
    /// Approve requests by their names, or those that filters choose.
    #[command(after_help = "Example: lodestep approve a7f3 09bc")]
    Approve {
        /// The start of a request's name; each request once.
        #[arg(value_name = "REQUEST")]
        requests: Vec<String>,
        /// Other arguments for one request, a JSON object: your own action in place of the proposed one.
        #[arg(long, value_name = "JSON")]
        edit: Option<String>,
        /// Take the outcome of the equal effect that the request shows; nothing is done again.
        #[arg(long, conflicts_with = "edit")]
        reuse: bool,
        #[command(flatten)]
        bulk: Bulk,
    },
    /// Deny requests by their names, or those that filters choose.
    #[command(after_help = "Example: lodestep deny a7f3 --reason \"not yet\"")]
    Deny {
        /// The start of a request's name; each request once.
        #[arg(value_name = "REQUEST")]
        requests: Vec<String>,
        /// What the model is told.
        #[arg(long, default_value = "")]
        reason: String,
        #[command(flatten)]
        bulk: Bulk,
    },
    /// Answer a question by its request's name.
    #[command(after_help = "Example: lodestep answer a7f3 \"the second one\"")]
    Answer {
        /// The start of the request's name.
        request: String,
        /// The answer; an empty one counts.
        text: String,
    },
    /// Say what became of an action in doubt, or of those that filters choose.
    ///
    /// With filters and without RUN it shows the actions in doubt that they choose, also those of runs that are over, and
    /// asks; --tool takes those of one tool. A run that is cancelled stays so.
    #[command(
        override_usage = "lodestep resolve [OPTIONS] <RUN> [ACTION]\n       lodestep resolve [OPTIONS] --tool <TOOL>|--agent <AGENT>|…",
        after_help = "Example: lodestep resolve 7k2m 14 --happened\n         lodestep resolve --tool charge --did-not-happen"
    )]
    Resolve(ResolveArgs),
    /// List a run's effects: keys, attempts, what is known.
    #[command(after_help = "Example: lodestep effects 7k2m")]
    Effects {
        /// The end of the run's id.
        run: String,
    },
    /// List a run's artifacts, or print one.
    #[command(after_help = "Example: lodestep artifacts 7k2m report.md")]
    Artifacts {
        /// The end of the run's id.
        run: String,
        /// Print this one's bytes.
        name: Option<String>,
        /// That version of it; the newest if nothing is said.
        #[arg(long)]
        version: Option<u32>,
    },
    /// Check a run's journal, or every run's.
    #[command(after_help = "Example: lodestep verify")]
    Verify {
        /// The end of the run's id; every run without it.
        run: Option<String>,
    },
    /// Sweep what nothing needs any more; with --ended-before also remove runs that ended long ago.
    #[command(after_help = "Example: lodestep gc --ended-before 30d --dry-run")]
    Gc(GcArgs),
    /// Say whether this machine, this store and an agent's surroundings are in order. Changes nothing.
    ///
    /// Exits 0 without a problem, 7 with one of the store's, else 1.
    #[command(after_help = "Example: lodestep doctor agent.toml")]
    Doctor {
        /// An agent file: are its secrets, programs and folders there?
        file: Option<PathBuf>,
    },
    /// Cancel a run, or those that filters choose: nothing is sent from then on.
    #[command(after_help = "Example: lodestep cancel 7k2m --reason \"wrong topic\"")]
    Cancel {
        /// The end of the run's id.
        run: Option<String>,
        /// Why.
        #[arg(long, default_value = "")]
        reason: String,
        #[command(flatten)]
        bulk: Bulk,
    },
    /// Pause a run: nothing is begun from then on, what is under way ends, `resume` goes on.
    #[command(after_help = "Example: lodestep pause 7k2m --reason \"wait for the numbers\"")]
    Pause {
        /// The end of the run's id.
        run: String,
        /// Why.
        #[arg(long, default_value = "")]
        reason: String,
    },
    /// Tell a run's model something: it is shown until a decision has seen it.
    #[command(after_help = "Example: lodestep tell 7k2m \"the second source is wrong\"")]
    Tell {
        /// The end of the run's id.
        run: String,
        /// What.
        text: String,
        /// Counts once under this id, however often it is sent.
        #[arg(long, value_name = "ID")]
        id: Option<String>,
    },
    /// Send a signal to a run: a wait for it ends, and one that comes early is kept.
    #[command(after_help = "Example: lodestep signal 7k2m paid '{\"cents\": 500}' --id delivery-4711")]
    Signal {
        /// The end of the run's id.
        run: String,
        /// The signal's name.
        name: String,
        /// What it carries, as JSON.
        value: Option<String>,
        /// Counts once under this id, however often it is sent.
        #[arg(long, value_name = "ID")]
        id: Option<String>,
    },
    /// Show or raise what a run may spend.
    #[command(subcommand)]
    Quota(QuotaCommand),
    /// Stop the dispatch of a tool, a model or an agent in every run; without a target: list what is held.
    #[command(after_help = "Example: lodestep hold tool:charge --reason \"the bank is down\"")]
    Hold {
        /// tool:NAME, model:NAME or agent:NAME; `*` stands for any characters.
        target: Option<String>,
        /// Why; every run that waits for its end says so.
        #[arg(long, default_value = "", requires = "target")]
        reason: String,
    },
    /// End a hold, or let a quarantined run go on, or those that filters choose.
    #[command(after_help = "Example: lodestep release tool:charge\n         lodestep release 7k2m")]
    Release {
        /// The end of the run's id, or what is held: tool:NAME, model:NAME, agent:NAME.
        #[arg(value_name = "RUN|TARGET")]
        run: Option<String>,
        #[command(flatten)]
        bulk: Bulk,
    },
}

/// What can be done with quotas.
#[derive(Subcommand)]
pub enum QuotaCommand {
    /// Show what a run has spent, holds back and has left.
    #[command(after_help = "Example: lodestep quota show 7k2m")]
    Show {
        /// The end of the run's id.
        run: String,
    },
    /// Raise a limit; `resume` lets a run go on that had stopped for it. With filters: of the runs that they choose.
    #[command(
        override_usage = "lodestep quota add [OPTIONS] <RUN> <QUOTA> <AMOUNT>\n       lodestep quota add [OPTIONS] <QUOTA> <AMOUNT> --agent <AGENT>|--label <NAME=VALUE>|…",
        after_help = "Example: lodestep quota add 7k2m usd 2.50 --id ticket-4711\n         lodestep quota add model_calls 5 --agent digest"
    )]
    Add {
        /// The end of the run's id; left out with filters.
        run: String,
        /// total_tokens, input_tokens, output_tokens, usd, model_calls, tool_calls, active_time or deadline.
        #[arg(allow_negative_numbers = true)]
        quota: String,
        /// A number, an amount of usd such as 2.50, or a time such as 90m or 2d.
        #[arg(allow_negative_numbers = true)]
        amount: Option<String>,
        /// Counts once under this id, however often it is sent to a run.
        #[arg(long, value_name = "ID")]
        id: Option<String>,
        #[command(flatten)]
        bulk: Bulk,
    },
}

/// Arguments of `run`.
#[derive(Args)]
pub struct RunArgs {
    /// The agent file.
    pub file: PathBuf,
    /// An input, name=value.
    #[arg(short, long = "input", value_name = "NAME=VALUE", value_parser = name_value)]
    pub input: Vec<(String, String)>,
    /// Another model than the file's: anthropic:NAME, openai:NAME, openai:NAME@BASE_URL for a compatible server.
    #[arg(long, value_name = "PROVIDER:NAME")]
    pub model: Option<String>,
    /// The run's id: the same id and inputs return the existing run.
    #[arg(long)]
    pub id: Option<String>,
    /// A label to find the run by, name=value.
    #[arg(long = "label", value_name = "NAME=VALUE", value_parser = name_value)]
    pub labels: Vec<(String, String)>,
    /// Start another run even if an unfinished one of the same agent and inputs exists.
    #[arg(long, conflicts_with = "id")]
    pub new: bool,
    /// Only check the file, and what lodestep.toml beside the store says of the agent.
    #[arg(long)]
    pub check: bool,
    /// Let read tools run, and of all others only show what would be sent. Nothing is stored.
    #[arg(long, conflicts_with_all = ["id", "new", "labels", "check", "crash_at"])]
    pub dry_run: bool,
    /// Abort the process at a fault point, to see it recover: TOOL:POINT, with POINT one of accepted, reply, intent,
    /// applied, outcome, checkpoint.
    #[arg(long, value_name = "TOOL:POINT")]
    pub crash_at: Option<String>,
    /// Wait so long after each step, to watch it: 500ms, 2s.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub pace: Option<std::time::Duration>,
}

/// Arguments of `fork`.
#[derive(Args)]
pub struct ForkArgs {
    /// The end of the run's id.
    pub run: String,
    /// After this step; after the last if nothing is said.
    #[arg(long, value_name = "STEP")]
    pub at: Option<u64>,
    /// The new run's id: the same command with the same id makes one fork.
    #[arg(long)]
    pub id: Option<String>,
    /// Another value of an input, name=value.
    #[arg(short, long = "input", value_name = "NAME=VALUE", value_parser = name_value)]
    pub input: Vec<(String, String)>,
    /// How much of a quota it gets, such as model_calls=20; without it all that an ended run has left, else half.
    #[arg(long, value_name = "QUOTA=AMOUNT", value_parser = name_value)]
    pub grant: Vec<(String, String)>,
}

/// Arguments of `upgrade`.
#[derive(Args)]
pub struct UpgradeArgs {
    /// The end of the run's id; left out with filters.
    pub run: Option<String>,
    /// The agent file, of the run's own agent.
    pub file: Option<PathBuf>,
    /// Another model than the file's, as `run` takes it.
    #[arg(long, value_name = "PROVIDER:NAME")]
    pub model: Option<String>,
    #[command(flatten)]
    pub selection: Selection,
    /// Don't ask.
    #[arg(long)]
    pub yes: bool,
    /// Only show what would change.
    #[arg(long, conflicts_with = "yes")]
    pub dry_run: bool,
}

/// Arguments of `test`.
#[derive(Args)]
pub struct TestArgs {
    /// The agent file.
    pub file: PathBuf,
    /// An input, name=value.
    #[arg(short, long = "input", value_name = "NAME=VALUE", value_parser = name_value)]
    pub input: Vec<(String, String)>,
    /// Besides the fault points: so many kills at random moments.
    #[arg(long, default_value_t = 0)]
    pub kills: u32,
    /// The seed of the random moments.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Only every n-th fault point.
    #[arg(long, default_value_t = 1)]
    pub every: usize,
    /// Keep the trials' folders, here.
    #[arg(long, value_name = "FOLDER")]
    pub keep: Option<PathBuf>,
}

/// Arguments of `gc`.
#[derive(Args)]
pub struct GcArgs {
    /// Remove the runs that ended longer ago than this: 30d, 12h.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub ended_before: Option<std::time::Duration>,
    /// Remove no run: only empty the transcripts of those chosen, raw replies that nothing needs.
    #[arg(long)]
    pub transcripts: bool,
    /// Only runs of this status; without it those that are over.
    #[arg(long, value_name = "STATUS")]
    pub status: Vec<String>,
    /// Only this agent's runs.
    #[arg(long, value_name = "AGENT")]
    pub agent: Option<String>,
    /// Only runs with this label; several have to be there together.
    #[arg(long = "label", value_name = "NAME=VALUE", value_parser = name_value)]
    pub labels: Vec<(String, String)>,
    /// Give the room that is free in the store's file back to the system. No worker may live.
    #[arg(long)]
    pub compact: bool,
    /// Only say what would be done.
    #[arg(long)]
    pub dry_run: bool,
    /// Don't ask.
    #[arg(long)]
    pub yes: bool,
}

/// Arguments of `resolve`.
#[derive(Args)]
#[command(group = clap::ArgGroup::new("became").required(true).args(["happened", "retry", "did_not_happen", "abandon"]))]
pub struct ResolveArgs {
    /// The end of the run's id.
    pub run: Option<String>,
    /// The action's number; not needed where only one is in doubt.
    pub action: Option<String>,
    /// What else was typed: one command settles one action, or those that filters choose.
    #[arg(hide = true)]
    pub more: Vec<String>,
    /// It happened; this is its result.
    #[arg(long, value_name = "RESULT", num_args = 0..=1, default_missing_value = "")]
    pub happened: Option<String>,
    /// It did not happen: send it again.
    #[arg(long)]
    pub retry: bool,
    /// It did not happen, and that is its end: the model is told so, and nothing is sent.
    #[arg(long)]
    pub did_not_happen: bool,
    /// Give it up; the model is told that the outcome is unknown.
    #[arg(long, value_name = "REASON", num_args = 0..=1, default_missing_value = "")]
    pub abandon: Option<String>,
    /// Only if it is still this attempt that is in doubt; the one of this moment when left out.
    #[arg(long, value_name = "NUMBER", requires = "action")]
    pub attempt: Option<u32>,
    #[command(flatten)]
    pub bulk: Bulk,
}

/// NAME=VALUE.
pub fn name_value(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// 500ms, 2s, 1m, 2h, 7d.
pub fn duration(text: &str) -> Result<std::time::Duration, String> {
    let at = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..at].parse().map_err(|_| "write 500ms, 2s, 1m, 2h or 7d")?;
    let unit_ms = match &text[at..] {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return Err("write 500ms, 2s, 1m, 2h or 7d".to_owned()),
    };
    Ok(std::time::Duration::from_millis(number.saturating_mul(unit_ms)))
}
