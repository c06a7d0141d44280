//! Random bytes from the operating system, for keys, tokens and names that nobody may guess or share.

pub fn bytes<const COUNT: usize>() -> Result<[u8; COUNT], String> {
    let mut bytes = [0; COUNT];
    getrandom::fill(&mut bytes).map_err(|error| format!("the system provides no random bytes: {error}"))?;
    Ok(bytes)
}
