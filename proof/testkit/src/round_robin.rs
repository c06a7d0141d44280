//! A balancer for tests: hands every request to the next front end, whatever connection it comes over.
//!
//! Promises: bytes pass unchanged. A page of a query is fetched from another front end than the page before, also
//! when other requests came between. What is no well-formed request goes to one front end as it is, so that the
//! answer is the front end's own. `framing.rs` finds where a message ends. Leaves to others: everything that the
//! bytes say.

mod framing;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use self::framing::{Body, BodyEnd, Head};

const HEAD_BYTES_MAX: usize = 256 << 10;
/// A head that is not complete by then goes to a front end as it is: slow senders are its business.
const HEAD_PATIENCE: Duration = Duration::from_millis(300);
/// The same for a connection over which nothing has come yet.
const FIRST_PATIENCE: Duration = Duration::from_secs(1);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const TOKENS_KEPT_MAX: usize = 4_096;

/// A running balancer. Dropping it ends it.
pub struct RoundRobin {
    addr: SocketAddr,
    shared: Arc<Shared>,
    listener: Option<JoinHandle<()>>,
}

struct Shared {
    front_ends: Vec<SocketAddr>,
    next: AtomicUsize,
    /// Continuation tokens, and the front end that gave each.
    tokens: Mutex<VecDeque<(String, usize)>>,
    page_count: AtomicUsize,
    is_stopping: AtomicBool,
}

impl RoundRobin {
    pub fn start(front_ends: &[SocketAddr]) -> io::Result<RoundRobin> {
        assert!(!front_ends.is_empty(), "a balancer has front ends");
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let addr = listener.local_addr()?;
        let shared = Arc::new(Shared {
            front_ends: front_ends.to_vec(),
            next: AtomicUsize::new(0),
            tokens: Mutex::default(),
            page_count: AtomicUsize::new(0),
            is_stopping: AtomicBool::new(false),
        });
        let thread = thread::spawn({
            let shared = shared.clone();
            move || {
                for stream in listener.incoming() {
                    if shared.is_stopping.load(Ordering::SeqCst) {
                        return;
                    }
                    let (Ok(stream), shared) = (stream, shared.clone()) else { continue };
                    thread::spawn(move || {
                        let _ = Passage::new(stream, shared).run();
                    });
                }
            }
        });
        Ok(RoundRobin { addr, shared, listener: Some(thread) })
    }

    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// How many pages were fetched from another front end than the page before.
    pub fn page_count(&self) -> usize {
        self.shared.page_count.load(Ordering::Relaxed)
    }
}

impl Drop for RoundRobin {
    fn drop(&mut self) {
        self.shared.is_stopping.store(true, Ordering::SeqCst);
        // Wakes the listener, which then sees that it is over.
        let _ = TcpStream::connect(self.addr);
        if let Some(listener) = self.listener.take() {
            let _ = listener.join();
        }
    }
}

impl Shared {
    fn choose(&self, head: &Head) -> usize {
        let count = self.front_ends.len();
        let tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        let asked = head.continuations();
        if let Some((_, giver)) = tokens.iter().rev().find(|(token, _)| asked.contains(token)) {
            self.page_count.fetch_add(1, Ordering::Relaxed);
            return (giver + 1) % count;
        }
        self.next.fetch_add(1, Ordering::Relaxed) % count
    }

    fn remember(&self, head: &Head, giver: usize) {
        let mut tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        tokens.extend(head.given_continuations().into_iter().map(|token| (token, giver)));
        while tokens.len() > TOKENS_KEPT_MAX {
            tokens.pop_front();
        }
    }
}

/// A connection with the bytes that were read and not used yet.
struct Stream {
    socket: TcpStream,
    unread: Vec<u8>,
}

/// What came before the head was complete.
enum Came {
    Head(Head),
    /// The other side has closed, and sent nothing.
    End,
    /// It is too long, too slow, or ends in the middle.
    Odd,
}

impl Stream {
    fn new(socket: TcpStream) -> Stream {
        let _ = socket.set_nodelay(true);
        Stream { socket, unread: Vec::new() }
    }

