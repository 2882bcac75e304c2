use braid_engine::executor::{Data, Executor, Range, Values, Work, arrived};
use braid_engine::kernel::Element;
use braid_tests::gpu_executor;

use super::Small;

#[test]
fn what_was_written_is_read_bit_for_bit() {
    let Some(mut executor) = gpu_executor() else {
        return;
    };
    // NaN with a payload, infinities, subnormals and signed zeros must survive.
    let bits = [
        0x7fc1_2345,
        0x7f80_0000,
        0xff80_0000,
        1,
        0x8000_0000,
        0,
        0x3f80_0000,
    ];
    let floats = executor.allocate("floats", 7, Element::F32).expect("fits");
    let ints = executor.allocate("ints", 7, Element::U32).expect("fits");
    let numbers = bits.map(f32::from_bits);
    executor
        .write(floats, 0, Data::F32(&numbers))
        .expect("fits");
    executor.write(ints, 0, Data::U32(&bits)).expect("fits");
    let part = |buffer, offset, len| Range {
        buffer,
        offset,
        len,
    };
    let ranges = [part(floats, 0, 7), part(ints, 2, 5), part(ints, 1, 0)];
    let read = pollster::block_on(executor.read(&ranges).expect("inside")).expect("arrives");
    let Values::F32(read_floats) = &read[0] else {
        panic!("floats are read as floats");
    };
    assert_eq!(
        read_floats.iter().map(|v| v.to_bits()).collect::<Vec<_>>(),
        bits
    );
    assert_eq!(read[1], Values::U32(bits[2..].to_vec()));
    assert_eq!(read[2], Values::U32(vec![]));
}

#[test]
fn doubles_are_rounded_and_new_buffers_are_zero() {
    let Some(mut executor) = gpu_executor() else {
        return;
    };
    let buffer = executor
        .allocate("floats", 100, Element::F32)
        .expect("fits");
    executor.write(buffer, 50, Data::F64(&[0.1])).expect("fits");
    let range = Range {
        buffer,
        offset: 0,
        len: 100,
    };
    let read = pollster::block_on(executor.read(&[range]).expect("inside")).expect("arrives");
    let mut want = vec![0.0; 100];
    want[50] = 0.1_f32;
    assert_eq!(read[0], Values::F32(want));
}

#[test]
fn a_read_larger_than_a_staging_buffer_is_whole() {
    let Some(mut executor) = gpu_executor() else {
        return;
    };
    let len = (64 << 20) / 4 + 1000;
    let buffer = executor.allocate("large", len, Element::U32).expect("fits");
    let numbers: Vec<u32> = (0..len as u32).collect();
    executor
        .write(buffer, 0, Data::U32(&numbers))
        .expect("fits");
    let range = Range {
        buffer,
        offset: 0,
        len,
    };
    let read = pollster::block_on(executor.read(&[range]).expect("inside")).expect("arrives");
    assert!(read[0] == Values::U32(numbers), "some elements differ");
}

#[test]
fn dropped_and_delayed_reads_return_their_buffers() {
    let Some(mut executor) = gpu_executor() else {
        return;
    };
    let small = Small::load(&mut executor);
    let range = small.range(&executor, "y");
    let first = executor.read(&[range]).expect("inside");
    let second = executor.read(&[range]).expect("inside");
    drop(first); // before it has arrived
    pollster::block_on(second).expect("arrives");
    let before = executor.counts().buffers;
    let [one, two] = [(); 2].map(|()| executor.read(&[range]).expect("inside"));
    drop(one);
    pollster::block_on(two).expect("arrives");
    assert_eq!(executor.counts().buffers, before);
}

#[test]
fn looking_in_never_waits_and_in_flight_counts_down() {
    let Some(mut executor) = gpu_executor() else {
        return;
    };
    let small = Small::load(&mut executor);
    executor
        .submit(&[Work::Clear(small.grads), Work::Run(small.program)])
        .expect("runs");
    let range = small.range(&executor, "y");
    let mut pending = executor.read(&[range]).expect("inside");
    let mut looks = 0;
    let result = loop {
        if let Some(result) = arrived(&mut pending) {
            break result;
        }
        looks += 1;
        assert!(looks < 60_000, "it never arrives");
        std::thread::sleep(std::time::Duration::from_millis(1));
    };
    assert_eq!(result.expect("arrives")[0].to_f64().len(), range.len);
    assert_eq!(executor.in_flight().expect("lives"), 0);
}
