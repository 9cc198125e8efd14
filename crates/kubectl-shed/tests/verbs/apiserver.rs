//! A mock of the apiserver: answers by method and path, and a record of what was asked.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};

/// A request with its query.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    pub method: String,
    pub path: String,
    pub query: String,
    pub body: Value,
}

impl Request {
    fn key(&self) -> String {
        format!("{} {}", self.method, self.path)
    }
}

type Answers = BTreeMap<String, (u16, Vec<String>)>;

/// The mock. What is not known is 404.
pub struct Apiserver {
    address: String,
    kubeconfig: PathBuf,
    answers: Arc<Mutex<Answers>>,
    seen: Arc<Mutex<Vec<Request>>>,
}

impl Apiserver {
    pub fn new(name: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
        let mock = Self {
            kubeconfig: folder.join(format!("kubeconfig-{name}")),
            address,
            answers: Arc::default(),
            seen: Arc::default(),
        };
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "mock",
            "clusters": [{"name": "mock", "cluster": {"server": format!("http://{}", mock.address)}}],
            "users": [{"name": "mock", "user": {}}],
            "contexts": [{"name": "mock", "context": {"cluster": "mock", "user": "mock", "namespace": "team"}}],
        });
        std::fs::write(&mock.kubeconfig, config.to_string()).unwrap();
        let (answers, seen) = (Arc::clone(&mock.answers), Arc::clone(&mock.seen));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (answers, seen) = (Arc::clone(&answers), Arc::clone(&seen));
                thread::spawn(move || serve(stream, &answers, &seen));
            }
        });
        mock
    }

    /// Answers with this object.
    pub fn on(&self, request: &str, answer: Value) -> &Self {
        self.answer(request, 200, vec![answer.to_string()])
    }

    /// Answers with these in turn, and with the last one from then on.
    pub fn in_turn(&self, request: &str, answers: Vec<Value>) -> &Self {
        let texts = answers.iter().map(Value::to_string);
        self.answer(request, 200, texts.collect())
    }

    pub fn text(&self, request: &str, text: &str) -> &Self {
        self.answer(request, 200, vec![text.to_owned()])
    }

    /// Answers as the apiserver does to a user without rights.
    pub fn forbids(&self, request: &str) -> &Self {
        let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden",
            "message": "forbidden", "code": 403});
        self.answer(request, 403, vec![status.to_string()])
    }

    fn answer(&self, request: &str, code: u16, mut texts: Vec<String>) -> &Self {
        texts.reverse();
        self.answers
            .lock()
            .unwrap()
            .insert(request.to_owned(), (code, texts));
        self
    }

    /// Runs the program against the mock.
    pub fn run(&self, arguments: &[&str]) -> super::Ran {
        let mut all = vec!["--kubeconfig", self.kubeconfig.to_str().unwrap()];
        all.extend(arguments);
        super::run(&all)
    }

    /// The requests that were not reads.
    pub fn writes(&self) -> Vec<Request> {
        let seen = self.seen.lock().unwrap();
        seen.iter()
            .filter(|request| request.method != "GET")
            .cloned()
            .collect()
    }

    pub fn seen(&self) -> Vec<Request> {
        self.seen.lock().unwrap().clone()
    }
}

/// Serves one connection until its end.
fn serve(stream: TcpStream, answers: &Mutex<Answers>, seen: &Mutex<Vec<Request>>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut writer = stream;
    while let Some(request) = read(&mut reader) {
        let key = request.key();
        seen.lock().unwrap().push(request);
        let mut answers = answers.lock().unwrap();
        let (code, text) = match answers.get_mut(&key) {
            Some((code, texts)) if texts.len() > 1 => (*code, texts.pop().unwrap()),
            Some((code, texts)) => (*code, texts[0].clone()),
            None => (404, json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound",
                "message": format!("{key} not found"), "details": {"name": "x"}, "code": 404}).to_string()),
        };
        let head = format!(
            "HTTP/1.1 {code} X\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            text.len()
        );
        if writer.write_all((head + &text).as_bytes()).is_err() {
            return;
        }
    }
}

fn read(reader: &mut BufReader<TcpStream>) -> Option<Request> {
    let mut line = String::new();
    reader
        .read_line(&mut line)
        .ok()
        .filter(|length| *length > 0)?;
    let mut parts = line.split(' ');
    let (method, target) = (parts.next()?.to_owned(), parts.next()?.to_owned());
    let mut length = 0;
    loop {
        let mut header = String::new();
        reader
            .read_line(&mut header)
            .ok()
            .filter(|length| *length > 0)?;
        if header.trim().is_empty() {
            break;
        }
        let (name, value) = header.split_once(':')?;
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    Some(Request {
        method,
        path: path.to_owned(),
        query: query.to_owned(),
        body: serde_json::from_slice(&body).unwrap_or_default(),
    })
}
