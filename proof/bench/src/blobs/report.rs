//! The report of a run about blobs, as Markdown.

use std::fmt::Write;

use crate::report::{mebibytes, or_dash, thousands, time};
use crate::results::{Cell, Direction, Run, Transfer, fact};
use crate::system::{LONG_ANSWER_BYTES, SystemKind};

const MIB: f64 = 1024.0 * 1024.0;

pub fn tables(run: &Run) -> String {
    let mut text = String::new();
    let _ = writeln!(
        text,
        "Medians of {} rounds of {} s, systems in turn, on {} cores that the servers share with the generator. Load average \
         before the run: {}. Every put has a name of its own, and its signature is made when it is sent.\n",
        run.rounds,
        run.seconds,
        run.machine.cores,
        run.load_average_before.map_or("unknown".to_owned(), |load| format!("{load:.2}")),
    );
    if run.plan == "blobs" {
        let _ = writeln!(
            text,
            "\"Hello world\" is the bare server of the tables' figures: it reads the request to its end and answers with {} \
             bytes, whatever was asked for. Beside it stands one that answers with {LONG_ANSWER_BYTES} bytes.\n",
            crate::hello::BODY_BYTES
        );
    }
    text.push_str(
        "| workload | blobs | connections | system | requests/s | p50 | p99 | CPU per request | of hello | of Azurite | generator busy |\n\
         | --- | ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n",
    );
    run.cells.iter().for_each(|cell| text.push_str(&row(run, cell)));
    if !run.transfers.is_empty() {
        text.push_str(
            "\nBlobs of 64 MiB. `dd` writes as much to the same disk (`conv=fsync`); the bare file server sends a file of the \
             same length in pieces of 256 KiB. With several connections, as many of each work at the same time; the blocks of one \
             blob share them, and are compared with one `dd`. A put in one request computes the MD5 of the content, which the \
             service stores; blocks need none.\n\n\
             | direction | connections | system | MiB/s | CPU per MiB | of the other |\n| --- | ---: | --- | ---: | ---: | ---: |\n",
        );
        run.transfers.iter().for_each(|transfer| text.push_str(&transfer_row(run, transfer)));
    }
    if let (Some(peak), Some(idle), Some(rate)) = (
        run.fact(fact::UPLOADS_PEAK_BYTES),
        run.fact(fact::UPLOADS_IDLE_BYTES),
        run.fact(fact::UPLOADS_BYTES_PER_SECOND),
    ) {
        let _ = writeln!(
            text,
            "\nUnder a hundred uploads at the same time the server's memory was {} at the peak ({} after the start); together \
             they took {} a second.",
            mebibytes(peak),
            mebibytes(idle),
            mebibytes(rate)
        );
    }
    if let Some(rate) = run.fact(fact::LOAD_BLOBS_PER_SECOND) {
        let disk = run.fact(fact::DISK_BYTES).map_or("unknown".to_owned(), mebibytes);
        let _ = writeln!(
            text,
            "\nThe names were loaded with a put of an empty blob each, on 64 connections: {} a second; on disk {disk}. Lists \
             have a prefix that a thousand names share, anywhere in the container.",
            thousands(rate)
        );
    }
    if !run.processes.is_empty() {
        text.push_str("\n| process | memory idle | at the end | peak |\n| --- | ---: | ---: | ---: |\n");
        for process in &run.processes {
            let size =
                |bytes: Option<u64>| bytes.map_or("unknown".to_owned(), |bytes| mebibytes(bytes as f64));
            let _ = writeln!(
                text,
                "| {} | {} | {} | {} |",
                process.system.what(),
                size(process.idle_bytes),
                size(process.end_bytes),
                size(process.peak_bytes)
            );
        }
    }
    for note in &run.notes {
        let _ = writeln!(text, "\n{note}");
    }
    text.push('\n');
    text
}

fn row(run: &Run, cell: &Cell) -> String {
    let (what, blobs, system) = (cell.what(), cell.shape().label(), cell.system.what());
    let place = format!("| {what} | {blobs} | {} | {system}", cell.connections);
    let Some(sample) = &cell.sample else {
        let why = cell.not_measured.as_deref().unwrap_or("no reason known").replace('|', "/");
        return format!("{place} | not measured: {why} | | | | | | |\n");
    };
    let share = |other: SystemKind| {
        let is_server =
            matches!(cell.system, SystemKind::Durable | SystemKind::Azurite) && cell.system != other;
        let other = run.beside(cell, other).filter(|_| is_server)?;
        Some(sample.requests_per_second / other.requests_per_second)
    };
    format!(
        "{place} | {} | {} | {} | {} | {} | {} | {} |\n",
        thousands(sample.requests_per_second),
        time(sample.p50_us),
        time(sample.p99_us),
        or_dash(sample.server_cpu_us.map(time)),
        or_dash(share(SystemKind::Hello).map(|share| format!("{:.0} %", share * 100.0))),
        or_dash(share(SystemKind::Azurite).map(|share| format!("{share:.1} ×"))),
        or_dash(sample.generator_busy.map(|busy| format!("{:.0} %", busy * 100.0))),
    )
}

fn transfer_row(run: &Run, transfer: &Transfer) -> String {
    let direction = match transfer.direction {
        Direction::Put => "put",
        Direction::PutBlocks => "put in blocks of 4 MiB",
        Direction::Get => "get",
    };
    let share = (transfer.system == Some(SystemKind::Durable))
        .then(|| of_other(run, transfer.direction, transfer.connections))
        .flatten();
    format!(
        "| {direction} | {} | {} | {} | {} | {} |\n",
        transfer.connections,
        transfer.system.map_or("`dd`", SystemKind::what),
        thousands(transfer.bytes_per_second / MIB),
        or_dash(transfer.cpu_us_per_mib.map(time)),
        or_dash(share.map(|share| format!("{:.0} %", share * 100.0))),
    )
}

/// The durable server's rate, divided by that of what it is compared with.
pub fn of_other(run: &Run, direction: Direction, connections: usize) -> Option<f64> {
    let own = run.transfer(direction, connections, Some(SystemKind::Durable))?;
    let other = match direction {
        Direction::Put => run.transfer(Direction::Put, connections, None)?,
        Direction::PutBlocks => run.transfer(Direction::Put, 1, None)?,
        Direction::Get => run.transfer(Direction::Get, connections, Some(SystemKind::FileServer))?,
    };
    Some(own.bytes_per_second / other.bytes_per_second)
}
