//! Trainings in processes of their own, a few at a time.
//!
//! A process holds the other end of its standard input. When this process ends, however it ends, that end closes, and the
//! training saves and stops: nothing goes on unseen, and the next sweep finds the folder free.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use braid_engine::Result;

use crate::run_dir::{RunDir, failed};

/// How often processes are looked at.
const TICK: Duration = Duration::from_millis(20);
/// How long a run is waited for that another process writes. One that has lost its sweep saves and ends within a step.
const PATIENCE: Duration = Duration::from_secs(5);

/// A training.
#[derive(Clone, Debug)]
pub struct Job {
    /// What to call it.
    pub label: String,
    /// Its folder.
    pub folder: PathBuf,
    /// Arguments of the program.
    pub arguments: Vec<String>,
    /// What it says goes here.
    pub log: PathBuf,
}

/// What became of a training.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// All updates are done, or it diverged.
    Trained,
    /// It was stopped, and saved.
    Stopped,
    /// Another process is at it.
    Elsewhere,
    /// The sentence that it ended with.
    Failed(String),
}

/// What the caller hears of.
#[derive(Clone, Debug)]
pub enum Event<'a> {
    /// A process was started.
    Began(&'a Job),
    /// It ended after so many seconds.
    Ended(&'a Job, End, f64),
}

/// Exit codes of a training that say more than that it failed.
const DIVERGED: i32 = 4;
const INTERRUPTED: i32 = 130;

struct Running<'a> {
    job: &'a Job,
    child: Child,
    began: Instant,
}

/// The processor's threads for each of several processes; one that is set in the environment is left alone.
fn threads(at_once: usize) -> Option<String> {
    const NAME: &str = "RAYON_NUM_THREADS";
    let all = std::thread::available_parallelism().map_or(1, usize::from);
    let unset = std::env::var_os(NAME).is_none();
    (at_once > 1 && unset).then(|| (all / at_once).max(1).to_string())
}

fn start(program: &Path, job: &Job, at_once: usize) -> Result<Child> {
    if let Some(parent) = job.log.parent() {
        fs::create_dir_all(parent).map_err(|error| failed("written", parent, &error))?;
    }
    let log = File::create(&job.log).map_err(|error| failed("written", &job.log, &error))?;
    let mut command = Command::new(program);
    command
        .args(&job.arguments)
        .args(["--json", "--stop-with-input"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(log);
    if let Some(threads) = threads(at_once) {
        command.env("RAYON_NUM_THREADS", threads);
    }
    command
        .spawn()
        .map_err(|error| failed("started", program, &error))
}

/// The last sentence in a log.
fn last_sentence(log: &Path) -> String {
    let text = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    match text.rfind("error: ") {
        Some(place) => text[place + "error: ".len()..].trim().to_owned(),
        None => text.lines().last().unwrap_or_default().trim().to_owned(),
    }
}

fn end_of(job: &Job, child: &mut Child) -> io::Result<Option<End>> {
    let Some(status) = child.try_wait()? else {
        return Ok(None);
    };
    Ok(Some(match status.code() {
        Some(0 | DIVERGED) => End::Trained,
        Some(INTERRUPTED) => End::Stopped,
        code => {
            let said = last_sentence(&job.log);
            let how = code.map_or_else(
                || "was killed".into(),
                |code| format!("ended with code {code}"),
            );
            let said = if said.is_empty() {
                "it said nothing".into()
            } else {
                said
            };
            End::Failed(format!(
                "its process {how}: {said} (log: {})",
                job.log.display()
            ))
        }
    }))
}

/// Whether another process writes the run, after a while of waiting.
fn is_taken(job: &Job, stop: &AtomicBool) -> bool {
    let began = Instant::now();
    loop {
        let taken = RunDir::open(&job.folder).is_ok_and(|run| run.is_being_written());
        if !taken || began.elapsed() > PATIENCE || stop.load(Ordering::SeqCst) {
            return taken;
        }
        sleep(TICK);
    }
}

/// Carry out all jobs with `program`, `at_once` of them side by side. When `stop` is set no more are started, and those that
/// run are asked to save and end.
///
/// # Errors
/// If a process cannot be started. Those that run then are stopped first. A training that fails is no error: see [`End`].
pub fn carry_out(
    program: &Path,
    jobs: &[Job],
    at_once: usize,
    stop: &AtomicBool,
    hear: &mut dyn FnMut(&Event<'_>),
) -> Result<()> {
    let mut waiting = jobs.iter();
    let mut running: Vec<Running<'_>> = Vec::new();
    let mut outcome = Ok(());
    loop {
        let stopping = stop.load(Ordering::SeqCst) || outcome.is_err();
        while !stopping && running.len() < at_once.max(1) {
            let Some(job) = waiting.next() else {
                break;
            };
            if is_taken(job, stop) {
                hear(&Event::Ended(job, End::Elsewhere, 0.0));
                continue;
            }
            if stop.load(Ordering::SeqCst) {
                break;
            }
            match start(program, job, at_once) {
                Ok(child) => {
                    hear(&Event::Began(job));
                    let began = Instant::now();
                    running.push(Running { job, child, began });
                }
                Err(error) => {
                    outcome = Err(error);
                    break;
                }
            }
        }
        if running.is_empty() {
            return outcome;
        }
        if stopping {
            // The end of its input asks it to save.
            running
                .iter_mut()
                .for_each(|one| drop(one.child.stdin.take()));
        }
        let mut left = Vec::new();
        for mut one in running {
            match end_of(one.job, &mut one.child) {
                Ok(None) => left.push(one),
                Ok(Some(end)) => {
                    hear(&Event::Ended(
                        one.job,
                        end,
                        one.began.elapsed().as_secs_f64(),
                    ));
                }
                Err(error) => {
                    let end = End::Failed(format!("its process cannot be watched: {error}"));
                    hear(&Event::Ended(
                        one.job,
                        end,
                        one.began.elapsed().as_secs_f64(),
                    ));
                }
            }
        }
        running = left;
        if !running.is_empty() {
            sleep(TICK);
        }
    }
}
