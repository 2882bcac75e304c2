use braid_engine::device::{AdapterKind, Device, DeviceChoice, DeviceOptions, Precision};
use braid_tests::gpu;

fn open(choice: &DeviceChoice, options: DeviceOptions) -> braid_engine::Result<Device> {
    pollster::block_on(Device::open(choice, &options))
}

#[test]
fn auto_takes_hardware_or_the_cpu_and_says_why() {
    let survey = pollster::block_on(Device::survey());
    let device = open(&DeviceChoice::Auto, DeviceOptions::default()).expect("always opens");
    assert_eq!(*device.report(), survey.auto);
    assert_eq!(device.why(), survey.why);
    assert_ne!(survey.auto.kind, AdapterKind::Software);
    let last = survey.devices.last().expect("the CPU is always there");
    assert_eq!(last.kind, AdapterKind::Host);
}

#[test]
fn an_adapter_is_found_by_a_part_of_its_name_in_any_case() {
    let Some(shared) = gpu() else {
        return;
    };
    let name = &shared.report().name;
    let part = DeviceChoice::Named(name.to_uppercase().chars().take(5).collect());
    let device = open(&part, DeviceOptions::default()).expect("it exists");
    assert_eq!(device.report().name, *name);
    let error = open(
        &DeviceChoice::Named("voodoo2".into()),
        DeviceOptions::default(),
    );
    let text = error.expect_err("nobody has one").to_string();
    assert!(text.contains("`voodoo2`") && text.contains(name), "{text}");
}

#[test]
fn limits_are_those_of_webgpu_unless_raised() {
    let Some(shared) = gpu() else {
        return;
    };
    let choice = DeviceChoice::Named(shared.report().name.clone());
    let limits = |raise_limits| {
        let options = DeviceOptions {
            raise_limits,
            ..DeviceOptions::default()
        };
        open(&choice, options)
            .expect("it exists")
            .executor()
            .limits()
    };
    assert_eq!(
        (limits(false).binding, limits(false).buffer),
        (128 << 20, 256 << 20)
    );
    let offered = shared.report().limits.expect("adapters have limits");
    let raised = limits(true);
    assert_eq!(
        (raised.binding, raised.buffer),
        (offered.binding_bytes, offered.buffer_bytes)
    );
}

#[test]
fn double_precision_is_for_the_cpu() {
    let options = DeviceOptions {
        precision: Precision::F64,
        ..DeviceOptions::default()
    };
    let device = open(&DeviceChoice::Cpu, options).expect("always opens");
    assert_eq!(device.executor().limits().float, 8);
    let text = open(&DeviceChoice::Gpu, options)
        .expect_err("no GPU can")
        .to_string();
    assert!(text.contains("double precision"), "{text}");
}
