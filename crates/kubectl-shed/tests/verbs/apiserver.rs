//! The mock of the apiserver with a table of answers, which a test can change between two runs.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use serde_json::Value;

use super::Ran;
use super::mock::{self, Answer, Asked, forbidden, not_found};

/// Answers by method and path; those of a list in turn, the last one from then on.
type Answers = BTreeMap<String, Vec<Reply>>;

#[derive(Clone)]
enum Reply {
    Object(Value),
    Text(&'static str),
    Forbidden,
}

/// The mock. What is not in the table is 404.
pub struct Apiserver {
    mock: mock::Apiserver,
    answers: Arc<Mutex<Answers>>,
}

impl Apiserver {
    pub fn new(name: &str) -> Self {
        let answers: Arc<Mutex<Answers>> = Arc::default();
        let table = Arc::clone(&answers);
        let answer = move |asked: &Asked| {
            let key = format!("{} {}", asked.method, asked.path);
            match table.lock().unwrap().get_mut(&key).map(next) {
                Some(Reply::Object(object)) => Answer::Json(200, object),
                Some(Reply::Text(text)) => Answer::Text(text),
                Some(Reply::Forbidden) => forbidden("forbidden"),
                None => not_found(),
            }
        };
        Self {
            mock: mock::Apiserver::start(name, answer),
            answers,
        }
    }

    /// Answers with this object.
    pub fn on(&self, request: &str, answer: Value) -> &Self {
        self.set(request, vec![Reply::Object(answer)])
    }

    pub fn in_turn(&self, request: &str, answers: Vec<Value>) -> &Self {
        self.set(request, answers.into_iter().map(Reply::Object).collect())
    }

    pub fn text(&self, request: &str, text: &'static str) -> &Self {
        self.set(request, vec![Reply::Text(text)])
    }

    /// Answers as the apiserver does to a user without rights.
    pub fn forbids(&self, request: &str) -> &Self {
        self.set(request, vec![Reply::Forbidden])
    }

    fn set(&self, request: &str, replies: Vec<Reply>) -> &Self {
        let mut answers = self.answers.lock().unwrap();
        answers.insert(request.to_owned(), replies);
        self
    }

    /// Runs the program against the mock.
    pub fn run(&self, arguments: &[&str]) -> Ran {
        Ran::of(&self.mock.run(arguments))
    }

    /// The requests that were not reads.
    pub fn writes(&self) -> Vec<Asked> {
        let asked = self.mock.asked().into_iter();
        asked.filter(|asked| asked.method != "GET").collect()
    }

    pub fn asked(&self) -> Vec<Asked> {
        self.mock.asked()
    }
}

fn next(replies: &mut Vec<Reply>) -> Reply {
    match replies.len() {
        1 => replies[0].clone(),
        _ => replies.remove(0),
    }
}
