//! How long each kernel call takes, by the device's own clock.
//!
//! Timestamps exist at the ends of passes only, so each call gets a pass of its own. That costs time between the calls, which
//! is why the sum is not the time of a step.

use std::future::ready;
use std::sync::Arc;

use super::execute::{Call, Shared};
use super::readback::{Source, submit_and_read};
use crate::error::Result;
use crate::executor::{Pending, Values};
use crate::kernel::Element;

/// Calls of a submission: a query set holds 4,096 timestamps.
const MOST: usize = 2_048;
/// Bytes of a timestamp.
const STAMP: u64 = 8;

/// Run the calls, each in a pass of its own, and promise their seconds; `None` without timestamps.
pub(super) fn run(shared: &Arc<Shared>, calls: &[Call]) -> Result<Pending<Option<Vec<f64>>>> {
    let device = &shared.gpu.device;
    if !device.features().contains(wgpu::Features::TIMESTAMP_QUERY) {
        return Ok(Box::pin(ready(Ok(None))));
    }
    let mut reads = Vec::new();
    for part in calls.chunks(MOST) {
        let count = 2 * part.len() as u32;
        let bytes = u64::from(count) * STAMP;
        let queries = device.create_query_set(&wgpu::QuerySetDescriptor {
            label: Some("profile"),
            ty: wgpu::QueryType::Timestamp,
            count,
        });
        let stamps = shared.create_buffer(&wgpu::BufferDescriptor {
            label: Some("profile"),
            size: bytes,
            usage: wgpu::BufferUsages::QUERY_RESOLVE | wgpu::BufferUsages::COPY_SRC,
            mapped_at_creation: false,
        })?;
        let mut encoder = shared.encoder();
        for (call, number) in part.iter().zip((0..).step_by(2)) {
            let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor {
                label: None,
                timestamp_writes: Some(wgpu::ComputePassTimestampWrites {
                    query_set: &queries,
                    beginning_of_pass_write_index: Some(number),
                    end_of_pass_write_index: Some(number + 1),
                }),
            });
            call.record(&mut pass);
        }
        encoder.resolve_query_set(&queries, 0..count, &stamps, 0);
        let whole = Source {
            buffer: stamps,
            offset: 0,
            len: 2 * count as usize,
            element: Element::U32,
        };
        reads.push(submit_and_read(shared, encoder, vec![whole])?);
    }
    let nanoseconds = f64::from(shared.gpu.queue.get_timestamp_period());
    Ok(Box::pin(async move {
        let mut seconds = Vec::new();
        for read in reads {
            for values in read.await? {
                if let Values::U32(words) = values {
                    seconds.extend(durations(&words).map(|ticks| ticks * nanoseconds * 1e-9));
                }
            }
        }
        Ok(Some(seconds))
    }))
}

/// Ticks between pairs of timestamps, each two words, the low one first. A clock that runs backwards counts as 0.
fn durations(words: &[u32]) -> impl Iterator<Item = f64> {
    let stamp = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
    let pairs = words.as_chunks::<4>().0.iter();
    pairs.map(move |&[a, b, c, d]| stamp(c, d).saturating_sub(stamp(a, b)) as f64)
}

#[cfg(test)]
mod tests {
    use super::durations;

    #[test]
    fn timestamps_have_64_bits_and_differences_are_never_negative() {
        let words = [5, 1, 9, 1, u32::MAX, 0, 1, 1, 7, 0, 3, 0];
        assert_eq!(durations(&words).collect::<Vec<_>>(), [4.0, 2.0, 0.0]);
    }
}
