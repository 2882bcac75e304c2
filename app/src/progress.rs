//! How a training looks while it runs: a bar on a terminal, plain lines elsewhere.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::records::Record;
use crate::report::grouped;

/// Plain lines come at least this often.
const INTERVAL: Duration = Duration::from_secs(10);

/// Shows records.
#[derive(Debug)]
pub struct Progress {
    bar: Option<ProgressBar>,
    printed: Option<Instant>,
    loss: f64,
    tokens_per_s: f64,
    val_loss: Option<f64>,
}

impl Progress {
    /// A bar from `from` to `until` updates if `bar`, else lines.
    #[must_use]
    pub fn new(from: u64, until: u64, bar: bool) -> Self {
        let bar = bar.then(|| {
            let bar =
                ProgressBar::with_draw_target(Some(until), ProgressDrawTarget::stderr_with_hz(10));
            let template = "step {human_pos}/{human_len} {bar:24} {msg}  {eta} left";
            if let Ok(style) = ProgressStyle::with_template(template) {
                bar.set_style(style.progress_chars("█▉▊▋▌▍▎▏ "));
            }
            bar.set_position(from);
            bar.reset_eta();
            bar
        });
        Self {
            bar,
            printed: None,
            loss: f64::NAN,
            tokens_per_s: 0.0,
            val_loss: None,
        }
    }

    /// Take in records; returns the lines to print.
    pub fn show(&mut self, records: &[Record]) -> Vec<String> {
        let mut lines = Vec::new();
        for record in records {
            match record {
                Record::Train {
                    step,
                    loss,
                    lr,
                    tokens_per_s,
                    ..
                } => {
                    (self.loss, self.tokens_per_s) = (*loss, *tokens_per_s);
                    let due = self.printed.is_none_or(|at| at.elapsed() >= INTERVAL);
                    if let Some(bar) = &self.bar {
                        bar.set_position(*step);
                    } else if due {
                        self.printed = Some(Instant::now());
                        let rate = rate(*tokens_per_s);
                        lines.push(format!(
                            "{}loss {loss:.4}   lr {lr:.1e}   {rate}",
                            head(*step)
                        ));
                    }
                }
                Record::Eval {
                    step,
                    val_loss,
                    accuracy,
                    ..
                } => {
                    // It says what the line of the step itself says, and more.
                    lines.pop_if(|line: &mut String| line.starts_with(&head(*step)));
                    self.val_loss = Some(*val_loss);
                    self.printed = Some(Instant::now());
                    let right = accuracy.map_or_else(String::new, |share| {
                        format!("   answers right {:.1} %", 100.0 * share)
                    });
                    let (loss, rate) = (self.loss, rate(self.tokens_per_s));
                    lines.push(format!(
                        "{}loss {loss:.4}   val loss {val_loss:.4}{right}   {rate}",
                        head(*step)
                    ));
                }
                _ => {}
            }
        }
        if let Some(bar) = &self.bar {
            let val = self
                .val_loss
                .map_or_else(String::new, |loss| format!("  val {loss:.4}"));
            bar.set_message(format!(
                "loss {:.4}{val}  {}",
                self.loss,
                rate(self.tokens_per_s)
            ));
        }
        lines
    }

    /// Print something without disturbing the bar.
    pub fn suspend(&self, print: impl FnOnce()) {
        match &self.bar {
            Some(bar) => bar.suspend(print),
            None => print(),
        }
    }

    /// Take the bar away.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// A bar while a tokenizer learns, where that takes a while.
#[derive(Debug)]
pub struct Learning {
    began: Instant,
    bar: Option<ProgressBar>,
}

impl Default for Learning {
    fn default() -> Self {
        Self::new()
    }
}

impl Learning {
    /// No bar yet.
    #[must_use]
    pub fn new() -> Self {
        Self {
            began: Instant::now(),
            bar: None,
        }
    }

    /// So many merges are learnt.
    pub fn show(&mut self, merges: usize, of: usize) {
        if self.bar.is_none() && self.began.elapsed() > Duration::from_millis(500) {
            let target = ProgressDrawTarget::stderr_with_hz(10);
            let bar = ProgressBar::with_draw_target(Some(of as u64), target);
            if let Ok(style) =
                ProgressStyle::with_template("learning tokens {human_pos}/{human_len} {bar:24}")
            {
                bar.set_style(style.progress_chars("█▉▊▋▌▍▎▏ "));
            }
            self.bar = Some(bar);
        }
        if let Some(bar) = &self.bar {
            bar.set_position(merges as u64);
        }
    }

    /// Take the bar away.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// How the lines of a step begin.
fn head(step: u64) -> String {
    format!("step {step:>6}   ")
}

/// `41,280 tok/s`
fn rate(tokens_per_s: f64) -> String {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rate is not negative"
    )]
    let whole = tokens_per_s.max(0.0) as u64;
    format!("{} tok/s", grouped(whole))
}
