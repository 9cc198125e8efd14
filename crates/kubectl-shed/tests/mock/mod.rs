//! A small apiserver: it answers by a function, and can forward a port to a leader's listener.
#![allow(dead_code, reason = "each test program uses a part")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tungstenite::Message;
use tungstenite::handshake::server;

/// The time of its clock.
pub const DATE: &str = "Thu, 31 Jan 2030 07:40:00 GMT";

/// A request to it.
#[derive(Debug, Clone)]
pub struct Asked {
    pub method: String,
    /// Without the query.
    pub path: String,
    pub query: String,
    /// Null unless it is JSON.
    pub body: Value,
}

/// A listener of the leader: from a path to a status and a body.
pub type Listener = dyn Fn(&str) -> (u16, Value);

/// Its answer.
pub enum Answer {
    Json(u16, Value),
    Text(&'static str),
    /// Forwards the port; the listener answers by this function of the path.
    Forward(Box<Listener>),
    /// Forwards the port, on which nothing listens.
    ForwardRefused,
}

/// An error as the apiserver writes it.
pub fn refusal(code: u16, reason: &str, message: &str) -> Answer {
    // The apiserver names the object of a `NotFound`.
    let details = json!({"name": "x", "kind": "x"});
    let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": code,
        "reason": reason, "message": message, "details": details});
    Answer::Json(code, status)
}

pub fn not_found() -> Answer {
    refusal(404, "NotFound", "not found")
}

pub fn forbidden(message: &str) -> Answer {
    refusal(403, "Forbidden", message)
}

/// A folder with a kubeconfig for this address.
fn kubeconfig(name: &str, address: SocketAddr) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).unwrap();
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "test",
        "clusters": [{"name": "test", "cluster": {"server": format!("http://{address}")}}],
        "users": [{"name": "test", "user": {"token": "t"}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test", "namespace": "team-a"}}],
    });
    std::fs::write(folder.join("config"), config.to_string()).unwrap();
    folder
}

/// The apiserver, and a kubeconfig for it.
pub struct Apiserver {
    folder: PathBuf,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Apiserver {
    pub fn start(name: &str, answer: impl Fn(&Asked) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let folder = kubeconfig(name, address);
        let (asked, answer) = (Arc::new(Mutex::new(Vec::new())), Arc::new(answer));
        let log = Arc::clone(&asked);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (answer, log) = (Arc::clone(&answer), Arc::clone(&log));
                // A client that goes away ends only its own thread.
                std::thread::spawn(move || serve(stream, &*answer, &log));
            }
        });
        Self { folder, asked }
    }

    /// A kubeconfig for an address at which nothing listens.
    pub fn gone(name: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let folder = kubeconfig(name, listener.local_addr().unwrap());
        Self {
            folder,
            asked: Arc::default(),
        }
    }

    /// Every request so far.
    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    /// The program with these arguments, connected to this apiserver.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kubectl-shed"));
        command.env("KUBECONFIG", self.folder.join("config"));
        for name in ["SHED_NAMESPACE", "SHED_LEASE_NAME", "NO_COLOR"] {
            command.env_remove(name);
        }
        command.args(arguments);
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Standard output of a run that succeeds.
    #[track_caller]
    pub fn succeeds(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{errors}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Standard error of a run that fails.
    #[track_caller]
    pub fn fails(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(!output.status.success());
        assert!(output.stdout.is_empty());
        String::from_utf8(output.stderr).unwrap()
    }
}

/// The head of a request, without taking it from the stream.
fn peek(stream: &TcpStream) -> Option<String> {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let length = stream.peek(&mut buffer).ok()?;
        let text = String::from_utf8_lossy(&buffer[..length]).into_owned();
        if length == 0 || text.contains("\r\n\r\n") {
            return (length > 0).then_some(text);
        }
        std::thread::yield_now();
    }
}

fn serve(mut stream: TcpStream, answer: &dyn Fn(&Asked) -> Answer, log: &Mutex<Vec<Asked>>) {
    let Some(head) = peek(&stream) else { return };
    let mut words = head.split_whitespace();
    let (method, target) = (words.next().unwrap(), words.next().unwrap());
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    // A port-forward reads the request itself.
    let is_upgrade = head.to_ascii_lowercase().contains("upgrade: websocket");
    let body = match is_upgrade {
        true => Value::Null,
        false => take_request(&mut stream, &head),
    };
    let asked = Asked {
        method: method.to_owned(),
        path: path.to_owned(),
        query: query.to_owned(),
        body,
    };
    log.lock().unwrap().push(asked.clone());
    let answer = answer(&asked);
    if is_upgrade && matches!(answer, Answer::Json(..)) {
        take_request(&mut stream, &head);
    }
    match answer {
        Answer::Json(code, body) => drop(write(&mut stream, code, &body.to_string())),
        Answer::Text(body) => drop(write(&mut stream, 200, body)),
        Answer::Forward(listener) => forward(stream, Some(&*listener)),
        Answer::ForwardRefused => forward(stream, None),
    }
}

/// Reads a request to its end, and returns its body.
fn take_request(stream: &mut TcpStream, head: &str) -> Value {
    let end = head.find("\r\n\r\n").unwrap() + 4;
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length")
            .then(|| value.trim().parse::<usize>().unwrap())
    });
    let mut request = vec![0; end + length.unwrap_or(0)];
    stream.read_exact(&mut request).unwrap();
    serde_json::from_slice(&request[end..]).unwrap_or_default()
}

fn write(to: &mut impl Write, code: u16, body: &str) -> std::io::Result<()> {
    write!(
        to,
        "HTTP/1.1 {code} x\r\ndate: {DATE}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: \
         close\r\n\r\n{body}",
        body.len()
    )
}

/// A port-forward as the kubelet serves it: channel 0 has the data, channel 1 the error.
fn forward(stream: TcpStream, listener: Option<&Listener>) {
    #[allow(clippy::result_large_err, reason = "the signature is tungstenite's")]
    let accept = |_: &server::Request, mut response: server::Response| {
        let protocol = "v4.channel.k8s.io".parse().unwrap();
        response
            .headers_mut()
            .insert("sec-websocket-protocol", protocol);
        Ok(response)
    };
    let mut socket = tungstenite::accept_hdr(stream, accept).unwrap();
    let port = 9444_u16.to_le_bytes();
    for channel in [0, 1] {
        socket
            .send(Message::binary(vec![channel, port[0], port[1]]))
            .unwrap();
    }
    let Some(listener) = listener else {
        let text = b"\x01dial tcp4 127.0.0.1:9444: connect: connection refused";
        drop(socket.send(Message::binary(text.to_vec())));
        // Until the client has read it and goes away.
        while socket.read().is_ok() {}
        return;
    };
    let mut request = String::new();
    while !request.contains("\r\n\r\n") {
        match socket.read() {
            Ok(Message::Binary(bytes)) if bytes.first() == Some(&0) => {
                request.push_str(&String::from_utf8_lossy(&bytes[1..]));
            }
            Ok(_) => {}
            Err(_) => return,
        }
    }
    let (code, body) = listener(request.split_whitespace().nth(1).unwrap());
    let mut response = vec![0];
    write(&mut response, code, &body.to_string()).unwrap();
    drop(socket.send(Message::binary(response)));
    while socket.read().is_ok() {}
}
