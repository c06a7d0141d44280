//! The signals that ask the process to stop: Ctrl-C everywhere, and SIGTERM and SIGHUP on Unix. SIGHUP comes when the
//! terminal is closed. Accounts and certificates are read again without a signal, so it need not mean that. A process
//! that was started to ignore SIGHUP (`nohup`) does so, where the system tells (Linux).

/// Becomes ready at the first such signal. Call it inside a runtime.
pub fn stop_requested() -> Result<impl Future<Output = ()> + Send + 'static, String> {
    #[cfg(unix)]
    let listen = |kind| {
        tokio::signal::unix::signal(kind).map_err(|error| format!("cannot listen for signals: {error}"))
    };
    #[cfg(unix)]
    let mut terminate = listen(tokio::signal::unix::SignalKind::terminate())?;
    #[cfg(unix)]
    let ignores_hang_up = ignores_hang_up();
    #[cfg(unix)]
    let mut hang_up = listen(tokio::signal::unix::SignalKind::hangup())?;
    Ok(async move {
        let interrupt = tokio::signal::ctrl_c();
        #[cfg(unix)]
        tokio::select! {
            _ = interrupt => {}
            _ = terminate.recv() => {}
            _ = hang_up.recv(), if !ignores_hang_up => {}
        }
        #[cfg(not(unix))]
        if let Err(error) = interrupt.await {
            log::error!("cannot listen for Ctrl-C: {error}");
            std::future::pending::<()>().await;
        }
    })
}

/// Whether the process was told to ignore SIGHUP. Ask before a handler is installed.
#[cfg(unix)]
fn ignores_hang_up() -> bool {
    const HANG_UP_BIT: u64 = 1;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .is_some_and(|mask| mask & HANG_UP_BIT != 0)
}
