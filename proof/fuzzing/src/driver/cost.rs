//! Measures how the time of a target grows with the length of its input.
//!
//! An input has a shape: a seed in which a piece of it, or a word of the grammar, or both, is repeated. Each shape is
//! measured at several lengths, each eight times the one before. Many shapes are measured at a moderate length, where
//! bad growth already shows, and some up to the longest possible input. If eight times the bytes take far more than
//! eight times the time, the work is not linear in the input.
//!
//! The time is the thread's own processor time, and the least of several tries counts: other programs, cold caches and
//! fresh pages make a run slower, never faster. A suspicious result is measured again with more tries.
//! Leaves to others: finding panics (`run.rs`).

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use fastrand::Rng;
use fuzzing::Target;

use super::clock;
use super::failure::attempt;

/// The factor from one length to the next.
const GROWTH: usize = 8;
/// The most that the time may grow by with it. Linear is 8, `n log n` is about 10, quadratic is 64.
const TIME_GROWTH_MAX: f64 = 36.0;
/// The same for twice the bytes. Linear is 2, quadratic is 4.
const DOUBLING_TIME_GROWTH_MAX: f64 = 2.8;
/// Shorter times say more about the clock and the caches than about the work.
const NOTICEABLE: Duration = Duration::from_micros(300);
/// The number of shapes of a moderate length, and that length.
const SCREENED_SHAPE_COUNT: usize = 1_500;
const SCREENED_BYTES_MAX: usize = 32 * 1024;
/// The time that an input may take: a generous one per byte, and a fixed one for everything that does not grow.
const NANOSECONDS_PER_BYTE_MAX: u128 = 2_000;
/// How many times slower this build may be than an optimised one.
static SLOWNESS: AtomicU32 = AtomicU32::new(1);
const FIXED_MAX: Duration = Duration::from_millis(50);
const TRY_COUNT: usize = 2;
const SECOND_LOOK_TRY_COUNT: usize = 8;
/// The longest piece that is repeated.
const PIECE_BYTES_MAX: usize = 64;

/// The number of shapes measured, and the worst results.
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

/// A family of inputs: `head`, then `piece` as often as needed, then `tail`.
struct InputShape {
    head: Vec<u8>,
    piece: Vec<u8>,
    tail: Vec<u8>,
}

impl InputShape {
    fn input(&self, len: usize) -> Vec<u8> {
        let room = len.saturating_sub(self.head.len() + self.tail.len());
        let mut input = self.head.clone();
        input.extend_from_slice(&self.piece.repeat((room / self.piece.len()).max(1)));
        input.extend_from_slice(&self.tail);
        input
    }
}

/// Measures many shapes at a moderate length, then long ones until the time is up, at least `long_count_min` of them.
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
    // A slow build measures fewer shapes; fast builds measure the others.
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

/// A random shape made from seeds and words of the grammar.
fn choose(target: &Target, seeds: &[Vec<u8>], rng: &mut Rng) -> InputShape {
    let token = |rng: &mut Rng| target.tokens[rng.usize(..target.tokens.len())].to_vec();
    let base = &seeds[rng.usize(..seeds.len())];
    let first_line = base.iter().position(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
    let at = match rng.u8(..4) {
        // In some formats the first line is separate, so the main part begins after it.
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
    InputShape { head: base[..at].to_vec(), piece, tail: base[end..].to_vec() }
}

/// Called once, before anything is measured.
pub fn expect_slowness(times: u32) {
    SLOWNESS.store(times.max(1), Ordering::Relaxed);
}

pub fn is_slow() -> bool {
    SLOWNESS.load(Ordering::Relaxed) > 1
}

fn measure_shape(
    target: &Target,
    shape: &InputShape,
    lengths: &[usize],
    cost: &mut Cost,
) -> Result<(), TooSlow> {
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
            // A time close to zero would make any growth look large.
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

/// Distinguishes work that is not linear, which grows too fast at every doubling, from a single jump. A full cache
/// causes such a jump, and so does an input that is refused at once when short but read when long.
fn grows_with_every_doubling(target: &Target, shape: &InputShape, len: usize) -> bool {
    let took = |len: usize| least_time(target, &shape.input(len), SECOND_LOOK_TRY_COUNT).as_secs_f64();
    let times = [took(len / 4), took(len / 2), took(len)];
    times.windows(2).all(|pair| pair[1] > pair[0] * DOUBLING_TIME_GROWTH_MAX)
}

/// The least time of several runs. Ignores panics: running the mutated inputs has reported them before.
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
