//! The command that trains one run of a sweep.
//!
//! It has all settings in it and needs no file but the data: any machine with this program can carry it out. Given again,
//! it goes on where it was.

use super::plan::{Planned, Sweep};

/// The arguments of `braid` that train a run, without the program.
#[must_use]
pub fn arguments(sweep: &Sweep, run: &Planned, raise_limits: bool) -> Vec<String> {
    let mut arguments: Vec<String> = ["train", "--continue", "--out"].map(String::from).to_vec();
    arguments.push(run.folder.to_string_lossy().into_owned());
    arguments.extend(["--device".into(), sweep.device.clone()]);
    if raise_limits {
        arguments.push("--raise-limits".into());
    }
    for setting in run.config.settings() {
        arguments.extend(["--set".into(), setting]);
    }
    arguments
}

/// A line for a POSIX shell.
#[must_use]
pub fn line(arguments: &[String]) -> String {
    let words = arguments.iter().map(|word| quoted(word));
    let words: Vec<String> = ["braid".to_owned()].into_iter().chain(words).collect();
    words.join(" ")
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./=,:+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::line;

    #[test]
    fn a_shell_reads_the_words_again() {
        let words = ["--set", "a=b c", "it's", ""].map(String::from);
        assert_eq!(line(&words), r"braid --set 'a=b c' 'it'\''s' ''");
    }
}