    fn read_more(&mut self) -> io::Result<usize> {
        let mut chunk = [0; 16 << 10];
        let count = self.socket.read(&mut chunk)?;
        self.unread.extend_from_slice(&chunk[..count]);
        Ok(count)
    }

    /// `is_first`: nothing has come over this connection yet.
    fn read_head(&mut self, is_first: bool, is_patient: bool) -> io::Result<Came> {
        loop {
            if let Some(head) = Head::cut_from(&mut self.unread) {
                return Ok(Came::Head(head));
            }
            if self.unread.len() > HEAD_BYTES_MAX {
                return Ok(Came::Odd);
            }
            let patience = match (self.unread.is_empty(), is_first) {
                _ if is_patient => None,
                (true, true) => Some(FIRST_PATIENCE),
                (true, false) => None,
                (false, _) => Some(HEAD_PATIENCE),
            };
            self.socket.set_read_timeout(patience)?;
            match self.read_more() {
                Ok(0) if self.unread.is_empty() => return Ok(Came::End),
                Ok(0) => return Ok(Came::Odd),
                Ok(_) => {}
                Err(error) if is_timeout(&error) => return Ok(Came::Odd),
                Err(error) => return Err(error),
            }
        }
    }

    /// Passes a body on as it comes.
    fn pass_body(&mut self, body: Body, to: &mut TcpStream) -> io::Result<()> {
        self.socket.set_read_timeout(None)?;
        let mut end = BodyEnd::new(body);
        loop {
            let count = end.take(&self.unread);
            to.write_all(&self.unread[..count])?;
            self.unread.drain(..count);
            if end.is_reached() {
                return Ok(());
            }
            if self.read_more()? == 0 {
                return if body == Body::UntilClose { Ok(()) } else { Err(ErrorKind::UnexpectedEof.into()) };
            }
        }
    }
}

/// One client's connection.
struct Passage {
    client: Stream,
    /// By front end: a connection that is kept alive.
    kept: Vec<Option<Stream>>,
    shared: Arc<Shared>,
}

impl Passage {
    fn new(client: TcpStream, shared: Arc<Shared>) -> Passage {
        let kept = shared.front_ends.iter().map(|_| None).collect();
        Passage { client: Stream::new(client), kept, shared }
    }

    fn run(mut self) -> io::Result<()> {
        let mut is_first = true;
        loop {
            match self.client.read_head(is_first, false)? {
                Came::End => return Ok(()),
                Came::Odd => return self.tunnel(Vec::new()),
                Came::Head(head) => match head.request_body() {
                    Some(body) => {
                        if !self.pass_request(&head, body)? {
                            return self.client.socket.shutdown(Shutdown::Both);
                        }
                    }
                    None => return self.tunnel(head.bytes),
                },
            }
            is_first = false;
        }
    }

    /// Passes one request and its answer. Returns whether the connection stays open.
    fn pass_request(&mut self, head: &Head, body: Body) -> io::Result<bool> {
        let chosen = self.shared.choose(head);
        let mut end = BodyEnd::new(body);
        let at_hand = end.take(&self.client.unread);
        let is_complete = end.is_reached();
        let kept = self.kept[chosen].take();
        let was_kept = kept.is_some();
        let mut front_end = match kept {
            Some(stream) => stream,
            None => self.connect(chosen)?,
        };
        let mut came = self.send(head, at_hand, &mut front_end);
        if was_kept && is_complete && came.is_err() {
            // The front end had closed it meanwhile.
            front_end = self.connect(chosen)?;
            came = self.send(head, at_hand, &mut front_end);
        }
        if !is_complete {
            came?;
            return self.pass_slowly(head, body, front_end, chosen);
        }
        self.client.unread.drain(..at_hand);
        let answer = came?.ok_or(ErrorKind::UnexpectedEof)?;
        let stays = self.pass_answer(head, answer, &mut front_end, chosen)?;
        if stays {
            self.kept[chosen] = Some(front_end);
        }
        Ok(stays)
    }

