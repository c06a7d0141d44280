#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    fuzzing::targets::queue_message::run(input);
});
