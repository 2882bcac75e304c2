//! A page in Chromium, driven through the DevTools protocol: JSON messages that end with a zero byte.

use std::io::{BufRead, BufReader, Write};
use std::process::ChildStdin;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::chromium::{Chromium, Gpu};

/// A call takes milliseconds, on a busy machine seconds.
const PATIENCE: Duration = Duration::from_secs(120);

/// A browser with one page, and what it has said.
pub(crate) struct Tab {
    browser: Chromium,
    to: ChildStdin,
    from: Receiver<Value>,
    last: u64,
    session: String,
    /// Sessions of workers of the page.
    pub(crate) workers: Vec<String>,
    /// Errors on the console and elsewhere, from the page and its workers.
    pub(crate) errors: Vec<String>,
    /// Addresses that were asked for.
    pub(crate) requests: Vec<String>,
    /// To be evaluated in every worker before its own code.
    in_workers: Option<String>,
}

impl Tab {
    /// Start a browser with an empty page. `first` is evaluated in the page before its own code, `in_workers` in workers.
    pub(crate) fn open(gpu: Gpu, first: &str, in_workers: Option<&str>) -> Self {
        let mut browser = Chromium::piped(gpu);
        let (to, from) = browser.pipes();
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || {
            let mut from = BufReader::new(from);
            let mut message = Vec::new();
            while from.read_until(0, &mut message).is_ok_and(|n| n > 0) {
                message.pop();
                let Ok(value) = serde_json::from_slice(&message) else {
                    break;
                };
                if sender.send(value).is_err() {
                    break;
                }
                message.clear();
            }
        });
        let mut tab = Self {
            browser,
            to,
            from: receiver,
            last: 0,
            session: String::new(),
            workers: Vec::new(),
            errors: Vec::new(),
            requests: Vec::new(),
            in_workers: in_workers.map(str::to_owned),
        };
        let targets = tab.command(None, "Target.getTargets", json!({}));
        let page = targets["targetInfos"]
            .as_array()
            .and_then(|all| all.iter().find(|target| target["type"] == "page"))
            .expect("a page is open");
        let attach = json!({ "targetId": page["targetId"], "flatten": true });
        let attached = tab.command(None, "Target.attachToTarget", attach);
        tab.session = attached["sessionId"].as_str().unwrap_or_default().into();
        for method in [
            "Page.enable",
            "Runtime.enable",
            "Log.enable",
            "Network.enable",
        ] {
            tab.call(method, json!({}));
        }
        let attach = json!({ "autoAttach": true, "waitForDebuggerOnStart": true, "flatten": true });
        tab.call("Target.setAutoAttach", attach);
        let script = json!({ "source": first });
        tab.call("Page.addScriptToEvaluateOnNewDocument", script);
        tab
    }

    fn write(&mut self, session: Option<&str>, method: &str, params: Value) -> u64 {
        self.last += 1;
        let mut message = json!({ "id": self.last, "method": method, "params": params });
        if let Some(session) = session {
            message["sessionId"] = session.into();
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        if let Err(error) = self.to.write_all(&bytes) {
            panic!("{method}: {error}\n{}", self.browser.complaints());
        }
        self.last
    }

    fn command(&mut self, session: Option<&str>, method: &str, params: Value) -> Value {
        let id = self.write(session, method, params);
        let until = Instant::now() + PATIENCE;
        loop {
            let Some(message) = self.receive(until) else {
                panic!("no answer to {method}\n{}", self.browser.complaints());
            };
            if message["id"] == id {
                assert!(message["error"].is_null(), "{method}: {}", message["error"]);
                return message["result"].clone();
            }
        }
    }

    /// Call a method of the page.
    pub(crate) fn call(&mut self, method: &str, params: Value) -> Value {
        let session = self.session.clone();
        self.command(Some(&session), method, params)
    }

    /// The next message; events are taken note of.
    fn receive(&mut self, until: Instant) -> Option<Value> {
        let left = until.saturating_duration_since(Instant::now());
        let message = match self.from.recv_timeout(left) {
            Ok(message) => message,
            Err(RecvTimeoutError::Timeout) => return None,
            Err(RecvTimeoutError::Disconnected) => {
                panic!("Chromium has ended\n{}", self.browser.complaints())
            }
        };
        self.note(&message);
        Some(message)
    }

    fn note(&mut self, message: &Value) {
        let params = &message["params"];
        match message["method"].as_str() {
            Some("Target.attachedToTarget") if params["targetInfo"]["type"] == "worker" => {
                let session = params["sessionId"].as_str().unwrap_or_default().to_owned();
                // Not `command`: answers to what is under way must not get lost.
                for method in ["Runtime.enable", "Network.enable"] {
                    self.write(Some(&session), method, json!({}));
                }
                if let Some(script) = self.in_workers.clone() {
                    let script = json!({ "expression": script });
                    self.write(Some(&session), "Runtime.evaluate", script);
                }
                let go = "Runtime.runIfWaitingForDebugger";
                self.write(Some(&session), go, json!({}));
                self.workers.push(session);
            }
            Some("Target.attachedToTarget") => {
                let session = params["sessionId"].as_str().unwrap_or_default().to_owned();
                let go = "Runtime.runIfWaitingForDebugger";
                self.write(Some(&session), go, json!({}));
            }
            Some("Runtime.consoleAPICalled") if params["type"] == "error" => {
                self.errors.push(params["args"].to_string());
            }
            Some("Runtime.exceptionThrown") => {
                self.errors.push(params["exceptionDetails"].to_string())
            }
            Some("Log.entryAdded") if params["entry"]["level"] == "error" => {
                self.errors.push(params["entry"].to_string());
            }
            Some("Network.requestWillBeSent") => {
                let address = params["request"]["url"].as_str().unwrap_or_default();
                self.requests.push(address.into());
            }
            _ => {}
        }
    }

    /// Go to an address.
    pub(crate) fn go(&mut self, address: &str) {
        self.call("Page.navigate", json!({ "url": address }));
    }

    /// Evaluate in the page; promises are waited for.
    pub(crate) fn eval(&mut self, script: &str) -> Value {
        let session = self.session.clone();
        self.eval_in(&session, script)
    }

    /// Evaluate in a worker.
    pub(crate) fn eval_in(&mut self, session: &str, script: &str) -> Value {
        let params = json!({ "expression": script, "awaitPromise": true, "returnByValue": true });
        let result = self.command(Some(session), "Runtime.evaluate", params);
        let wrong = &result["exceptionDetails"];
        assert!(wrong.is_null(), "{script}: {wrong}");
        result["result"]["value"].clone()
    }

    /// Bytes that JavaScript's objects take, of the page or a worker, without what is only not collected yet.
    pub(crate) fn heap(&mut self, worker: Option<&str>) -> f64 {
        let session = worker.map_or_else(|| self.session.clone(), str::to_owned);
        for method in ["HeapProfiler.enable", "HeapProfiler.collectGarbage"] {
            self.command(Some(&session), method, json!({}));
        }
        let usage = self.command(Some(&session), "Runtime.getHeapUsage", json!({}));
        usage["usedSize"].as_f64().unwrap_or(f64::NAN)
    }

    /// Press the space bar or the enter key.
    pub(crate) fn press(&mut self, key: &str, code: &str, text: &str) {
        for kind in ["keyDown", "keyUp"] {
            // Without a number, the window takes it for a key of a keyboard on the screen.
            let number = if key == "Enter" { 13 } else { 32 };
            let event = json!({
                "type": kind, "key": key, "code": code, "text": text, "windowsVirtualKeyCode": number,
            });
            self.call("Input.dispatchKeyEvent", event);
        }
    }

    /// Put another tab in front.
    pub(crate) fn hide(&mut self) {
        let other = self.command(None, "Target.createTarget", json!({ "url": "about:blank" }));
        let other = json!({ "targetId": other["targetId"] });
        self.command(None, "Target.activateTarget", other);
    }

    /// How many bytes the pages of an origin may keep.
    pub(crate) fn quota(&mut self, origin: &str, bytes: u64) {
        let quota = json!({ "origin": origin, "quotaSize": bytes });
        self.call("Storage.overrideQuotaForOrigin", quota);
    }

    /// The newest worker of the page.
    pub(crate) fn worker(&self) -> String {
        self.workers.last().cloned().unwrap_or_default()
    }

    /// Cut the network off.
    pub(crate) fn offline(&mut self) {
        let off = json!({
            "offline": true, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1,
        });
        self.call("Network.emulateNetworkConditions", off);
    }
}
