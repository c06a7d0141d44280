//! The signals that ask the process to stop: Ctrl-C everywhere, and SIGTERM on Unix.

/// Becomes ready at the first such signal. Call it inside a runtime.
pub fn stop_requested() -> Result<impl Future<Output = ()> + Send + 'static, String> {
    #[cfg(unix)]
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())
        .map_err(|error| format!("cannot listen for signals: {error}"))?;
    Ok(async move {
        let interrupt = tokio::signal::ctrl_c();
        #[cfg(unix)]
        tokio::select! {
            _ = interrupt => {}
            _ = terminate.recv() => {}
        }
        #[cfg(not(unix))]
        if let Err(error) = interrupt.await {
            log::error!("cannot listen for Ctrl-C: {error}");
            std::future::pending::<()>().await;
        }
    })
}
