//! Just enough of an HTTP server for one page: files in memory, and a place to post to.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

/// By path: media type and content.
pub(crate) type Files = BTreeMap<String, (&'static str, Vec<u8>)>;

/// All files of a folder, under a path that ends with `/`; `index.html` is the folder itself, too.
pub(crate) fn folder(files: &mut Files, path: &str, place: &Path) {
    let entries =
        fs::read_dir(place).unwrap_or_else(|error| panic!("{}: {error}", place.display()));
    for entry in entries.filter_map(Result::ok) {
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.path().is_dir() {
            folder(files, &format!("{path}{name}/"), &entry.path());
            continue;
        }
        let content = fs::read(entry.path()).expect("readable");
        let media = match name.rsplit('.').next() {
            Some("html") => "text/html",
            Some("js") => "text/javascript",
            Some("css") => "text/css",
            Some("svg") => "image/svg+xml",
            Some("json") => "application/json",
            // Also WebAssembly: some hosts do not know its type, and the page must load from them.
            _ => "application/octet-stream",
        };
        if name == "index.html" {
            files.insert(path.into(), (media, content.clone()));
        }
        files.insert(format!("{path}{name}"), (media, content));
    }
}

/// What was posted last, by path.
type Mailbox = Arc<(Mutex<BTreeMap<String, String>>, Condvar)>;

/// Serves until the process ends.
pub(crate) struct Server {
    port: u16,
    posted: Mailbox,
}

impl Server {
    /// Serve these files on a free port of this machine.
    pub(crate) fn start(files: Files) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
        let port = listener.local_addr().expect("it is bound").port();
        let posted = Mailbox::default();
        let (files, mailbox) = (Arc::new(files), posted.clone());
        thread::spawn(move || {
            for stream in listener.incoming().filter_map(Result::ok) {
                let (files, mailbox) = (files.clone(), mailbox.clone());
                // A thread each: browsers open connections ahead and leave them idle.
                thread::spawn(move || {
                    if let Some((path, body)) = answer(stream, &files) {
                        mailbox
                            .0
                            .lock()
                            .expect("no holder panics")
                            .insert(path, body);
                        mailbox.1.notify_all();
                    }
                });
            }
        });
        Self { port, posted }
    }

    pub(crate) fn address(&self) -> String {
        format!("http://127.0.0.1:{}/", self.port)
    }

    /// The last thing posted to a path.
    pub(crate) fn last(&self, path: &str) -> Option<String> {
        self.posted
            .0
            .lock()
            .expect("no holder panics")
            .get(path)
            .cloned()
    }

    /// Wait until something is posted to a path.
    pub(crate) fn wait_for(&self, path: &str, patience: Duration) -> Option<String> {
        let (posted, arrived) = &*self.posted;
        let posted = posted.lock().expect("no holder panics");
        let missing = |posted: &mut BTreeMap<String, String>| !posted.contains_key(path);
        let (mut posted, _) = arrived
            .wait_timeout_while(posted, patience, missing)
            .expect("no holder panics");
        posted.remove(path)
    }
}

/// Answer one request; returns what was posted, if it was a post.
fn answer(stream: TcpStream, files: &Files) -> Option<(String, String)> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let (method, rest) = line.split_once(' ')?;
    let (method, path) = (method.to_owned(), rest.split(' ').next()?.to_owned());
    let mut length = 0;
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        let header = header.trim().to_lowercase();
        if header.is_empty() {
            break;
        }
        if let Some(value) = header.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let (status, (media, content)) = match (&*method, files.get(&*path)) {
        ("GET", Some((media, content))) => ("200 OK", (*media, content.as_slice())),
        ("POST", _) => ("200 OK", ("text/plain", [].as_slice())),
        _ => ("404 Not Found", ("text/plain", [].as_slice())),
    };
    let mut stream = reader.into_inner();
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: {media}; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        content.len()
    )
    .ok()?;
    stream.write_all(content).ok()?;
    (method == "POST").then(|| (path, String::from_utf8_lossy(&body).into_owned()))
}
