//! Just enough of an HTTP server for one page: fixed files, and a place to post to.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

/// By path: media type and content.
type Files = BTreeMap<&'static str, (&'static str, String)>;

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
        ("GET", Some((media, content))) => ("200 OK", (*media, &**content)),
        ("POST", _) => ("200 OK", ("text/plain", "")),
        _ => ("404 Not Found", ("text/plain", "")),
    };
    let mut stream = reader.into_inner();
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: {media}; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{content}",
        content.len()
    )
    .ok()?;
    (method == "POST").then(|| (path, String::from_utf8_lossy(&body).into_owned()))
}
