//! A headless Chromium with WebGPU and no GPU.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::{env, io};

use tempfile::TempDir;

/// These give a WebGPU adapter (SwiftShader) without a GPU, and keep the browser from talking to anybody.
const FLAGS: [&str; 12] = [
    "--headless",
    "--no-sandbox",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--disable-dev-shm-usage",
    "--enable-unsafe-webgpu",
    "--enable-unsafe-swiftshader",
    "--use-webgpu-adapter=swiftshader",
];

/// Runs until dropped.
pub(crate) struct Chromium {
    child: Child,
    complaints: PathBuf,
    /// Deleted after the browser has gone.
    _profile: TempDir,
}

impl Chromium {
    /// Open a page.
    pub(crate) fn open(address: &str) -> Self {
        let profile = tempfile::tempdir().expect("there is room for a profile");
        let complaints = profile.path().join("stderr.txt");
        let child = names().find_map(|name| {
            let errors = File::create(&complaints).expect("the profile can be written");
            let started = Command::new(&name)
                .args(FLAGS)
                .arg(format!("--user-data-dir={}", profile.path().display()))
                .arg(address)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(errors)
                .spawn();
            match started {
                Ok(child) => Some(child),
                Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                Err(error) => panic!("{name} does not start: {error}"),
            }
        });
        let Some(child) = child else {
            panic!(
                "no Chromium found (also set CHROMIUM to its path). On Debian: apt-get install chromium"
            );
        };
        Self {
            child,
            complaints,
            _profile: profile,
        }
    }

    /// What it wrote to its error output, the end of it.
    pub(crate) fn complaints(&mut self) -> String {
        let text = fs::read(&self.complaints).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        let ended = match self.child.try_wait() {
            Ok(Some(status)) => format!("Chromium has ended: {status}\n"),
            _ => String::new(),
        };
        ended + &lines[lines.len().saturating_sub(20)..].join("\n")
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Where it may be.
fn names() -> impl Iterator<Item = String> {
    let usual = [
        "chromium",
        "chromium-browser",
        "google-chrome",
        "google-chrome-stable",
    ];
    env::var("CHROMIUM")
        .into_iter()
        .chain(usual.map(str::to_owned))
}
