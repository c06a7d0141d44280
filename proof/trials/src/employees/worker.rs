//! `employees-worker`: the worker of the guide's eventually consistent transaction, as a process of its own that can be
//! killed at any moment.
//!
//! It takes a message that names an employee, copies the employee from the table Current to the table Archive, deletes the
//! employee from Current, and deletes the message. Each step can be repeated, so a worker that takes up where another died
//! does no harm. A message that kills its workers again and again goes to a queue of its own.
//!
//! With `--guided yes` it says `step N` after each step and waits for a line before it goes on.

use std::io::{self, BufRead as _, Write as _};
use std::net::SocketAddr;
use std::time::Duration;

use lexopt::Parser;
use testkit::{Request, Response, entity_json, entity_path, messages};

use crate::Error;
use crate::options::{self, Value};
use crate::queue::door::{self, Addresses, Door};
use crate::queue::event::Seen;

pub const CURRENT: &str = "Current";
pub const ARCHIVE: &str = "Archive";
/// All employees of the trial are in one department.
pub const DEPARTMENT: &str = "sales";
/// A message that was taken more often than this is poison.
pub const DEQUEUE_COUNT_MAX: u32 = 7;
/// A message that was put although its employee did not change goes here.
pub const WRONG_QUEUE: &str = "wrong";
/// How long a worker may take for a message.
const HIDE_S: u64 = 1;
const IDLE: Duration = Duration::from_millis(15);

/// The steps of a worker after each of which it may die: taken, copied, deleted from Current, message deleted.
pub const STEP_COUNT: usize = 4;

struct Worker {
    door: Door,
    queue: String,
    is_guided: bool,
}

pub fn run(options: &mut Parser) -> Result<bool, Error> {
    let (mut table, mut queue_address) = (String::new(), String::new());
    let (mut queue, mut guided, mut server) = (String::new(), String::new(), String::new());
    let known: &mut [(&str, &mut dyn Value)] = &mut [
        ("table-address", &mut table),
        ("queue-address", &mut queue_address),
        ("queue", &mut queue),
        ("guided", &mut guided),
        ("server", &mut server),
    ];
    if !options::read(options, "for the trial `employees` only", known)? {
        return Ok(true);
    }
    let addresses =
        Addresses { table: table.parse::<SocketAddr>()?, queue: queue_address.parse::<SocketAddr>()? };
    let mut worker = Worker { door: Door::new(addresses), queue, is_guided: guided == "yes" };
    while worker.work()? {}
    Ok(true)
}

/// The queue for poison messages of this queue.
pub fn poison_queue(queue: &str) -> String {
    format!("{queue}-poison")
}

impl Worker {
    /// Works on one message. Returns whether there may be another.
    fn work(&mut self) -> Result<bool, Error> {
        let response = expect(self.door.queue(&door::get(&self.queue, 1, HIDE_S))?, &[200])?;
        let Some(message) = messages(&response).into_iter().next().map(Seen::new) else {
            let count = door::count_in(&self.door.queue(&door::count(&self.queue))?).ok_or("no count")?;
            std::thread::sleep(IDLE);
            // Messages that others hold come back if their holders die.
            return Ok(count > 0);
        };
        self.step(1)?;
        if message.dequeue_count > DEQUEUE_COUNT_MAX {
            self.forward(&poison_queue(&self.queue), &message.text)?;
            self.step(2)?;
        } else {
            self.move_employee(&message.text)?;
        }
        // Another worker may have taken over and finished.
        let deletion = door::delete(&self.queue, &message.handle);
        expect(self.door.queue(&deletion)?, &[204, 404])?;
        self.step(STEP_COUNT)?;
        Ok(true)
    }

    fn move_employee(&mut self, name: &str) -> Result<(), Error> {
        let current = entity_path(CURRENT, DEPARTMENT, name);
        let archived = entity_path(ARCHIVE, DEPARTMENT, name);
        let found = expect(self.door.table(&Request::get(&current))?, &[200, 404])?;
        if found.status == 404 {
            let earlier = expect(self.door.table(&Request::get(&archived))?, &[200, 404])?;
            if earlier.status == 404 {
                // There is no such employee, and this worker was written by an optimist.
                std::process::abort();
            }
            return Ok(());
        }
        if found.json()["Leaving"] != true {
            return self.forward(WRONG_QUEUE, name);
        }
        let copy = entity_json(DEPARTMENT, name, "\"Leaving\":true");
        expect(self.door.table(&Request::put(&archived).json(&copy))?, &[204])?;
        self.step(2)?;
        let deletion = Request::delete(&current).header("If-Match", "*");
        expect(self.door.table(&deletion)?, &[204, 404])?;
        self.step(3)
    }

    fn forward(&mut self, queue: &str, text: &str) -> Result<(), Error> {
        expect(self.door.queue(&door::put(queue, text, 0, None))?, &[201]).map(|_| ())
    }

    fn step(&self, number: usize) -> Result<(), Error> {
        if self.is_guided {
            println!("step {number}");
            io::stdout().flush()?;
            io::stdin().lock().read_line(&mut String::new())?;
        }
        Ok(())
    }
}

fn expect(response: Response, statuses: &[u16]) -> Result<Response, Error> {
    match statuses.contains(&response.status) {
        true => Ok(response),
        false => Err(format!("an unexpected answer: {response:?}").into()),
    }
}