    /// Sends what is at hand. If that is the whole request, waits for the head of the answer.
    fn send(&mut self, head: &Head, at_hand: usize, front_end: &mut Stream) -> io::Result<Option<Head>> {
        front_end.socket.write_all(&head.bytes)?;
        front_end.socket.write_all(&self.client.unread[..at_hand])?;
        let is_complete = head.request_body().is_some_and(|body| {
            let mut end = BodyEnd::new(body);
            end.take(&self.client.unread);
            end.is_reached()
        });
        if !is_complete {
            return Ok(None);
        }
        match front_end.read_head(false, true)? {
            Came::Head(answer) => Ok(Some(answer)),
            Came::End | Came::Odd => Err(ErrorKind::UnexpectedEof.into()),
        }
    }

    /// The rest of the body comes later, perhaps only after the front end has said that it wants it.
    fn pass_slowly(
        &mut self,
        head: &Head,
        body: Body,
        mut front_end: Stream,
        chosen: usize,
    ) -> io::Result<bool> {
        let mut sender = Stream { socket: self.client.socket.try_clone()?, unread: Vec::new() };
        let mut to = front_end.socket.try_clone()?;
        let mut end = BodyEnd::new(body);
        let sent = end.take(&self.client.unread);
        self.client.unread.drain(..sent);
        let feeder = thread::spawn(move || -> io::Result<Vec<u8>> {
            sender.socket.set_read_timeout(None)?;
            while !end.is_reached() {
                if sender.read_more()? == 0 {
                    let _ = to.shutdown(Shutdown::Write);
                    return Err(ErrorKind::UnexpectedEof.into());
                }
                let count = end.take(&sender.unread);
                to.write_all(&sender.unread[..count])?;
                sender.unread.drain(..count);
            }
            Ok(sender.unread)
        });
        let answer = match front_end.read_head(false, true)? {
            Came::Head(answer) => answer,
            Came::End | Came::Odd => return Ok(false),
        };
        let stays = self.pass_answer(head, answer, &mut front_end, chosen)?;
        if !stays {
            return Ok(false);
        }
        let Ok(Ok(rest)) = feeder.join() else { return Ok(false) };
        self.client.unread = rest;
        self.kept[chosen] = Some(front_end);
        Ok(true)
    }

    /// Passes the answer with this head, and the interim ones before the last. Returns whether the connection stays
    /// open.
    fn pass_answer(
        &mut self,
        request: &Head,
        mut answer: Head,
        front_end: &mut Stream,
        chosen: usize,
    ) -> io::Result<bool> {
        loop {
            self.client.socket.write_all(&answer.bytes)?;
            if !answer.is_interim() {
                break;
            }
            answer = match front_end.read_head(false, true)? {
                Came::Head(answer) => answer,
                Came::End | Came::Odd => return Ok(false),
            };
        }
        self.shared.remember(&answer, chosen);
        let body = answer.answer_body(request);
        front_end.pass_body(body, &mut self.client.socket)?;
        Ok(body != Body::UntilClose && !answer.closes() && !request.closes())
    }

    /// Passes all further bytes in both directions to one front end.
    fn tunnel(mut self, mut first: Vec<u8>) -> io::Result<()> {
        let chosen = self.shared.next.fetch_add(1, Ordering::Relaxed) % self.kept.len();
        let mut front_end = self.connect(chosen)?.socket;
        first.append(&mut self.client.unread);
        front_end.write_all(&first)?;
        let mut client = self.client.socket;
        client.set_read_timeout(None)?;
        let (mut from_client, mut to_front_end) = (client.try_clone()?, front_end.try_clone()?);
        thread::spawn(move || {
            let _ = io::copy(&mut from_client, &mut to_front_end);
            let _ = to_front_end.shutdown(Shutdown::Write);
        });
        let copied = io::copy(&mut front_end, &mut client);
        let _ = client.shutdown(Shutdown::Both);
        copied.map(drop)
    }

    fn connect(&self, chosen: usize) -> io::Result<Stream> {
        TcpStream::connect_timeout(&self.shared.front_ends[chosen], CONNECT_TIMEOUT).map(Stream::new)
    }
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}
