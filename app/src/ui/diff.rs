//! What tells configurations apart: the keys that differ, and short names made of them.

/// Key and value, TOML, in the order of the file; nested tables have keys with dots.
pub(super) type Values = Vec<(String, String)>;

/// All keys of a TOML text; what cannot be read has none.
#[must_use]
pub(super) fn values(toml: &str) -> Values {
    fn walk(prefix: &str, table: &toml::Table, out: &mut Values) {
        for (key, value) in table {
            let key = if prefix.is_empty() {
                key.clone()
            } else {
                format!("{prefix}.{key}")
            };
            match value {
                toml::Value::Table(table) => walk(&key, table, out),
                other => out.push((key, other.to_string())),
            }
        }
    }
    let mut out = Vec::new();
    if let Ok(table) = toml.parse::<toml::Table>() {
        walk("", &table, &mut out);
    }
    out
}

/// Keys that change what is recorded, or how it is computed, but not what is learned: not worth a place in a name.
const ASIDE: [&str; 4] = [
    "train.eval_every",
    "train.eval_batches",
    "train.save_every",
    "train.checkpoint",
];

/// A key that is not the same in all runs, and its value in each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Difference {
    /// The key.
    pub(super) key: String,
    /// Per run; `None`: the run does not have this key.
    pub(super) values: Vec<Option<String>>,
}

impl Difference {
    /// Whether two runs that both have the key differ in it.
    fn decides(&self) -> bool {
        let mut present = self.values.iter().flatten();
        let first = present.next();
        present.any(|value| Some(value) != first)
    }
}

/// The keys that differ, in the order of the first run that has them; the mechanism first, and last what only some runs have.
#[must_use]
pub(super) fn differences(runs: &[Values]) -> Vec<Difference> {
    let mut keys: Vec<&str> = Vec::new();
    for (key, _) in runs.iter().flatten() {
        if !keys.contains(&key.as_str()) {
            keys.push(key);
        }
    }
    keys.sort_by_key(|key| !key.starts_with("residual."));
    keys.sort_by_key(|key| *key != "residual.kind");
    let value = |run: &Values, key: &str| {
        let found = run.iter().find(|(own, _)| own == key);
        found.map(|(_, value)| value.trim_matches('"').to_owned())
    };
    let all = keys.into_iter().map(|key| Difference {
        key: key.to_owned(),
        values: runs.iter().map(|run| value(run, key)).collect(),
    });
    let differs = |d: &Difference| d.values.iter().any(|value| *value != d.values[0]);
    let mut found: Vec<Difference> = all.filter(differs).collect();
    found.sort_by_key(|difference| !difference.decides());
    found
}

/// Short names: the mechanism if it differs, and what else differs between runs that have it. Runs with equal
/// configurations are told apart by `fallback`.
#[must_use]
pub(super) fn names(runs: &[Values], fallback: &[String]) -> Vec<String> {
    let differences = differences(runs);
    let named = differences
        .iter()
        .filter(|d| d.decides() && !ASIDE.contains(&d.key.as_str()));
    let name = |run: usize| {
        let parts = named.clone().filter_map(|d| {
            let value = d.values[run].as_ref()?;
            let last = d.key.rsplit('.').next().unwrap_or(&d.key);
            Some(match d.key.as_str() {
                "residual.kind" | "data.task" => value.clone(),
                _ => format!("{} {value}", last.replace('_', " ")),
            })
        });
        parts.take(3).collect::<Vec<_>>().join(", ")
    };
    let short: Vec<String> = (0..runs.len()).map(name).collect();
    let unique = |index: usize| {
        let same = short.iter().filter(|name| **name == short[index]);
        !short[index].is_empty() && same.count() == 1
    };
    let full = |index: usize| match (unique(index), short[index].is_empty()) {
        (true, _) => short[index].clone(),
        (false, true) => fallback[index].clone(),
        (false, false) => format!("{} ({})", short[index], fallback[index]),
    };
    (0..runs.len()).map(full).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(texts: &[&str]) -> Vec<Values> {
        texts.iter().map(|text| values(text)).collect()
    }

    fn folders(count: usize) -> Vec<String> {
        (0..count).map(|index| format!("folder-{index}")).collect()
    }

    #[test]
    fn only_what_differs_is_listed() {
        let runs = runs(&[
            "[model]\nlayers = 4\n[residual]\nkind = \"standard\"\n[train]\nlr = 0.001",
            "[model]\nlayers = 4\n[residual]\nkind = \"dar\"\nlayers_per_block = 2\n[train]\nlr = 0.001",
        ]);
        let found = differences(&runs);
        let keys: Vec<&str> = found.iter().map(|d| d.key.as_str()).collect();
        assert_eq!(keys, ["residual.kind", "residual.layers_per_block"]);
        assert_eq!(found[1].values, [None, Some("2".to_owned())]);
        assert_eq!(names(&runs, &folders(2)), ["standard", "dar"]);
    }

    #[test]
    fn names_say_what_differs_and_equal_runs_their_folders() {
        let a = "[residual]\nkind = \"dar\"\nlayers_per_block = 2\n[train]\nseed = 1";
        let b = "[residual]\nkind = \"dar\"\nlayers_per_block = 3\n[train]\nseed = 1";
        let c = "[residual]\nkind = \"standard\"\n[train]\nseed = 1";
        let d = "[residual]\nkind = \"standard\"\n[train]\nseed = 2";
        let found = names(&runs(&[a, b, c, d]), &folders(4));
        assert_eq!(found[0], "dar, layers per block 2, seed 1");
        assert_eq!(found[1], "dar, layers per block 3, seed 1");
        assert_eq!(found[3], "standard, seed 2");
        assert_eq!(names(&runs(&[c, c]), &folders(2)), ["folder-0", "folder-1"]);
        assert_eq!(
            names(&runs(&[a, c, c]), &folders(3)),
            ["dar", "standard (folder-1)", "standard (folder-2)"]
        );
        assert!(differences(&runs(&["not toml [", "also not"])).is_empty());
    }
}
