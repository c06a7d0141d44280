//! Cost: how the time of a target grows with the length of its input.
//!
//! Inputs of many shapes (a seed with a piece of it, or a word of the grammar, or both, written again and again) are
//! made in lengths of which each is eight times the one before: very many shapes up to a modest length, because a wrong
//! growth shows there already, and some of them up to the longest input there can be. Where eight times the
//! bytes take far more than eight times the time, the work is not linear in the input. What is measured is the thread's own
//! processor time, the least of several tries, and a suspicion is measured again with more of them: other programs, cold
//! caches and fresh pages make things slower, never faster.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use fastrand::Rng;
use fuzzing::Target;

use super::clock;
use super::failure::attempt;

/// From one length to the next.
const GROWTH: usize = 8;
/// Linear is 8, `n log n` is about 10, quadratic is 64.
const TIME_GROWTH_MAX: f64 = 36.0;
/// For twice the bytes: linear is 2, quadratic is 4.
const DOUBLING_TIME_GROWTH_MAX: f64 = 2.8;
/// Below this the clock and the caches say more than the work does.
const NOTICEABLE: Duration = Duration::from_micros(300);
/// Shapes of a modest length, and that length.
const SCREENED_SHAPE_COUNT: usize = 1_500;
const SCREENED_BYTES_MAX: usize = 32 * 1024;
/// What the longest input may take: a generous time for a byte, and one for everything that does not grow.
const NANOSECONDS_PER_BYTE_MAX: u128 = 2_000;
/// A build without optimisation takes that many times as long.
static SLOWNESS: AtomicU32 = AtomicU32::new(1);
const FIXED_MAX: Duration = Duration::from_millis(50);
const TRY_COUNT: usize = 2;
const SECOND_LOOK_TRY_COUNT: usize = 8;
/// Pieces that are repeated are at most this long.
const PIECE_BYTES_MAX: usize = 64;

/// What was measured, and the shape that grew the most.
#[derive(Default)]
pub struct Cost {
    pub shape_count: usize,
    pub growth_max: f64,
    pub nanoseconds_per_byte_max: f64,
}

pub struct TooSlow {
    pub what: String,
    pub input: Vec<u8>,
}

/// One family of inputs: `head`, then `piece` as often as needed, then `tail`.
struct Shape {
    head: Vec<u8>,
    piece: Vec<u8>,
    tail: Vec<u8>,
}

impl Shape {
    fn input(&self, len: usize) -> Vec<u8> {
        let room = len.saturating_sub(self.head.len() + self.tail.len());
        let mut input = self.head.clone();
        input.extend_from_slice(&self.piece.repeat((room / self.piece.len()).max(1)));
        input.extend_from_slice(&self.tail);
        input
    }
}

/// Measures many shapes at a modest length, then long ones until the time is up, and at least `long_count_min` of them.
pub fn measure(
    target: &Target,
    seeds: &[Vec<u8>],
    seed: u64,
    long_count_min: usize,
    time: Duration,
) -> Result<Cost, TooSlow> {
    let mut rng = Rng::with_seed(seed);
    let started = clock::now();
    let mut cost = Cost::default();
    let modest = target.input_bytes_max.min(SCREENED_BYTES_MAX);
    // A slow build looks at fewer: the fast ones have seen the others.
    for _ in 0..SCREENED_SHAPE_COUNT / SLOWNESS.load(Ordering::Relaxed) as usize {
        let shape = choose(target, seeds, &mut rng);
        measure_shape(target, &shape, &[modest / GROWTH, modest], &mut cost)?;
    }
    let long = target.input_bytes_max;
    let mut long_count = 0;
    while long_count < long_count_min || started.elapsed() < time {
        let shape = choose(target, seeds, &mut rng);
        measure_shape(target, &shape, &[long / GROWTH / GROWTH, long / GROWTH, long], &mut cost)?;
        long_count += 1;
    }
    Ok(cost)
}

