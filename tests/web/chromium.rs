//! A headless Chromium without a GPU.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::{env, io};

use tempfile::TempDir;

/// These keep the browser from talking to anybody.
const FLAGS: [&str; 11] = [
    "--headless",
    "--no-sandbox",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--disable-dev-shm-usage",
    // WebGL2 without a GPU.
    "--enable-unsafe-swiftshader",
    "--force-device-scale-factor=1",
];

/// What pages get when they ask for a WebGPU adapter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gpu {
    /// SwiftShader.
    Software,
    /// Nothing.
    None,
}

/// Runs until dropped.
pub(crate) struct Chromium {
    child: Child,
    complaints: PathBuf,
    /// Deleted after the browser has gone.
    _profile: TempDir,
}

impl Chromium {
    /// Open a page.
    pub(crate) fn open(address: &str, gpu: Gpu) -> Self {
        Self::start(gpu, &[address], |command| {
            command.stdin(Stdio::null()).stdout(Stdio::null());
        })
    }

    /// Start it with nothing open, listening to the DevTools protocol on its standard input and output.
    pub(crate) fn piped(gpu: Gpu) -> Self {
        let flags = [
            "--remote-debugging-pipe",
            "--window-size=1400,900",
            "about:blank",
        ];
        Self::start(gpu, &flags, |command| {
            command.stdin(Stdio::piped()).stdout(Stdio::piped());
        })
    }

    fn start(gpu: Gpu, more: &[&str], pipes: impl Fn(&mut Command)) -> Self {
        let profile = tempfile::tempdir().expect("there is room for a profile");
        let complaints = profile.path().join("stderr.txt");
        let adapter: &[&str] = match gpu {
            Gpu::Software => &["--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader"],
            Gpu::None => &[],
        };
        let child = names().find_map(|name| {
            let errors = File::create(&complaints).expect("the profile can be written");
            // The protocol's pipes have the numbers 3 and 4.
            let mut command = Command::new("sh");
            command
                .args(["-c", r#"exec "$0" "$@" 3<&0 4>&1"#])
                .arg(&name)
                .args(FLAGS)
                .args(adapter)
                .arg(format!("--user-data-dir={}", profile.path().display()))
                .args(more)
                .stderr(errors);
            pipes(&mut command);
            let found = Command::new("sh")
                .args(["-c", r#"command -v "$0""#, &name])
                .stdout(Stdio::null())
                .status();
            if !found.is_ok_and(|status| status.success()) {
                return None;
            }
            match command.spawn() {
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

    /// Its pipes, once.
    pub(crate) fn pipes(&mut self) -> (std::process::ChildStdin, std::process::ChildStdout) {
        let pipes = self.child.stdin.take().zip(self.child.stdout.take());
        pipes.expect("it was started with pipes")
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
