//! Large entities: a photo in chunks, with a head that is written last. See docs/patterns.

use std::process::ExitCode;

use lazulite_client::{Error, Value};
use lazulite_patterns::RawEntity;
use lazulite_patterns::data::{self, Size};
use lazulite_patterns::large::LargeRows;
use lazulite_patterns::showcase::{self, AnyError, Demo, Report};

const WRITE: &str = "Write a photo";
const READ: &str = "Read a photo";
const KIB: usize = 1024;
/// What one property holds.
const PIECE_BYTES: usize = 64 * KIB;

fn main() -> ExitCode {
    showcase::main(run)
}

pub async fn run(demo: &Demo, size: Size, report: &mut Report) -> Result<(), AnyError> {
    report.count_as("KiB");
    let employee = data::someone(Size::Small).id;
    let length = usize::try_from(size.count())? * KIB;
    let photo: Vec<u8> = (0..length).map(|n| (n % 251) as u8).collect();

    // A row for each piece that fits into a property. A reader may see a half of the old photo and a half of the new.
    let table = demo.table("Pieces").await?;
    let key = |number: usize| format!("photo-{number:03}");
    let write = async {
        for (number, piece) in photo.chunks(PIECE_BYTES).enumerate() {
            let row = RawEntity::new(employee.as_str(), key(number));
            table.upsert_replace(&row.with("Data", Value::Binary(piece.to_vec().into()))).await?;
        }
        Ok::<_, Error>(())
    };
    let (cost, ()) = demo.measure(write).await?;
    report.add(WRITE, size, "before", cost);
    let read = async {
        let mut bytes = Vec::new();
        for number in 0..length.div_ceil(PIECE_BYTES) {
            let row: RawEntity = table.get(&employee, &key(number)).await?;
            if let Some(Value::Binary(piece)) = row.value("Data") {
                bytes.extend_from_slice(piece);
            }
        }
        Ok::<_, Error>(bytes)
    };
    let (cost, bytes) = demo.measure(read).await?;
    assert!(bytes == photo, "the photo comes back");
    report.add(READ, size, "before", cost);

    let photos = LargeRows::new(demo.table("Photos").await?);
    let head = RawEntity::new(employee.as_str(), "photo").with("Title", Value::String("At the sea".into()));
    let (cost, ()) = demo.measure(photos.write(&head, &photo)).await?;
    report.add(WRITE, size, "after", cost);
    let (cost, found) = demo.measure(photos.read::<RawEntity>(&employee, "photo")).await?;
    let (head, bytes) = found.ok_or("the photo that was written")?;
    assert!(bytes == photo, "the photo comes back");
    assert_eq!(head.text("Title"), Some("At the sea"));
    report.add(READ, size, "after", cost);
    Ok(())
}
