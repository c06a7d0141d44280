//! Mutations: takes an input from the pool and changes it in one or more places.
//!
//! Promises: the same seed and the same calls give the same inputs; no input is longer than the bound.

use fastrand::Rng;

/// The most changes to one input. Most inputs get few, so that many stay well formed.
const CHANGE_COUNT_MAX: usize = 12;
/// The most inputs, besides the seeds, that are kept for further mutation.
const POOL_COUNT_MAX: usize = 512;
/// Longer inputs are expensive to copy; `cost.rs` measures long ones.
const KEPT_BYTES_MAX: usize = 4 * 1024;
/// The most times that one mutation repeats a piece.
const REPEAT_COUNT_MAX: usize = 64;

const NUMBERS: [&[u8]; 14] = [
    b"0",
    b"-0",
    b"1",
    b"-1",
    b"127",
    b"255",
    b"65536",
    b"2147483647",
    b"2147483648",
    b"-2147483649",
    b"9223372036854775807",
    b"9223372036854775808",
    b"18446744073709551616",
    b"1e309",
];

/// Bytes that are invalid in UTF-8, or cut a character in two.
const BROKEN_TEXT: [&[u8]; 7] =
    [b"\xFF", b"\xC0\x80", b"\xED\xA0\x80", b"\xF5\x80\x80\x80", b"\xE2\x82", b"\x80", b"\xF0\x9F"];

pub struct Mutator {
    rng: Rng,
    seed_count: usize,
    pool: Vec<Vec<u8>>,
    tokens: &'static [&'static [u8]],
    input_bytes_max: usize,
}

impl Mutator {
    pub fn new(
        seed: u64,
        seeds: Vec<Vec<u8>>,
        tokens: &'static [&'static [u8]],
        input_bytes_max: usize,
    ) -> Mutator {
        Mutator { rng: Rng::with_seed(seed), seed_count: seeds.len(), pool: seeds, tokens, input_bytes_max }
    }

    pub fn next_into(&mut self, input: &mut Vec<u8>) {
        input.clear();
        input.extend_from_slice(&self.pool[self.rng.usize(..self.pool.len())]);
        // Few changes are likelier: half of the inputs have one.
        let mut change_count = 1;
        while change_count < CHANGE_COUNT_MAX && self.rng.bool() {
            change_count += 1;
        }
        for _ in 0..change_count {
            self.change(input);
        }
        input.truncate(self.input_bytes_max);
    }

    /// Keeps a promising input. When the pool is full, it replaces another one, but never a seed.
    pub fn keep(&mut self, input: &[u8]) {
        if input.len() > KEPT_BYTES_MAX {
            return;
        }
        if self.pool.len() < self.seed_count + POOL_COUNT_MAX {
            self.pool.push(input.to_vec());
        } else {
            let at = self.rng.usize(self.seed_count..self.pool.len());
            self.pool[at] = input.to_vec();
        }
    }

    pub fn one_in(&mut self, count: u64) -> bool {
        self.rng.u64(..count) == 0
    }

    fn change(&mut self, input: &mut Vec<u8>) {
        let at = self.rng.usize(..=input.len());
        match self.rng.u8(..14) {
            0 | 1 => {
                if let Some(byte) = input.get_mut(at) {
                    *byte ^= 1 << self.rng.u8(..8);
                }
            }
            2 => {
                if let Some(byte) = input.get_mut(at) {
                    *byte = self.rng.u8(..);
                }
            }
            3..=5 => {
                let token = self.tokens[self.rng.usize(..self.tokens.len())];
                insert(input, at, token);
            }
            6 => {
                // Replaces a number, a name or a word.
                let token = self.tokens[self.rng.usize(..self.tokens.len())];
                let end = word_end(input, at);
                input.splice(at..end, token.iter().copied());
            }
            7 => {
                let range = self.piece(input);
                input.drain(range);
            }
            8 => {
                let range = self.piece(input);
                let piece = input[range].to_vec();
                insert(input, at, &piece);
            }
            9 => {
                let range = self.piece(input);
                let piece = input[range].to_vec();
                let count = self.rng.usize(1..=REPEAT_COUNT_MAX);
                if piece.len() * count <= KEPT_BYTES_MAX {
                    insert(input, at, &piece.repeat(count));
                }
            }
            10 => {
                let other = self.rng.usize(..self.pool.len());
                let from = self.rng.usize(..=self.pool[other].len());
                // A splice: the beginning of one input, the end of another.
                input.truncate(at);
                input.extend_from_slice(&self.pool[other][from..]);
            }
            11 => {
                let start = input[at..].iter().position(u8::is_ascii_digit).map_or(at, |digit| at + digit);
                let digits = input[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
                let number = NUMBERS[self.rng.usize(..NUMBERS.len())];
                input.splice(start..start + digits, number.iter().copied());
            }
            12 => {
                let broken = BROKEN_TEXT[self.rng.usize(..BROKEN_TEXT.len())];
                // Rarely, because most formats refuse an input at the first such byte.
                if self.one_in(4) {
                    insert(input, at, broken);
                }
            }
            _ => {
                let other = self.rng.usize(..=input.len());
                if at < input.len() && other < input.len() {
                    input.swap(at, other);
                }
            }
        }
    }

    /// A piece of the input, more often short than long.
    fn piece(&mut self, input: &[u8]) -> std::ops::Range<usize> {
        let start = self.rng.usize(..=input.len());
        let rest = input.len() - start;
        let len_max = if self.rng.bool() { rest.min(8) } else { rest };
        start..start + self.rng.usize(..=len_max)
    }
}

fn insert(input: &mut Vec<u8>, at: usize, piece: &[u8]) {
    input.splice(at..at, piece.iter().copied());
}

fn word_end(input: &[u8], start: usize) -> usize {
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte >= 0x80;
    start + input[start..].iter().take_while(|byte| is_word(byte)).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mutator(seed: u64) -> Mutator {
        Mutator::new(seed, vec![b"Age eq 3".to_vec(), b"a".to_vec(), Vec::new()], &[b" and ", b"("], 64)
    }

    fn inputs(seed: u64, count: usize) -> Vec<Vec<u8>> {
        let mut mutator = mutator(seed);
        let mut input = Vec::new();
        (0..count)
            .map(|_| {
                mutator.next_into(&mut input);
                mutator.keep(&input);
                input.clone()
            })
            .collect()
    }

    #[test]
    fn the_same_seed_gives_the_same_inputs() {
        assert_eq!(inputs(7, 1000), inputs(7, 1000));
        assert_ne!(inputs(7, 1000), inputs(8, 1000));
    }

    #[test]
    fn inputs_are_many_and_never_longer_than_the_bound() {
        let inputs = inputs(1, 5000);
        assert!(inputs.iter().all(|input| input.len() <= 64));
        let distinct: std::collections::BTreeSet<_> = inputs.iter().collect();
        assert!(distinct.len() > 4000, "{}", distinct.len());
    }
}
