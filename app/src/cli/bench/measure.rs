//! Time on a machine that is never quiet: everything is measured in turns, and compared within a turn only.

use std::time::Instant;

use serde::Serialize;

use super::super::Outcome;
use crate::cli::Failure;

/// Seconds that a sample should last: long enough for a clock and a wait to be nothing.
const SAMPLE: f64 = 0.02;
/// Most repetitions of a sample.
const MOST: usize = 20_000;

/// Something that can be done again and again.
pub(super) struct Subject<'a> {
    run: Box<dyn FnMut(usize) -> Outcome + 'a>,
    times: usize,
}

impl<'a> Subject<'a> {
    /// `run` does it so many times and waits until it is done. It is done twice now: to be warm, and to know how often fits a
    /// sample.
    pub(super) fn new(run: impl FnMut(usize) -> Outcome + 'a) -> Result<Self, Failure> {
        let mut subject = Self {
            run: Box::new(run),
            times: 1,
        };
        subject.sample()?;
        let once = subject.sample()?;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a number between 1 and MOST"
        )]
        let times = (SAMPLE / once.max(1e-9)).ceil().clamp(1.0, MOST as f64) as usize;
        subject.times = times;
        Ok(subject)
    }

    /// Seconds that it takes once.
    fn sample(&mut self) -> Result<f64, Failure> {
        let begin = Instant::now();
        (self.run)(self.times)?;
        Ok(begin.elapsed().as_secs_f64() / self.times as f64)
    }
}

/// Seconds of each subject, a list of as many as there are rounds. Every other round goes backwards, so that a machine that
/// becomes slower or faster favours nobody.
pub(super) fn rounds(
    subjects: &mut [Subject<'_>],
    rounds: usize,
) -> Result<Vec<Vec<f64>>, Failure> {
    let mut seconds = vec![Vec::with_capacity(rounds); subjects.len()];
    for round in 0..rounds {
        let mut order: Vec<usize> = (0..subjects.len()).collect();
        if round % 2 == 1 {
            order.reverse();
        }
        for number in order {
            seconds[number].push(subjects[number].sample()?);
        }
    }
    Ok(seconds)
}

/// A median with the range that holds the true one in 95 of 100 cases.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Median {
    pub(super) median: f64,
    pub(super) low: f64,
    pub(super) high: f64,
}

impl Median {
    /// Of some numbers. The range is that of order statistics, which assume nothing about the numbers; below six numbers it
    /// is from the smallest to the largest.
    pub(super) fn of(mut numbers: Vec<f64>) -> Self {
        numbers.sort_by(f64::total_cmp);
        let count = numbers.len();
        let Some(last) = count.checked_sub(1) else {
            return Self {
                median: f64::NAN,
                low: f64::NAN,
                high: f64::NAN,
            };
        };
        let outside = left_out(count);
        Self {
            median: f64::midpoint(numbers[last / 2], numbers[count / 2]),
            low: numbers[outside],
            high: numbers[last - outside],
        }
    }

    /// Of a ratio in each round.
    pub(super) fn of_ratios(above: &[f64], below: &[f64]) -> Self {
        Self::of(above.iter().zip(below).map(|(a, b)| a / b).collect())
    }

    /// `0.93 (0.90..0.97)`
    pub(super) fn text(&self, digits: usize) -> String {
        format!(
            "{:.digits$} ({:.digits$}..{:.digits$})",
            self.median, self.low, self.high
        )
    }
}

/// How many of `count` sorted numbers may be left out at each end so that the rest holds the median with a probability of 95 %:
/// each number is below the median with probability 1/2, so the number of those is binomial.
fn left_out(count: usize) -> usize {
    let mut probability = 0.5_f64.powi(i32::try_from(count).unwrap_or(i32::MAX));
    let mut below = 0.0;
    for taken in 0..count / 2 {
        below += probability;
        if below > 0.025 {
            // Two sides of 2.5 % each: this one is too many.
            return taken.saturating_sub(1);
        }
        probability *= (count - taken) as f64 / (taken + 1) as f64;
    }
    (count / 2).saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_their_ranges_are_those_of_tables() {
        // Order statistics for a 95 % range of a median: 6: 1st and 6th, 9: 2nd and 8th, 15: 4th and 12th, 20: 6th and 15th.
        for (count, outside) in [(1, 0), (5, 0), (6, 0), (8, 0), (9, 1), (15, 3), (20, 5)] {
            assert_eq!(left_out(count), outside, "{count} numbers");
        }
        let of = Median::of(vec![5.0, 1.0, 9.0, 3.0, 7.0, 2.0, 8.0, 4.0, 6.0]);
        assert_eq!((of.median, of.low, of.high), (5.0, 2.0, 8.0));
        assert_eq!(Median::of(vec![4.0, 1.0]).median, 2.5);
        assert!(Median::of(Vec::new()).median.is_nan());
    }

    #[test]
    fn subjects_take_turns_in_both_directions() {
        let order = std::cell::RefCell::new(Vec::new());
        let subject = |name: char| {
            let order = &order;
            Subject::new(move |_| {
                order.borrow_mut().push(name);
                Ok(())
            })
        };
        let mut both = [subject('a').expect("runs"), subject('b').expect("runs")];
        order.borrow_mut().clear();
        let seconds = rounds(&mut both, 2).expect("runs");
        assert_eq!(*order.borrow(), ['a', 'b', 'b', 'a']);
        assert_eq!(seconds.iter().map(Vec::len).collect::<Vec<_>>(), [2, 2]);
    }
}