/// What chance makes of words and seeds.
fn choose(target: &Target, seeds: &[Vec<u8>], rng: &mut Rng) -> Shape {
    let token = |rng: &mut Rng| target.tokens[rng.usize(..target.tokens.len())].to_vec();
    let base = &seeds[rng.usize(..seeds.len())];
    let first_line = base.iter().position(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
    let at = match rng.u8(..4) {
        // In some formats the first line is a part of its own, and what follows it begins the rest.
        0 | 1 => first_line,
        _ => rng.usize(..=base.len()),
    };
    let own = rng.usize(..=base.len());
    let own_end = (own + rng.usize(1..=PIECE_BYTES_MAX)).min(base.len());
    let mut piece = match rng.u8(..8) {
        0..=3 => token(rng),
        4 => [token(rng), token(rng)].concat(),
        5 | 6 => base[own..own_end].to_vec(),
        _ => [token(rng), base[own..own_end].to_vec()].concat(),
    };
    if piece.is_empty() {
        piece = token(rng);
    }
    let end = if rng.bool() { at } else { rng.usize(at..=base.len()) };
    Shape { head: base[..at].to_vec(), piece, tail: base[end..].to_vec() }
}

/// Said once, before anything is measured.
pub fn expect_slowness(times: u32) {
    SLOWNESS.store(times.max(1), Ordering::Relaxed);
}

pub fn is_slow() -> bool {
    SLOWNESS.load(Ordering::Relaxed) > 1
}

fn measure_shape(target: &Target, shape: &Shape, lengths: &[usize], cost: &mut Cost) -> Result<(), TooSlow> {
    cost.shape_count += 1;
    let mut before: Option<(Vec<u8>, Duration)> = None;
    for length in lengths {
        let input = shape.input(*length);
        let mut took = least_time(target, &input, TRY_COUNT);
        let bound = FIXED_MAX + Duration::from_nanos((NANOSECONDS_PER_BYTE_MAX * input.len() as u128) as u64);
        let bound = bound * SLOWNESS.load(Ordering::Relaxed);
        if took > bound {
            took = took.min(least_time(target, &input, SECOND_LOOK_TRY_COUNT));
        }
        if took > bound {
            let what = format!("{took:?} for {} bytes, more than {bound:?}", input.len());
            return Err(TooSlow { what, input });
        }
        if let Some((shorter, took_shorter)) = &mut before {
            let length_growth = input.len() as f64 / shorter.len() as f64;
            let bound = TIME_GROWTH_MAX * length_growth / GROWTH as f64;
            let growth = |took: Duration, shorter: Duration| {
                took.as_secs_f64() / shorter.max(Duration::from_micros(1)).as_secs_f64()
            };
            if took > NOTICEABLE && growth(took, *took_shorter) > bound {
                took = took.min(least_time(target, &input, SECOND_LOOK_TRY_COUNT));
                *took_shorter = least_time(target, shorter, SECOND_LOOK_TRY_COUNT);
                let found = growth(took, *took_shorter);
                if found > bound && grows_with_every_doubling(target, shape, input.len()) {
                    let what = format!(
                        "{took_shorter:?} for {} bytes, but {took:?} for {}: {found:.1} times the time for \
                         {length_growth:.1} times the bytes",
                        shorter.len(),
                        input.len()
                    );
                    return Err(TooSlow { what, input });
                }
            }
            // From next to nothing, anything is a great step.
            if *took_shorter > NOTICEABLE / GROWTH as u32 {
                cost.growth_max =
                    cost.growth_max.max(growth(took, *took_shorter) * GROWTH as f64 / length_growth);
            }
        }
        let per_byte = took.as_nanos() as f64 / input.len().max(1) as f64;
        if input.len() >= 1024 {
            cost.nanoseconds_per_byte_max = cost.nanoseconds_per_byte_max.max(per_byte);
        }
        before = Some((input, took));
    }
    Ok(())
}

/// An input that is refused at once when it is short, and read when it is long, makes one great step; so do caches that
/// are full. Work that is not linear grows too fast again and again.
fn grows_with_every_doubling(target: &Target, shape: &Shape, len: usize) -> bool {
    let took = |len: usize| least_time(target, &shape.input(len), SECOND_LOOK_TRY_COUNT).as_secs_f64();
    let times = [took(len / 4), took(len / 2), took(len)];
    times.windows(2).all(|pair| pair[1] > pair[0] * DOUBLING_TIME_GROWTH_MAX)
}

/// A panic is found and told by the mutated inputs and counts for no time here; the driver looks at it before.
fn least_time(target: &Target, input: &[u8], try_count: usize) -> Duration {
    let mut least = Duration::MAX;
    for _ in 0..try_count {
        let started = clock::processor_time();
        let _ = attempt(target, input);
        least = least.min(clock::processor_time().saturating_sub(started));
    }
    least
}

#[cfg(test)]
mod tests {
    use super::*;
    use fuzzing::Outcome;

    fn target(run: fn(&[u8]) -> Outcome) -> Target {
        Target { name: "x", run, input_bytes_max: 64 * 1024, tokens: &[b"a", b"b"], seeds: |_| Vec::new() }
    }

    fn measured(run: fn(&[u8]) -> Outcome) -> Result<Cost, TooSlow> {
        measure(&target(run), &[b"seed".to_vec()], 1, 4, Duration::ZERO)
    }

    #[test]
    fn linear_work_passes_and_quadratic_work_does_not() {
        let linear = |input: &[u8]| {
            let sum = input
                .iter()
                .fold(1u64, |sum, byte| std::hint::black_box(sum * 31 + u64::from(*byte)) % 1_000_003);
            if sum == 0 { Outcome::Refused("zero") } else { Outcome::Accepted("sum") }
        };
        assert!(measured(linear).is_ok());
        let quadratic = |input: &[u8]| {
            let sum = (0..input.len()).map(|start| {
                input[start..]
                    .iter()
                    .step_by(64)
                    .fold(0u64, |sum, byte| std::hint::black_box(sum + u64::from(*byte)))
            });
            if sum.sum::<u64>() == 0 { Outcome::Refused("zero") } else { Outcome::Accepted("sum") }
        };
        assert!(measured(quadratic).is_err());
    }
}
